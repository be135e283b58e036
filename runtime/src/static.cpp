// Opening a model that is linked into the program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/static.h"

#include "runtime/src/internal.h"

using namespace ortc;

/// Whether the code of an image is linked, and its offsets count steps: those of the opener are places in the code, for
/// which it has another limit. What else may be wrong is found there.
static bool countsSteps(const uint8_t *image, const uint8_t *end) {
  const ortc_file_header *header = (const ortc_file_header *)image;
  const ortc_file_section *section = (const ortc_file_section *)(header + 1);
  for (uint32_t left = header->section_count; left; left--, section++) {
    if ((const uint8_t *)(section + 1) > end)
      return false;
    if (section->kind != ORTC_SECTION_CODE)
      continue;
    size_t at = (size_t)section->offset;
    const ortc_blob *head = (const ortc_blob *)(image + at);
    const ortc_blob_entry *entry = (const ortc_blob_entry *)(head + 1);
    if (!(section->features & ORTC_FEATURE_LINKED) || at % ORTC_ALIGNMENT ||
        at > (size_t)(end - image) - sizeof *head)
      return false;
    for (uint32_t i = head->count; i; i--, entry++)
      if ((const uint8_t *)(entry + 1) > end || entry->offset >= head->count)
        return false;
    if (head->entry_bytes != sizeof *entry)
      return false;
  }
  return true;
}

extern "C" {

ortc_status ortc_program_open_static(const ortc_static *model, const ortc_host *host, ortc_program **program,
                                     ortc_message *message) {
  *program = nullptr;
  if (model->abi != ORTC_ABI_VERSION || model->size < sizeof *model) {
    Arguments arguments;
    arguments.set(0, kPartCallAbi);
    arguments.set(1, model->abi);
    return report(message, kNewer, &arguments);
  }
  if ((uintptr_t)model->image % ORTC_ALIGNMENT)
    return report(message, kMisaligned);
  const uint8_t *image = (const uint8_t *)model->image;
  if (model->image_bytes < sizeof(ortc_file_header) || !countsSteps(image, image + model->image_bytes))
    return report(message, kNoArtifact);
  return openImage({image, model->image_bytes}, host, program, message, model->steps);
}
}
