// The file of --tune.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/tuning/TuneCache.h"
#include "test/fuzz/Target.h"

namespace ortc::fuzz {

bool fuzzTune(Input file) {
  MemoryFile onDisk(file);
  tuning::TuneCache cache, again;
  if (Status read = cache.read(onDisk.getPath(), /*mayBeMissing=*/false); !read.isOk()) {
    demand(!read.getMessage().empty(), "a refusal has no reason");
    return false;
  }
  std::string written = cache.write();
  MemoryFile second({reinterpret_cast<const uint8_t *>(written.data()), written.size()});
  demand(again.read(second.getPath(), false).isOk() && again.write() == written,
         "what was written is read as something else");
  return true;
}

} // namespace ortc::fuzz
