// Machine code for NVIDIA GPUs, made by NVIDIA's assembler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/object/Cubin.h"

#include "compiler/backends/emit/TemporaryFolder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <optional>

namespace ortc::gpu {

/// Bytes of the largest cubin that is read.
static constexpr uint64_t kMostBytes = uint64_t(1) << 30;

static std::string firstLines(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().take_front(500).rtrim().str() : "";
}

Expected<std::vector<uint8_t>> assembleCubin(const std::vector<uint8_t> &text, const Processor &processor,
                                             const std::string &ptxas) {
  TemporaryFolder folder;
  ORTC_TRY(folder.create());
  ORTC_TRY(folder.write("in.ptx", {reinterpret_cast<const char *>(text.data()), text.size() - 1}));
  std::string input = folder.file("in.ptx"), output = folder.file("out.cubin"), said = folder.file("said");
  std::string arch = "-arch=" + processor.name.str(), message;
  llvm::StringRef arguments[] = {ptxas, arch, "-o", output, input};
  std::optional<llvm::StringRef> streams[] = {llvm::StringRef(), said, said};
  if (int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, streams, 0, 0, &message)) {
    std::string why = firstLines(said);
    if (why.empty())
      why = message.empty() ? "exit status " + std::to_string(status) : message;
    return Status::failure(ptxas + " fails: " + why + "; take a newer one, or leave --ptxas out");
  }
  uint64_t size = 0;
  bool isThere = llvm::sys::fs::exists(output);
  if (isThere && (!llvm::sys::fs::is_regular_file(output) || llvm::sys::fs::file_size(output, size) ||
                  size > kMostBytes))
    return Status::failure(ptxas + " wrote something else than a file of code");
  auto code = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  llvm::StringRef bytes = code ? (*code)->getBuffer() : "";
  if (!bytes.starts_with("\x7f"
                         "ELF"))
    return Status::failure(ptxas + " wrote no code for " + processor.name.str());
  return std::vector<uint8_t>(bytes.begin(), bytes.end());
}

} // namespace ortc::gpu
