// An object of a GPU's code as a shared object.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/object/SharedObject.h"

#include "compiler/backends/gpu/object/TemporaryFolder.h"
#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/MemoryBuffer.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

namespace ortc::gpu {

Expected<std::vector<uint8_t>> linkSharedObject(const std::string &object) {
  static std::mutex one; // the linker keeps its state in globals
  std::lock_guard<std::mutex> lock(one);
  TemporaryFolder folder;
  ORTC_TRY(folder.create());
  ORTC_TRY(folder.write("in.o", object));
  std::string input = folder.file("in.o"), output = folder.file("out");
  const char *arguments[] = {"ld.lld", "-shared", "--no-undefined", "-o", output.c_str(), input.c_str()};
  std::string text;
  llvm::raw_string_ostream messages(text);
  lld::Result result = lld::lldMain(arguments, messages, messages, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return Status::failure("linking the GPU's code failed: " + text);
  auto linked = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!linked)
    return Status::failure("cannot read what was linked: " + linked.getError().message());
  return std::vector<uint8_t>((*linked)->getBufferStart(), (*linked)->getBufferEnd());
}

} // namespace ortc::gpu
