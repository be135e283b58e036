// Making many kernels at a time, whatever the family.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/KernelJobs.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <atomic>
#include <system_error>
#include <thread>

using namespace mlir;

namespace ortc::backends {

void runJobs(size_t count, unsigned threads, llvm::function_ref<std::function<void(size_t)>()> makeWorker) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    std::function<void(size_t)> worker = makeWorker();
    for (size_t i = next++; i < count; i = next++)
      worker(i);
  };
  std::vector<std::thread> pool;
  try {
    for (unsigned i = 1; i < std::min<size_t>(threads, count); ++i)
      pool.emplace_back(work);
  } catch (const std::system_error &) { // those that could be started do all the work
  }
  work();
  for (std::thread &thread : pool)
    thread.join();
}

void loadKernelDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect, memref::MemRefDialect,
                      nn::NnDialect, plan::PlanDialect, scf::SCFDialect, vector::VectorDialect,
                      LLVM::LLVMDialect>();
}

std::vector<func::FuncOp> listKernels(ModuleOp module) {
  std::vector<func::FuncOp> kernels;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(plan::kKind))
      kernels.push_back(function);
  return kernels;
}

std::string printKernel(Operation *kernel) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().useLocalScope());
  return text;
}

bool usesDoubles(func::FuncOp kernel) {
  auto isDouble = [](Type type) { return cast<ShapedType>(type).getElementType().isF64(); };
  return llvm::any_of(kernel.getResultTypes(), isDouble);
}

void annotateKernel(func::FuncOp kernel, double seconds, int64_t scratchBytes) {
  Builder builder(kernel.getContext());
  kernel->setAttr(plan::kTime, builder.getI64IntegerAttr(static_cast<int64_t>(seconds * 1e12)));
  int64_t bytes = std::max(scratchBytes, plan::scratchOf(kernel));
  kernel->setAttr(plan::kScratch, builder.getI64IntegerAttr(bytes));
}

} // namespace ortc::backends
