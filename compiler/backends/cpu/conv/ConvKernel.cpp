// From the form of a convolution to its kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/conv/ConvKernel.h"

#include "compiler/backends/cpu/conv/ConvAlgorithms.h"
#include "compiler/backends/emit/Epilogue.h"
#include "compiler/kernels/conv/ConvForm.h"
#include "dialects/nn/NnDialect.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

FailureOr<KernelInfo> generateConv(ModuleOp module, func::FuncOp function, ArrayRef<KernelBuffer> buffers,
                                   const Target &target, Numerics numerics, const KernelChoices *choices) {
  std::string reason;
  auto outputs = function.getBody().front().getTerminator()->getOperands();
  auto form = ConvForm::analyze(function.getArguments(), outputs, reason);
  if (!form)
    return function.emitError() << "no convolution kernel can be made of this program: " << reason, failure();
  ConvSpec spec;
  spec.op = form->op;
  spec.operands = form->operands;
  spec.narrow = form->narrow;
  spec.name = function.getSymName().str();
  spec.buffers.assign(buffers.begin(), buffers.end());
  spec.numerics = numerics;
  spec.choices = choices;
  spec.epilogue = codeOf(form->epilogue, mathOptionsOf(target, numerics));
  spec.rollEpilogue = form->epilogue->computes && form->epilogue->isLong();
  assert((!form->epilogue->computes || storesWholeSums(spec.op)) &&
         "other kernels store what they have summed so far");
  return chooseAlgorithm(spec, target).emit(module, spec, target);
}

} // namespace ortc::cpu
