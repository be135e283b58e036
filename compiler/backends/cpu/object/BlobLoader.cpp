// Maps a blob and finds its functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/BlobLoader.h"

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/object/Lowering.h"

#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace ortc::cpu {

llvm::Expected<LoadedBlob> LoadedBlob::load(CodeBlob blob) {
  LoadedBlob loaded(std::move(blob));
  size_t size = loaded.contents.bytes.size();
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "cannot map %zu bytes of code", size);
  loaded.base = static_cast<uint8_t *>(memory);
  std::memcpy(memory, loaded.contents.bytes.data(), size);
  if (mprotect(memory, size, PROT_READ | PROT_EXEC) != 0)
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "cannot make %zu bytes of code executable",
                                   size);
  return loaded;
}

LoadedBlob::LoadedBlob(LoadedBlob &&other)
    : contents(std::move(other.contents)), base(std::exchange(other.base, nullptr)) {}

LoadedBlob &LoadedBlob::operator=(LoadedBlob &&other) {
  std::swap(contents, other.contents);
  std::swap(base, other.base);
  return *this;
}

LoadedBlob::~LoadedBlob() {
  if (base)
    munmap(base, contents.bytes.size());
}

ortc_task_fn LoadedBlob::kernel(llvm::StringRef name) const {
  auto symbol = contents.symbols.find(kernelEntryName(name));
  return symbol == contents.symbols.end() ? nullptr : reinterpret_cast<ortc_task_fn>(base + symbol->second);
}

ortc_step_fn LoadedBlob::step(uint32_t role, uint32_t binding, uint32_t segment) const {
  const auto *head = reinterpret_cast<const ortc_blob *>(base);
  for (uint32_t i = 0; i < head->count; ++i) {
    const auto *entry =
        reinterpret_cast<const ortc_blob_entry *>(base + sizeof(ortc_blob) + i * head->entry_bytes);
    if (entry->role == role && entry->binding == binding && entry->segment == segment)
      return reinterpret_cast<ortc_step_fn>(base + entry->offset);
  }
  return nullptr;
}

llvm::Expected<CodeBlob> compileModule(mlir::ModuleOp module, const Target &target,
                                       const ObjectOptions &options) {
  if (failed(lowerToLLVM(module, target)))
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "lowering to the LLVM dialect failed");
  llvm::Expected<Object> object = emitObject(module, target, options);
  if (!object)
    return object.takeError();
  return linkBlob(*object);
}

} // namespace ortc::cpu
