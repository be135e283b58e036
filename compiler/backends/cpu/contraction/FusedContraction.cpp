// From the form of a contraction to its kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/FusedContraction.h"

#include "compiler/backends/cpu/contraction/Contraction.h"
#include "compiler/backends/emit/Epilogue.h"
#include "compiler/kernels/contraction/ContractionForm.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

FailureOr<KernelInfo> generateFusedContraction(ModuleOp module, func::FuncOp function,
                                               ArrayRef<KernelBuffer> buffers, const Target &target,
                                               Numerics numerics, const KernelChoices *choices) {
  std::string reason;
  Operation *terminator = function.getBody().front().getTerminator();
  auto form = ContractionForm::analyze(function.getArguments(), terminator->getOperands(), reason);
  if (!form)
    return function.emitError() << "no contraction kernel can be made of this program: " << reason, failure();
  ContractionSpec spec;
  static_cast<ContractionShape &>(spec) = form->shape;
  spec.name = function.getSymName().str();
  spec.buffers.assign(buffers.begin(), buffers.end());
  spec.numerics = numerics;
  spec.choices = choices;
  spec.epilogue = codeOf(form->epilogue, spec.accumulatorType, mathOptionsOf(target, numerics));
  spec.rollEpilogue = form->epilogue->computes && form->epilogue->isLong();
  // Partial sums may lie in an output that holds sums of this type and shares memory with nobody.
  for (auto [operand, node] : form->epilogue->outputs) {
    const KernelBuffer &buffer = buffers[spec.operands[operand].buffer];
    if (spec.partialOperand < 0 && buffer.distinct && buffer.elementType == spec.accumulatorType)
      spec.partialOperand = static_cast<int>(operand);
  }
  OpBuilder builder(module.getContext());
  return emitContraction(builder, module, spec, target);
}

} // namespace ortc::cpu
