// Write the optimizer's update of every parameter.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function for all parameters. What they share (bias corrections, the clipping factor) is computed once
// on scalars; the rest is elementwise per parameter. Gradients are clipped by value first, then by their
// common norm.
#include "passes/train/Optimizers.h"
#include "passes/train/Passes.h"
#include "passes/train/ProgramTensors.h"
#include "passes/train/TrainingProgram.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

#define GEN_PASS_DEF_BUILDUPDATEPASS
#include "passes/train/Passes.h.inc"

namespace {

class UpdateBuilder {
public:
  UpdateBuilder(ModuleOp module, const UpdateOptions &options)
      : module(module), options(options), parameters(findParameters(module)),
        composer(module, "update", NameLoc::get(StringAttr::get(module.getContext(), "update"))),
        tensors(module, composer), b(composer.getBuilder()) {}

  LogicalResult run();

private:
  LogicalResult checkNames();
  LogicalResult takeArguments();
  LogicalResult advanceStep();
  LogicalResult advanceCorrections();
  LogicalResult clipValues();
  LogicalResult clipNorm();
  FailureOr<StepScalars> scalarsOf(TensorOp parameter);
  LogicalResult updateParameter(TensorOp parameter, Value value, Value gradient);
  /// Declares a hyper-parameter under `name` and stores its value.
  LogicalResult scalar(StringRef name, double initial, Value &value);
  void give(NamedAttribute attribute, Value value) { results.push_back({attribute, value}); }

  ModuleOp module;
  const UpdateOptions &options;
  SmallVector<TensorOp> parameters;
  FunctionComposer composer;
  ProgramTensors tensors;
  TensorBuilder &b;
  SmallVector<Value> values, gradients; ///< as `parameters`
  Value correction1, correction2;
  SmallVector<Port> results;
};

LogicalResult UpdateBuilder::scalar(StringRef name, double initial, Value &value) {
  FailureOr<Value> found = tensors.getScalar(name, initial);
  if (succeeded(found))
    value = *found;
  return found;
}

/// A checkpoint is a safetensors file, and the header of one has an entry that is no tensor.
LogicalResult UpdateBuilder::checkNames() {
  for (auto tensor : module.getOps<TensorOp>())
    if (tensor.getName() == "__metadata__" && tensor.getRole() != Role::constant)
      return tensor.emitError()
             << "the model has a tensor named '__metadata__', which is the name of the metadata in a "
                "checkpoint; rename it, or freeze it";
  return success();
}

LogicalResult UpdateBuilder::takeArguments() {
  for (TensorOp parameter : parameters) {
    RankedTensorType type = parameter.getStoredType();
    if (type.getElementTypeBitWidth() < 32)
      return parameter.emitError() << "parameter '" << parameter.getName() << "' is of type "
                                   << type.getElementType()
                                   << ", but parameters are trained in f32 or f64; freeze it";
    FailureOr<Value> value = composer.getArgument(symbolAttribute(parameter, kTensor), type);
    FailureOr<Value> gradient = composer.getArgument(symbolAttribute(parameter, kGradient), type);
    if (failed(value) || failed(gradient))
      return failure();
    values.push_back(*value);
    gradients.push_back(*gradient);
  }
  return success();
}

/// The number of steps done: part of a checkpoint; no formula reads it.
LogicalResult UpdateBuilder::advanceStep() {
  FailureOr<Port> step = tensors.getState("step", RankedTensorType::get({}, b.getI64Type()));
  if (failed(step))
    return failure();
  give(step->attribute, b.add(step->value, b.constantLike(step->value, 1)));
  return success();
}

LogicalResult UpdateBuilder::advanceCorrections() {
  const OptimizerSpec &spec = options.optimizer;
  auto type = RankedTensorType::get({}, b.getF64Type());
  for (auto [name, beta, initial, result] :
       {std::tuple("bias_correction1", "beta1", spec.beta1, &correction1),
        std::tuple("bias_correction2", "beta2", spec.beta2, &correction2)}) {
    Value decay;
    FailureOr<Port> state = tensors.getState(name, type);
    if (failed(state) || failed(scalar(beta, initial, decay)))
      return failure();
    *result = advanceCorrection(b, state->value, decay);
    give(state->attribute, *result);
  }
  return success();
}

LogicalResult UpdateBuilder::clipValues() {
  Value limit;
  if (failed(scalar("clip_value", *options.clipValue, limit)))
    return failure();
  for (Value &gradient : gradients) {
    Value high = spread(b, limit, gradient), low = b.neg(high);
    gradient = b.minimum(b.maximum(gradient, low), high);
  }
  return success();
}

/// g *= min(1, limit / (norm + 1e-6)). Squares are summed in the gradient's type per parameter, in f64 over
/// them.
LogicalResult UpdateBuilder::clipNorm() {
  Value limit, sum;
  if (failed(scalar("clip_norm", *options.clipNorm, limit)))
    return failure();
  for (Value gradient : gradients) {
    auto axes = llvm::to_vector(llvm::seq<int64_t>(0, TensorBuilder::rankOf(gradient)));
    Value squares = b.cast(b.sum(b.mul(gradient, gradient), axes), b.getF64Type());
    sum = sum ? b.add(sum, squares) : squares;
  }
  if (!sum)
    return success();
  Value factor = b.div(limit, b.addScalar(b.sqrt(sum), 1e-6));
  Value one = b.constantLike(factor, 1);
  factor = b.select(b.compare(arith::CmpFPredicate::ULT, factor, one), factor, one); // NaN stays NaN
  for (Value &gradient : gradients)
    gradient = b.mul(gradient, spread(b, factor, gradient));
  return success();
}

FailureOr<StepScalars> UpdateBuilder::scalarsOf(TensorOp parameter) {
  const OptimizerSpec &spec = options.optimizer;
  StepScalars scalars;
  if (failed(scalar("lr", spec.lr, scalars.lr)))
    return failure();
  auto group = llvm::find_if(options.groups, [&](const GroupSpec &candidate) {
    return candidate.pattern.matches(parameter.getName().str());
  });
  bool grouped = group != options.groups.end();
  std::string prefix = "group" + std::to_string(group - options.groups.begin()) + ".";
  if (grouped && group->lrScale != 1) {
    Value lrScale;
    if (failed(scalar(prefix + "lr_scale", group->lrScale, lrScale)))
      return failure();
    scalars.lr = b.mul(scalars.lr, lrScale);
  }
  bool ownDecay = grouped && group->weightDecay;
  double weightDecay = ownDecay ? *group->weightDecay : spec.weightDecay;
  if (weightDecay != 0 &&
      failed(scalar(ownDecay ? prefix + "weight_decay" : "weight_decay", weightDecay, scalars.weightDecay)))
    return failure();
  if (spec.kind == OptimizerKind::Sgd) {
    if (spec.momentum != 0 && failed(scalar("momentum", spec.momentum, scalars.momentum)))
      return failure();
    return scalars;
  }
  scalars.correction1 = correction1;
  scalars.correction2 = correction2;
  if (failed(scalar("beta1", spec.beta1, scalars.beta1)) ||
      failed(scalar("beta2", spec.beta2, scalars.beta2)) ||
      failed(scalar("epsilon", spec.epsilon, scalars.epsilon)))
    return failure();
  return scalars;
}

LogicalResult UpdateBuilder::updateParameter(TensorOp parameter, Value value, Value gradient) {
  b.setLoc(parameter.getLoc());
  FailureOr<StepScalars> scalars = scalarsOf(parameter);
  if (failed(scalars))
    return failure();
  NamedAttribute updated = symbolAttribute(parameter, kUpdate);
  if (options.optimizer.kind == OptimizerKind::Sgd) {
    FailureOr<Port> buffer(Port{updated, nullptr});
    if (scalars->momentum)
      buffer = tensors.getState("momentum_buffer", parameter);
    if (failed(buffer))
      return failure();
    MomentumUpdate update = buildSgd(b, *scalars, options.optimizer.nesterov, value, gradient, buffer->value);
    give(updated, update.parameter);
    if (update.momentum)
      give(buffer->attribute, update.momentum);
    return success();
  }
  FailureOr<Port> average = tensors.getState("exp_avg", parameter);
  FailureOr<Port> averageSquare = tensors.getState("exp_avg_sq", parameter);
  if (failed(average) || failed(averageSquare))
    return failure();
  AdamUpdate update = buildAdam(b, *scalars, options.optimizer.kind == OptimizerKind::AdamW, value, gradient,
                                average->value, averageSquare->value);
  give(updated, update.parameter);
  give(average->attribute, update.average);
  give(averageSquare->attribute, update.averageSquare);
  return success();
}

LogicalResult UpdateBuilder::run() {
  if (failed(checkNames()) || failed(takeArguments()) || failed(advanceStep()))
    return failure();
  if (options.optimizer.kind != OptimizerKind::Sgd && failed(advanceCorrections()))
    return failure();
  if (options.clipValue && failed(clipValues()))
    return failure();
  if (options.clipNorm && failed(clipNorm()))
    return failure();
  for (auto [parameter, value, gradient] : llvm::zip_equal(parameters, values, gradients))
    if (failed(updateParameter(parameter, value, gradient)))
      return failure();
  composer.finish(results, /*dropArguments=*/true);
  return success();
}

} // namespace

/// acc + g / N for every parameter. Dividing here and not after the sum gives what PyTorch gives for a loss / N.
static LogicalResult buildAccumulate(ModuleOp module, int64_t steps) {
  FunctionComposer composer(module, "accumulation",
                            NameLoc::get(StringAttr::get(module.getContext(), "accumulate")));
  ProgramTensors tensors(module, composer);
  TensorBuilder &b = composer.getBuilder();
  FailureOr<Value> count = tensors.getScalar("accumulate", static_cast<double>(steps));
  if (failed(count))
    return failure();
  Value share = b.div(b.constantLike(*count, 1), *count);
  SmallVector<Port> sums, updates;
  for (TensorOp parameter : findParameters(module)) {
    FailureOr<Value> gradient =
        composer.getArgument(symbolAttribute(parameter, kGradient), parameter.getStoredType());
    FailureOr<Port> state = tensors.getState("accumulated", parameter);
    if (failed(gradient) || failed(state))
      return failure();
    Value sum = b.add(state->value, b.mul(*gradient, spread(b, share, *gradient)));
    sums.push_back({symbolAttribute(parameter, kGradient), sum});
    updates.push_back({state->attribute, sum});
  }
  sums.append(updates);
  composer.finish(sums, /*dropArguments=*/false);
  return success();
}

LogicalResult buildUpdate(ModuleOp module, const UpdateOptions &options) {
  if (failed(UpdateBuilder(module, options).run()))
    return failure();
  return success(options.accumulate == 1 || succeeded(buildAccumulate(module, options.accumulate)));
}

namespace {

struct BuildUpdatePass : impl::BuildUpdatePassBase<BuildUpdatePass> {
  using Base::Base;

  void runOnOperation() override {
    UpdateOptions parsed;
    std::string error;
    bool good = parseOptimizer(std::string(optimizer), parsed.optimizer, error);
    SmallVector<StringRef> specs;
    StringRef(groups.getValue()).split(specs, ';', -1, /*KeepEmpty=*/false);
    for (StringRef spec : specs)
      good = good && parseGroup(spec, parsed.groups.emplace_back(), error);
    if (!good) {
      getOperation().emitError(error);
      return signalPassFailure();
    }
    if (clipNorm > 0)
      parsed.clipNorm = clipNorm;
    if (clipValue > 0)
      parsed.clipValue = clipValue;
    parsed.accumulate = accumulate;
    if (failed(buildUpdate(getOperation(), parsed)))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::train
