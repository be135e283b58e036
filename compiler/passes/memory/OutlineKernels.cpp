// Turn kernels into functions, equal ones into one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two kernels are equal when they print the same: value numbers follow from the structure, locations are not printed.
#include "compiler/passes/memory/Passes.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace ortc::memory {

#define GEN_PASS_DEF_OUTLINEKERNELSPASS
#include "compiler/passes/memory/Passes.h.inc"

/// The kernel's text without its operands' names.
static std::string keyOf(plan::KernelOp kernel) {
  std::string key;
  llvm::raw_string_ostream stream(key);
  stream << static_cast<int>(kernel.getKind()) << kernel.getInPlaceAttr();
  for (Type type : kernel->getOperandTypes())
    stream << type << ',';
  // A detached copy numbers its values from zero, wherever the original stands.
  auto function = OwningOpRef<func::FuncOp>(func::FuncOp::create(
      kernel.getLoc(), "k",
      FunctionType::get(kernel.getContext(), kernel->getOperandTypes(), kernel->getResultTypes())));
  IRMapping mapping;
  kernel.getBody().cloneInto(&function->getBody(), mapping);
  for (Operation &op : function->getBody().front())
    op.print(stream, OpPrintingFlags().useLocalScope().printGenericOpForm());
  return key;
}

namespace {

struct OutlineKernelsPass : impl::OutlineKernelsPassBase<OutlineKernelsPass> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::StringMap<func::FuncOp> known;
    SmallVector<plan::KernelOp> kernels;
    getOperation().walk([&](plan::KernelOp kernel) { kernels.push_back(kernel); });
    for (plan::KernelOp kernel : kernels) {
      func::FuncOp &function = known[keyOf(kernel)];
      if (!function) {
        function = outline(kernel, known.size() - 1);
        symbols.insert(function);
      }
      OpBuilder builder(kernel);
      auto call = func::CallOp::create(builder, kernel.getLoc(), function, kernel.getInputs());
      kernel.replaceAllUsesWith(call.getResults());
      kernel.erase();
    }
  }

  func::FuncOp outline(plan::KernelOp kernel, size_t number) {
    auto type = FunctionType::get(&getContext(), kernel->getOperandTypes(), kernel->getResultTypes());
    auto function = func::FuncOp::create(kernel.getLoc(), "kernel_" + std::to_string(number), type);
    function.setPrivate();
    function->setAttr(plan::kKind, kernel.getKindAttr());
    if (auto pairs = kernel.getInPlaceAttr())
      function->setAttr(plan::kInPlace, pairs);
    function.getBody().takeBody(kernel.getBody());
    Operation *yield = function.getBody().front().getTerminator();
    OpBuilder builder(yield);
    func::ReturnOp::create(builder, yield->getLoc(), yield->getOperands());
    yield->erase();
    kernel.getBody().emplaceBlock(); // the operation is erased next; keep its region well-formed until then
    return function;
  }
};

} // namespace
} // namespace ortc::memory
