// The file of --tune.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/tuning/TuneCache.h"
#include "test/fuzz/Target.h"

namespace ortc::fuzz {

bool fuzzTune(Input file) {
  MemoryFile onDisk(file);
  std::string error;
  tuning::TuneCache cache, again;
  if (!cache.read(onDisk.getPath(), /*mayBeMissing=*/false, error)) {
    demand(!error.empty(), "a refusal has no reason");
    return false;
  }
  std::string written = cache.write();
  MemoryFile second({reinterpret_cast<const uint8_t *>(written.data()), written.size()});
  demand(again.read(second.getPath(), false, error) && again.write() == written,
         "what was written is read as something else");
  return true;
}

} // namespace ortc::fuzz
