// Holds the tensors of artifacts that this machine cannot run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/storage.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <ortc/ortc.h>

#include "runtime/src/transfer.h"

namespace ortc::engine {
namespace {

struct Storage {
  const ortc_device_program *program;
  std::unique_ptr<uint8_t[]> regions[4];
};

int32_t load(void *, const ortc_device_program *program, void **module, ortc_message *) {
  *module = const_cast<ortc_device_program *>(program);
  return ORTC_OK;
}

void unload(void *) {}

int32_t reset(void *memory, ortc_message *) {
  auto *storage = static_cast<Storage *>(memory);
  const ortc_table &image = storage->program->tables[ORTC_SECTION_PERSISTENT];
  uint8_t *to = storage->regions[ORTC_REGION_PERSISTENT].get();
  std::copy_n(image.data, image.count, to);
  std::fill(to + image.count, to + storage->program->sizes[ORTC_REGION_PERSISTENT], uint8_t(0));
  return ORTC_OK;
}

int32_t create(void *module, uint32_t, void *bases[4], void **memory, ortc_message *message) {
  auto *program = static_cast<const ortc_device_program *>(module);
  std::unique_ptr<Storage> storage(new (std::nothrow) Storage{program, {}});
  for (int i = 0; storage && i < 4; ++i) {
    // Nothing is ever transient here.
    uint64_t bytes = i == ORTC_REGION_TRANSIENT ? 0 : program->sizes[i];
    storage->regions[i].reset(new (std::nothrow) uint8_t[bytes + 1]());
    bases[i] = storage->regions[i].get();
    if (!bases[i])
      storage.reset();
  }
  if (!storage) {
    std::snprintf(message->text, sizeof(message->text), "out of memory");
    return ORTC_E_MEMORY;
  }
  const ortc_table &constants = program->tables[ORTC_SECTION_CONSTANTS];
  std::copy_n(constants.data, constants.count, storage->regions[ORTC_REGION_CONSTANTS].get());
  *memory = storage.release();
  return reset(*memory, message);
}

void destroy(void *memory) { delete static_cast<Storage *>(memory); }

int32_t copy(void *, const ortc_view *view, uint64_t first, uint64_t count, void *dense, uint32_t toDense,
             ortc_message *) {
  transfer(*view, first, count, static_cast<uint8_t *>(dense), toDense != 0);
  return ORTC_OK;
}

int32_t run(void *, const ortc_device_step *, const ortc_call *, double *, ortc_message *message) {
  std::snprintf(message->text, sizeof(message->text), "no code for this processor");
  return -ORTC_E_TARGET;
}

} // namespace

const ortc_device *getStorage(uint32_t architecture) {
  auto make = [](uint32_t code) {
    return ortc_device{sizeof(ortc_device),
                       code,
                       ~UINT64_C(0),
                       nullptr,
                       load,
                       unload,
                       create,
                       destroy,
                       reset,
                       copy,
                       run,
                       ""};
  };
  static const ortc_device kPtx = make(ORTC_ARCH_PTX), kAmd = make(ORTC_ARCH_AMDGPU);
  return architecture == ORTC_ARCH_PTX ? &kPtx : &kAmd;
}

} // namespace ortc::engine
