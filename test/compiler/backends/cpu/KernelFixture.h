// Compiles kernels and runs them in this process.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/KernelCache.h"
#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/object/BlobLoader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/MLIRContext.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <string>

namespace ortc::cpu::test {

/// Zeroed memory at a 64-byte boundary.
template <typename T> class AlignedArray {
public:
  explicit AlignedArray(size_t size)
      : size(size), data(static_cast<T *>(std::aligned_alloc(64, (size * sizeof(T) + 127) / 64 * 64))) {
    std::fill(data.get(), data.get() + size, T());
  }
  T &operator[](size_t i) { return data.get()[i]; }
  const T &operator[](size_t i) const { return data.get()[i]; }
  T *begin() { return data.get(); }
  T *end() { return data.get() + size; }
  const size_t size;

private:
  struct Free {
    void operator()(T *p) const { std::free(p); }
  };
  std::unique_ptr<T, Free> data;
};

/// The folder that ORTC_KERNEL_CACHE names, which `tools/test` sets: a kernel that no change reaches is compiled once,
/// however often its test runs. Null where it names none.
inline backends::KernelCache *findKernelCache() {
  static const std::unique_ptr<backends::KernelCache> cache = []() -> std::unique_ptr<backends::KernelCache> {
    const char *folder = std::getenv("ORTC_KERNEL_CACHE");
    if (!folder || !*folder)
      return nullptr;
    auto opened = backends::KernelCache::open(folder);
    EXPECT_TRUE(bool(opened)) << folder;
    return opened ? std::move(*opened) : nullptr;
  }();
  return cache.get();
}

/// A module under construction with a builder.
struct KernelModule {
  KernelModule() : builder(&context) {
    context.loadDialect<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                        mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::memref::MemRefDialect,
                        mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
    context.disableMultithreading();
    module = mlir::ModuleOp::create(builder.getUnknownLoc());
  }

  /// The module as text, until it is compiled: of equal ones, one tells what all do on a target.
  std::string print() const {
    std::string text;
    llvm::raw_string_ostream stream(text);
    mlir::ModuleOp(*module).print(stream);
    return text;
  }

  /// Compiles the module (once) for `target`; a failure is a failure of the test.
  LoadedBlob load(const Target &target) {
    ObjectOptions options;
    options.cache = findKernelCache();
    llvm::Expected<CodeBlob> blob = compileModule(*module, target, options);
    if (!blob)
      ADD_FAILURE() << llvm::toString(blob.takeError());
    llvm::Expected<LoadedBlob> loaded = LoadedBlob::load(blob ? std::move(*blob) : CodeBlob());
    if (!loaded) {
      ADD_FAILURE() << llvm::toString(loaded.takeError());
      std::abort();
    }
    return std::move(*loaded);
  }

  mlir::MLIRContext context;
  mlir::OpBuilder builder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// The targets that this machine runs.
inline std::vector<Target> runnableTargets() {
  std::vector<Target> targets;
  for (llvm::StringRef name : targetNames())
    if (Target target = *findTarget(name); canRunHere(target))
      targets.push_back(target);
  return targets;
}

} // namespace ortc::cpu::test
