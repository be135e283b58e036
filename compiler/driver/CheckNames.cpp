// Index checks speak of the graph's inputs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/CheckNames.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace ortc::driver {

void nameChecksAfterInputs(ModuleOp module) {
  module.walk([](nn::CheckIndexOp check) {
    Value value = check.getInput();
    while (Operation *op = value.getDefiningOp()) {
      if (!isa<nn::ReshapeOp, nn::TransposeOp, nn::SliceOp, nn::BroadcastOp, arith::ExtSIOp, arith::TruncIOp>(
              op))
        return;
      value = op->getOperand(0);
    }
    auto argument = cast<BlockArgument>(value);
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    if (!function)
      return;
    if (auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), train::kInput))
      check.setTensorAttr(name);
  });
}

} // namespace ortc::driver
