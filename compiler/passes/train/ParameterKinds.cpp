// Which parameters are biases, and which are scales of norms.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/ParameterKinds.h"

#include "compiler/passes/train/ProgramParts.h"

using namespace mlir;

namespace ortc::train {

/// What readers of a value, and of what is only its shape or type changed, do with it.
static ParameterKind kindOf(Value value) {
  bool isAdded = true, isMultiplied = false;
  SmallVector<Value> values{value};
  while (!values.empty()) {
    for (OpOperand &use : values.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (auto loop = dyn_cast<nn::ScanOp>(user)) // operands but the limit are arguments inside
        values.push_back(loop.getBlock().getArgument(use.getOperandNumber()));
      else if (isa<nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp, nn::PadOp, arith::ExtFOp,
                   arith::TruncFOp>(user))
        values.push_back(user->getResult(0));
      else if (isa<arith::MulFOp, arith::DivFOp>(user))
        isMultiplied = true;
      else if (!isa<arith::AddFOp, arith::SubFOp, nn::YieldOp, func::ReturnOp>(user))
        isAdded = false;
    }
  }
  return isMultiplied ? ParameterKind::Norm : isAdded ? ParameterKind::Bias : ParameterKind::Weight;
}

llvm::DenseMap<Attribute, ParameterKind> findKinds(ModuleOp module) {
  llvm::DenseMap<Attribute, ParameterKind> kinds;
  for (TensorOp parameter : findParameters(module)) {
    auto type = cast<RankedTensorType>(parameter.getType());
    bool isVector = llvm::count_if(type.getShape(), [](int64_t size) { return size > 1; }) <= 1;
    kinds[symbolAttribute(parameter, kTensor).getValue()] =
        isVector ? ParameterKind::Bias : ParameterKind::Weight;
  }
  for (int64_t binding : findBindings(module)) {
    func::FuncOp backward = findPart(module, "backward", binding);
    for (unsigned i = 0; backward && i < backward.getNumArguments(); ++i)
      if (auto kind = kinds.find(backward.getArgAttr(i, kTensor));
          kind != kinds.end() && kind->second == ParameterKind::Bias)
        kind->second = kindOf(backward.getArgument(i));
  }
  return kinds;
}

} // namespace ortc::train
