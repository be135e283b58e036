// Runs a code blob in this process, for tests and benchmarks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/object/Blob.h"

#include "ortc/call.h"

namespace ortc::cpu {

/// A blob mapped read-execute. Movable; unmaps when destroyed.
class LoadedBlob {
public:
  static llvm::Expected<LoadedBlob> load(CodeBlob blob);
  LoadedBlob(LoadedBlob &&other);
  LoadedBlob &operator=(LoadedBlob &&other);
  ~LoadedBlob();

  /// The ABI entry of kernel `name`; null when there is none.
  ortc_task_fn kernel(llvm::StringRef name) const;
  /// A step function; null when there is none.
  ortc_step_fn step(uint32_t role, uint32_t binding, uint32_t segment = 0) const;
  const CodeBlob &blob() const { return contents; }

private:
  explicit LoadedBlob(CodeBlob blob) : contents(std::move(blob)) {}
  CodeBlob contents;
  uint8_t *base = nullptr;
};

/// Lowers `module` (changing it), emits and links it for `target`.
llvm::Expected<CodeBlob> compileModule(mlir::ModuleOp module, const Target &target,
                                       const ObjectOptions &options = {});

} // namespace ortc::cpu
