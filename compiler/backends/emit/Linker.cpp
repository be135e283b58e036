// LLVM's linker, in this process.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/emit/Linker.h"

#include "compiler/backends/emit/TemporaryFolder.h"
#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/MemoryBuffer.h"

#include <mutex>

LLD_HAS_DRIVER(elf)
LLD_HAS_DRIVER(wasm)

namespace ortc::emit {

Expected<std::vector<uint8_t>> runLinker(LinkerFlavour flavour, const std::vector<std::string> &flags,
                                         llvm::ArrayRef<llvm::StringRef> objects) {
  static std::mutex one; // the linker keeps its state in globals
  std::lock_guard<std::mutex> lock(one);
  TemporaryFolder folder;
  ORTC_TRY(folder.create());
  bool isElf = flavour == LinkerFlavour::Elf;
  std::vector<std::string> words{isElf ? "ld.lld" : "wasm-ld"};
  words.insert(words.end(), flags.begin(), flags.end());
  std::string output = folder.file("out");
  words.insert(words.end(), {"-o", output});
  for (auto [number, object] : llvm::enumerate(objects)) {
    std::string name = std::to_string(number) + ".o";
    ORTC_TRY(folder.write(name, object));
    words.push_back(folder.file(name));
  }
  std::vector<const char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(word.c_str());
  std::string text;
  llvm::raw_string_ostream messages(text);
  lld::DriverDef driver =
      isElf ? lld::DriverDef{lld::Gnu, &lld::elf::link} : lld::DriverDef{lld::Wasm, &lld::wasm::link};
  lld::Result result = lld::lldMain(arguments, messages, messages, {driver});
  if (result.retCode != 0)
    return Status::failure(text);
  auto linked = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!linked)
    return Status::failure("cannot read what was linked: " + linked.getError().message());
  return std::vector<uint8_t>((*linked)->getBufferStart(), (*linked)->getBufferEnd());
}

} // namespace ortc::emit
