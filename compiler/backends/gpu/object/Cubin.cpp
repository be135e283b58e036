// Machine code for NVIDIA GPUs, made by NVIDIA's assembler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/object/Cubin.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

namespace ortc::gpu {

/// Bytes of the largest cubin that is read.
static constexpr uint64_t kMostBytes = uint64_t(1) << 30;

namespace {

/// A file that is removed with the object.
class TemporaryFile {
public:
  explicit TemporaryFile(llvm::StringRef suffix) {
    error = llvm::sys::fs::createTemporaryFile("ortc", suffix, path);
    if (!error)
      remover.setFile(path);
  }
  std::error_code error;
  llvm::SmallString<128> path;

private:
  llvm::FileRemover remover;
};

std::string firstLines(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().take_front(500).rtrim().str() : "";
}

} // namespace

Expected<std::vector<uint8_t>> assembleCubin(const std::vector<uint8_t> &text, const Processor &processor,
                                             const std::string &ptxas) {
  TemporaryFile input("ptx"), output("cubin"), said("txt");
  for (const TemporaryFile *file : {&input, &output, &said})
    if (file->error)
      return Status::failure("no temporary file for ptxas: " + file->error.message());
  {
    std::error_code error;
    llvm::raw_fd_ostream stream(input.path, error);
    stream.write(reinterpret_cast<const char *>(text.data()), text.size() - 1);
    stream.close();
    if (!error)
      error = stream.error();
    stream.clear_error();
    if (error)
      return Status::failure("cannot write " + input.path.str().str() + " for ptxas: " + error.message());
  }
  std::string arch = "-arch=" + processor.name.str(), message;
  llvm::StringRef arguments[] = {ptxas, arch, "-o", output.path, input.path};
  std::optional<llvm::StringRef> streams[] = {llvm::StringRef(), said.path.str(), said.path.str()};
  if (int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, streams, 0, 0, &message)) {
    std::string why = firstLines(said.path);
    if (why.empty())
      why = message.empty() ? "exit status " + std::to_string(status) : message;
    return Status::failure(ptxas + " fails: " + why + "; take a newer one, or leave --ptxas out");
  }
  uint64_t size = 0;
  if (!llvm::sys::fs::is_regular_file(output.path) || llvm::sys::fs::file_size(output.path, size) ||
      size > kMostBytes)
    return Status::failure(ptxas + " wrote something else than a file of code");
  auto code = llvm::MemoryBuffer::getFile(output.path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  llvm::StringRef bytes = code ? (*code)->getBuffer() : "";
  if (!bytes.starts_with("\x7f"
                         "ELF"))
    return Status::failure(ptxas + " wrote no code for " + processor.name.str());
  return std::vector<uint8_t>(bytes.begin(), bytes.end());
}

} // namespace ortc::gpu
