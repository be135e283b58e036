// Differentiate the loss for every parameter.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward and loss are inlined into one function, and the engine of compiler/autodiff appends the gradients.
// What the forward part saves for the backward part shows as uses of its values; deciding which are
// recomputed comes later.
#include "compiler/autodiff/Differentiate.h"

#include "dialects/nn/ValueNames.h"
#include "passes/train/Channels.h"
#include "passes/train/ChunkHead.h"
#include "passes/train/LossScale.h"
#include "passes/train/Optimizers.h"
#include "passes/train/Passes.h"
#include "passes/train/ProgramParts.h"
#include "passes/train/TrainingProgram.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::train {

#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "passes/train/Passes.h.inc"

namespace {

/// One binding's backward function while it is built.
struct Backward {
  std::unique_ptr<FunctionComposer> composer;
  SmallVector<Port> results;                  ///< loss and updates of state
  llvm::MapVector<Operation *, Value> values; ///< parameters that the function takes
  llvm::DenseMap<Operation *, Value> gradients;
};

} // namespace

/// So that gradients of parameters and inputs have names.
static void nameArguments(FunctionComposer &composer) {
  for (auto [argument, attributes] :
       llvm::zip_equal(composer.getFunction().front().getArguments(), composer.getArgumentAttributes())) {
    if (auto symbol = attributes.getAs<FlatSymbolRefAttr>(kTensor))
      nn::nameArgument(argument, symbol.getValue());
    else if (auto name = attributes.getAs<StringAttr>(kInput))
      nn::nameArgument(argument, name.getValue());
  }
}

static FailureOr<Backward> differentiateBinding(ModuleOp module, int64_t binding,
                                                ArrayRef<TensorOp> parameters, TensorOp lossScale,
                                                std::optional<int64_t> headChunk,
                                                const autodiff::DifferentiateOptions &options) {
  func::FuncOp forward = findPart(module, "forward_train", binding), loss = findPart(module, "loss", binding);
  Backward backward;
  backward.composer =
      std::make_unique<FunctionComposer>(module, partName("backward", binding), forward.getLoc());
  FunctionComposer &composer = *backward.composer;
  FailureOr<SmallVector<Port>> outputs = composer.inlinePart(forward);
  if (failed(outputs))
    return failure();
  FailureOr<SmallVector<Port>> losses = composer.inlinePart(loss, *outputs);
  if (failed(losses))
    return failure();
  backward.results = *losses;
  for (const Port &port : *outputs)
    if (port.attribute.getName() == kUpdate)
      backward.results.push_back(port);

  SmallVector<Value> withRespectTo;
  for (TensorOp parameter : parameters)
    if (Value argument = composer.findArgument(symbolAttribute(parameter, kTensor))) {
      backward.values.insert({parameter, argument});
      withRespectTo.push_back(argument);
    }
  nameArguments(composer);
  nn::TensorBuilder &builder = composer.getBuilder();
  Value value = losses->front().value, scale;
  if (lossScale) {
    FailureOr<Value> taken = takeLossScale(lossScale, composer);
    if (failed(taken))
      return failure();
    scale = builder.cast(*taken, nn::TensorBuilder::elementOf(value));
  }
  Value one = builder.constantLike(value, 1);
  Differentiation what;
  what.sources.push_back(value);
  what.cotangents.push_back(scale ? scale : one);
  if (headChunk != 0 && failed(chunkHead(builder, headChunk, options, what)))
    return failure();
  for (Port &port : backward.results)
    if (Value now = what.replaced.lookup(port.value))
      port.value = now;
  auto result = autodiff::differentiate(builder, what.sources, what.cotangents, withRespectTo, options);
  if (failed(result))
    return failure();
  for (Port &port : backward.results)
    if (Value now = result->replaced.lookup(port.value))
      port.value = now;
  for (auto [parameter, whole] : llvm::zip_equal(backward.values, result->gradients)) {
    if (!whole)
      continue;
    Value gradient = takeTrained(builder, cast<TensorOp>(parameter.first), whole);
    backward.gradients[parameter.first] =
        scale ? builder.mul(gradient, spread(builder, builder.div(one, scale), gradient)) : gradient;
  }
  return backward;
}

LogicalResult differentiateLoss(ModuleOp module, const autodiff::DifferentiateOptions &options,
                                const std::optional<LossScaleSpec> &lossScale,
                                std::optional<int64_t> headChunk) {
  SmallVector<TensorOp> parameters = findParameters(module);
  FailureOr<TensorOp> scale = TensorOp();
  if (lossScale && failed(scale = declareLossScale(module, *lossScale)))
    return failure();
  SmallVector<Backward> functions;
  for (int64_t binding : findBindings(module)) {
    if (!findPart(module, "forward_train", binding) || !findPart(module, "loss", binding))
      continue;
    FailureOr<Backward> backward =
        differentiateBinding(module, binding, parameters, *scale, headChunk, options);
    if (failed(backward))
      return failure();
    functions.push_back(std::move(*backward));
  }
  if (functions.empty())
    return success(); // forward only: nothing is trained
  auto isReached = [&](TensorOp parameter) {
    return llvm::any_of(functions,
                        [&](const Backward &backward) { return backward.gradients.contains(parameter); });
  };
  for (TensorOp parameter : parameters) {
    if (isReached(parameter))
      continue;
    parameter.setRole(Role::constant);
    parameter.setReason("no gradient of the loss reaches it");
  }
  for (Backward &backward : functions) {
    nn::TensorBuilder &builder = backward.composer->getBuilder();
    for (TensorOp parameter : parameters) {
      if (parameter.getRole() != Role::parameter)
        continue;
      Value gradient = backward.gradients.lookup(parameter);
      if (!gradient) // reached under another binding only
        gradient = builder.constant(storedTrainedType(parameter), 0);
      backward.results.push_back({symbolAttribute(parameter, kGradient), gradient});
    }
    backward.composer->finish(backward.results, /*dropArguments=*/true);
  }
  return success();
}

namespace {

struct DifferentiatePass : impl::DifferentiatePassBase<DifferentiatePass> {
  using Base::Base;

  void runOnOperation() override {
    autodiff::DifferentiateOptions options;
    options.mutation = {mutateOperation, mutateOperand, mutateFactor};
    options.remarkSaved = remarkSaved;
    if (failed(differentiateLoss(getOperation(), options, std::nullopt,
                                 headChunk < 0 ? std::nullopt : std::optional<int64_t>(headChunk))))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::train
