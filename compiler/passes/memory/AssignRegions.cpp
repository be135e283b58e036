// Give every train.tensor its region and offset.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/memory/Passes.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/TrainDialect.h"

using namespace mlir;

namespace ortc::memory {

#define GEN_PASS_DEF_ASSIGNREGIONSPASS
#include "compiler/passes/memory/Passes.h.inc"

/// Whether a tensor starts as all zero bits.
static bool startsAsZero(train::TensorOp tensor) {
  auto initial = tensor.getInitialAttr();
  if (!initial)
    return true;
  auto dense = dyn_cast<DenseElementsAttr>(initial);
  if (!dense || !dense.isSplat())
    return false;
  if (auto number = dyn_cast<FloatAttr>(dense.getSplatValue<Attribute>()))
    return number.getValue().isPosZero();
  return dense.getSplatValue<APInt>().isZero();
}

namespace {

struct AssignRegionsPass : impl::AssignRegionsPassBase<AssignRegionsPass> {
  using Base::Base;

  void runOnOperation() override {
    int64_t constants = 0, persistent = 0;
    auto placeAll = [&](plan::Region region, int64_t &end, llvm::function_ref<bool(train::TensorOp)> wanted) {
      for (auto tensor : getOperation().getOps<train::TensorOp>()) {
        if (!wanted(tensor) || tensor->hasAttr(train::kBound))
          continue;
        tensor->setAttr(kRegion, plan::RegionAttr::get(&getContext(), region));
        tensor->setAttr(kOffset, Builder(&getContext()).getI64IntegerAttr(end));
        end += (plan::storedBytes(cast<ShapedType>(tensor.getType())) + 63) / 64 * 64;
      }
    };
    for (auto tensor : getOperation().getOps<train::TensorOp>())
      if (tensor->hasAttr(train::kBound))
        tensor->setAttr(kRegion, plan::RegionAttr::get(&getContext(), plan::Region::external));
    auto isConstant = [](train::TensorOp tensor) { return tensor.getRole() == train::Role::constant; };
    // Where initial values are left out, parameters are what starts as zero.
    auto isParameter = [](train::TensorOp tensor) {
      return tensor.getRole() == train::Role::parameter && tensor.getInitialAttr();
    };
    auto isOther = [&](train::TensorOp tensor) { return !isConstant(tensor) && !isParameter(tensor); };
    placeAll(plan::Region::constants, constants, isConstant);
    placeAll(plan::Region::persistent, persistent, isParameter);
    placeAll(plan::Region::persistent, persistent,
             [&](auto tensor) { return isOther(tensor) && !startsAsZero(tensor); });
    int64_t stored = persistent;
    placeAll(plan::Region::persistent, persistent,
             [&](auto tensor) { return isOther(tensor) && startsAsZero(tensor); });
    Builder builder(&getContext());
    getOperation()->setAttr(kConstantBytes, builder.getI64IntegerAttr(constants));
    getOperation()->setAttr(kPersistentBytes, builder.getI64IntegerAttr(persistent));
    getOperation()->setAttr(kStoredBytes, builder.getI64IntegerAttr(stored));
  }
};

} // namespace
} // namespace ortc::memory
