// Opening a model that is linked into the program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/static.h"

#include "runtime/src/internal.h"

using namespace ortc;

/// Whether the code of an image is linked, and its offsets count steps: those of the opener are places in the code, for
/// which it has another limit. What else may be wrong is found there.
static bool countsSteps(const uint8_t *image, uint64_t bytes) {
  const ortc_file_header *header = (const ortc_file_header *)image;
  if (bytes < sizeof *header || header->section_count > (bytes - sizeof *header) / sizeof(ortc_file_section))
    return false;
  const ortc_file_section *section = (const ortc_file_section *)(header + 1);
  for (uint32_t left = header->section_count; left; left--, section++) {
    if (section->kind != ORTC_SECTION_CODE)
      continue;
    const ortc_blob *head = (const ortc_blob *)(image + section->offset);
    if (!(section->features & ORTC_FEATURE_LINKED) || section->offset % ORTC_ALIGNMENT ||
        section->offset > bytes || section->bytes > bytes - section->offset ||
        section->bytes < sizeof *head || head->entry_bytes != sizeof(ortc_blob_entry) ||
        head->count > (section->bytes - sizeof *head) / sizeof(ortc_blob_entry))
      return false;
    for (uint32_t i = 0; i < head->count; i++)
      if (((const ortc_blob_entry *)(head + 1))[i].offset >= head->count)
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
  if (!countsSteps((const uint8_t *)model->image, model->image_bytes)) {
    Arguments arguments;
    arguments.set(0, kPartCode);
    arguments.set(1, (uint64_t)0);
    return report(message, kMalformed, &arguments);
  }
  return openImage({(const uint8_t *)model->image, model->image_bytes}, false, host, program, message,
                   model->steps);
}
}
