// Scaling the loss so that small gradients have numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/LossScale.h"

#include <limits>

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static constexpr StringLiteral kLossScale = "loss_scale";

FailureOr<TensorOp> declareLossScale(ModuleOp module, const LossScaleSpec &spec) {
  auto type = RankedTensorType::get({}, Float32Type::get(module.getContext()));
  auto initial = DenseElementsAttr::get(type, llvm::APFloat(static_cast<float>(spec.initial)));
  return ProgramTensors(module).declareState(kLossScale, type, initial);
}

FailureOr<Value> takeLossScale(TensorOp scale, FunctionComposer &composer) {
  return composer.getArgument(symbolAttribute(scale, kTensor), scale.getStoredType());
}

static Value isBelowInfinity(TensorBuilder &b, Value value) {
  Value limit = b.constantLike(value, std::numeric_limits<double>::infinity());
  return b.compare(arith::CmpFPredicate::OLT, value, limit);
}

Value areFinite(TensorBuilder &b, ArrayRef<Value> tensors) {
  Value all;
  for (Value tensor : tensors) {
    auto axes = llvm::to_vector(llvm::seq<int64_t>(0, TensorBuilder::rankOf(tensor)));
    Value largest = b.reduce(nn::ReduceKind::max, b.abs(tensor), axes); // NaN where one is
    Value isFinite = isBelowInfinity(b, largest);
    all = all ? b.logicalAnd(all, isFinite) : isFinite;
  }
  return all;
}

FailureOr<SmallVector<Port>> updateLossScale(const LossScaleSpec &spec, Value finite, ModuleOp module,
                                             FunctionComposer &composer, ProgramTensors &tensors) {
  TensorBuilder &b = composer.getBuilder();
  auto tensor = module.lookupSymbol<TensorOp>(kLossScale);
  auto count = RankedTensorType::get({}, b.getI64Type());
  FailureOr<Value> scale = takeLossScale(tensor, composer);
  FailureOr<Port> skipped = tensors.getState((kLossScale + ".skipped").str(), count);
  if (failed(scale) || failed(skipped))
    return failure();
  Value one = b.constant(count, 1), zero = b.constant(count, 0);
  SmallVector<Port> ports{{skipped->attribute, b.add(skipped->value, b.select(finite, zero, one))}};
  Value next = *scale;
  if (spec.isDynamic) {
    FailureOr<Port> tracker = tensors.getState((kLossScale + ".growth_tracker").str(), count);
    if (failed(tracker))
      return failure();
    Value steps = b.add(tracker->value, one);
    Value isDue =
        b.compare(arith::CmpIPredicate::sge, steps, b.constant(count, static_cast<double>(spec.interval)));
    ports.push_back({tracker->attribute, b.select(b.logicalAnd(finite, b.logicalNot(isDue)), steps, zero)});
    Value grown = b.mulScalar(*scale, spec.growth);
    Value grows = b.logicalAnd(isDue, isBelowInfinity(b, grown));
    next = b.select(finite, b.select(grows, grown, *scale), b.mulScalar(*scale, spec.backoff));
  }
  ports.push_back({symbolAttribute(tensor, kUpdate), next});
  return ports;
}

} // namespace ortc::train
