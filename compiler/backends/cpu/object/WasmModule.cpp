// Links objects into a module of WebAssembly, by LLVM's linker.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/WasmModule.h"

#include "compiler/backends/emit/Linker.h"

#include "ortc/format.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace ortc::cpu {

using namespace emit;

llvm::Expected<CodeBlob> linkWasmModule(ArrayRef<Object> objects, ArrayRef<BlobEntry> entries) {
  std::vector<std::string> flags{"--no-entry",
                                 "--import-memory",
                                 "--stack-first",
                                 "-z",
                                 "stack-size=" + std::to_string(kWasmStackBytes),
                                 "--initial-memory=" + std::to_string(kWasmOwnBytes),
                                 "--gc-sections",
                                 "--strip-all"};
  std::vector<StringRef> inputs;
  for (const Object &object : objects)
    inputs.emplace_back(reinterpret_cast<const char *>(object.bytes.data()), object.bytes.size());
  auto linked = runLinker(LinkerFlavour::WebAssembly, flags, inputs);
  if (!linked)
    return createStringError(inconvertibleErrorCode(), linked.getStatus().getMessage());
  CodeBlob blob;
  std::vector<uint32_t> ordinals(entries.size());
  for (uint32_t i = 0; i < ordinals.size(); ++i)
    ordinals[i] = i;
  appendHead(entries, ordinals, blob.bytes);
  blob.textBytes = linked->size();
  blob.bytes.insert(blob.bytes.end(), linked->begin(), linked->end());
  addFrames(objects, blob);
  return blob;
}

} // namespace ortc::cpu
