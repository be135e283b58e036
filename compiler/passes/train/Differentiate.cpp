// Differentiate the loss, or outputs, for every parameter.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward and loss are inlined into one function, and the engine of compiler/autodiff appends the gradients.
// What the forward part saves for the backward part shows as uses of its values; deciding which are
// recomputed comes later.
#include "compiler/autodiff/Differentiate.h"

#include "compiler/passes/train/Channels.h"
#include "compiler/passes/train/ChunkHead.h"
#include "compiler/passes/train/LossScale.h"
#include "compiler/passes/train/Optimizers.h"
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/ProgramParts.h"
#include "compiler/passes/train/TrainingProgram.h"
#include "dialects/nn/Choices.h"
#include "dialects/nn/ValueNames.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::train {

#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "compiler/passes/train/Passes.h.inc"

namespace {

/// One binding's backward function while it is built.
struct Backward {
  std::unique_ptr<FunctionComposer> composer;
  SmallVector<Port> results; ///< loss or outputs, and updates of state
  SmallVector<Port> inputGradients;
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

/// Lets the ports speak of what has taken the place of their values.
static void replacePorts(SmallVectorImpl<Port> &ports, const llvm::DenseMap<Value, Value> &replaced) {
  for (Port &port : ports)
    if (Value now = replaced.lookup(port.value))
      port.value = now;
}

/// A result that follows from cotangents.
static Port backwardPort(NamedAttribute attribute, Value value) {
  MLIRContext *context = value.getContext();
  return {attribute, value, DictionaryAttr::get(context, {attribute, unitAttribute(context, kBackward)})};
}

/// The parameters that the function takes.
static SmallVector<Value> takeParameters(ArrayRef<TensorOp> parameters, Backward &backward) {
  SmallVector<Value> taken;
  for (TensorOp parameter : parameters)
    if (Value argument = backward.composer->findArgument(symbolAttribute(parameter, kTensor))) {
      backward.values.insert({parameter, argument});
      taken.push_back(argument);
    }
  return taken;
}

/// The output of that name.
static FailureOr<Port> findPort(func::FuncOp forward, ArrayRef<Port> values, StringRef name) {
  std::string known;
  for (const Port &port : values) {
    if (port.attribute.getName() != kOutput)
      continue;
    StringRef output = cast<StringAttr>(port.attribute.getValue()).getValue();
    if (output == name)
      return port;
    known += (known.empty() ? "'" : ", '") + output.str() + "'";
  }
  return forward.emitError() << "--train-outputs '" << name << "' is no output of the model; those are "
                             << known;
}

static FailureOr<Backward> differentiateBinding(ModuleOp module, int64_t binding,
                                                ArrayRef<TensorOp> parameters, TensorOp lossScale,
                                                const LossOptions &how,
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
  for (const std::string &name : how.outputs) {
    FailureOr<Port> port = findPort(forward, *outputs, name);
    if (failed(port))
      return failure();
    backward.results.push_back(*port);
  }
  for (const Port &port : *outputs)
    if (port.attribute.getName() == kUpdate)
      backward.results.push_back(port);

  SmallVector<Value> withRespectTo = takeParameters(parameters, backward);
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
  if (how.headChunk != 0 && failed(chunkHead(builder, how.headChunk, how.chunkBytes, options, what)))
    return failure();
  replacePorts(backward.results, what.replaced);
  auto result = autodiff::differentiate(builder, what.sources, what.cotangents, withRespectTo, options);
  if (failed(result))
    return failure();
  replacePorts(backward.results, result->replaced);
  for (auto [parameter, whole] : llvm::zip_equal(backward.values, result->gradients)) {
    if (!whole)
      continue;
    Value gradient = takeTrained(builder, cast<TensorOp>(parameter.first), whole);
    backward.gradients[parameter.first] =
        scale ? builder.mul(gradient, spread(builder, builder.div(one, scale), gradient)) : gradient;
  }
  return backward;
}

/// The output with that name, which must have gradients.
static FailureOr<Value> findOutput(func::FuncOp forward, ArrayRef<Port> values, StringRef name) {
  std::string known;
  for (const Port &port : values) {
    if (port.attribute.getName() != kOutput)
      continue;
    StringRef output = cast<StringAttr>(port.attribute.getValue()).getValue();
    bool isFloat = isa<FloatType>(nn::TensorBuilder::elementOf(port.value));
    if (output == name && isFloat)
      return port.value;
    if (isFloat)
      known += (known.empty() ? "'" : ", '") + output.str() + "'";
  }
  return forward.emitError() << "--cotangents '" << name << "' is no output of floating point; those are "
                             << (known.empty() ? "none" : known);
}

/// One binding's function of outputs, and of gradients for cotangents.
static FailureOr<Backward> differentiateOutputsOf(ModuleOp module, int64_t binding,
                                                  ArrayRef<TensorOp> parameters, const CotangentOptions &what,
                                                  const autodiff::DifferentiateOptions &options) {
  MLIRContext *context = module.getContext();
  func::FuncOp forward = findPart(module, "forward_train", binding);
  Backward backward;
  backward.composer =
      std::make_unique<FunctionComposer>(module, partName("backward", binding), forward.getLoc());
  FunctionComposer &composer = *backward.composer;
  FailureOr<SmallVector<Port>> values = composer.inlinePart(forward);
  if (failed(values))
    return failure();
  backward.results = *values;
  SmallVector<Value> withRespectTo = takeParameters(parameters, backward);
  for (const std::string &name : what.inputs) {
    Value input = composer.findArgument(nameAttribute(context, kInput, name));
    if (!input || !isa<FloatType>(nn::TensorBuilder::elementOf(input)))
      return forward.emitError() << "--input-gradients '" << name
                                 << "' is no input of floating point that the outputs depend on";
    withRespectTo.push_back(input);
  }
  nameArguments(composer);
  SmallVector<Value> sources, cotangents;
  for (const std::string &name : what.outputs) {
    FailureOr<Value> output = findOutput(forward, *values, name);
    if (failed(output))
      return failure();
    std::string given = name + ".cotangent";
    if (composer.findArgument(nameAttribute(context, kInput, given)))
      return forward.emitError() << "the model has an input '" << given
                                 << "', which is the name of a cotangent; rename it";
    FailureOr<Value> cotangent =
        composer.getArgument(nameAttribute(context, kInput, given), (*output).getType(),
                             DictionaryAttr::get(context, {nameAttribute(context, kInput, given),
                                                           unitAttribute(context, kBackward)}));
    if (failed(cotangent))
      return failure();
    nn::nameArgument(cast<BlockArgument>(*cotangent), given);
    sources.push_back(*output);
    cotangents.push_back(*cotangent);
  }
  auto result = autodiff::differentiate(composer.getBuilder(), sources, cotangents, withRespectTo, options);
  if (failed(result))
    return failure();
  replacePorts(backward.results, result->replaced);
  ArrayRef<Value> gradients = result->gradients;
  for (auto [parameter, gradient] : llvm::zip(backward.values, gradients))
    if (gradient)
      backward.gradients[parameter.first] = gradient;
  nn::TensorBuilder &builder = composer.getBuilder();
  for (auto [name, input, gradient] :
       llvm::zip_equal(what.inputs, ArrayRef(withRespectTo).drop_front(backward.values.size()),
                       gradients.drop_front(backward.values.size())))
    backward.inputGradients.push_back(backwardPort(nameAttribute(context, kOutput, name + ".gradient"),
                                                   gradient ? gradient : builder.zerosLike(input)));
  return backward;
}

/// Makes constants of parameters that no function has a gradient of and none is made of, and ends the functions: with a
/// gradient of every other parameter.
static void finishAll(ModuleOp module, ArrayRef<TensorOp> parameters, MutableArrayRef<Backward> functions,
                      ArrayRef<NamePattern> materialized, StringRef reason, bool areCut = false) {
  for (TensorOp parameter : parameters) {
    if (llvm::any_of(functions,
                     [&](const Backward &backward) { return backward.gradients.contains(parameter); }) ||
        llvm::any_of(materialized,
                     [&](const NamePattern &pattern) { return pattern.matches(parameter.getName().str()); }))
      continue;
    parameter.setRole(Role::constant);
    parameter.setReason(reason);
    parameter->removeAttr(kBound); // what nobody trains is a constant of the artifact
  }
  module.walk([](arith::SelectOp op) { op->removeAttr(nn::kChoice); }); // gradients know now
  for (Backward &backward : functions) {
    nn::TensorBuilder &builder = backward.composer->getBuilder();
    for (TensorOp parameter : parameters) {
      if (parameter.getRole() != Role::parameter)
        continue;
      Value gradient = backward.gradients.lookup(parameter);
      if (!gradient) // reached under another binding only, or under none
        gradient = builder.constant(storedTrainedType(parameter), 0);
      NamedAttribute attribute = symbolAttribute(parameter, kGradient);
      backward.results.push_back(areCut ? backwardPort(attribute, gradient) : Port{attribute, gradient});
    }
    llvm::append_range(backward.results, backward.inputGradients);
    backward.composer->finish(backward.results, /*dropArguments=*/true);
  }
}

LogicalResult differentiateOutputs(ModuleOp module, const CotangentOptions &what,
                                   const autodiff::DifferentiateOptions &options) {
  SmallVector<TensorOp> parameters = findParameters(module);
  SmallVector<Backward> functions;
  for (int64_t binding : findBindings(module)) {
    FailureOr<Backward> backward = differentiateOutputsOf(module, binding, parameters, what, options);
    if (failed(backward))
      return failure();
    functions.push_back(std::move(*backward));
  }
  finishAll(module, parameters, functions, what.materialized,
            "no gradient of an output with cotangents reaches it",
            /*areCut=*/true);
  return success();
}

LogicalResult differentiateLoss(ModuleOp module, const autodiff::DifferentiateOptions &options,
                                const LossOptions &what) {
  SmallVector<TensorOp> parameters = findParameters(module);
  FailureOr<TensorOp> scale = TensorOp();
  if (what.scale && failed(scale = declareLossScale(module, *what.scale)))
    return failure();
  SmallVector<Backward> functions;
  for (int64_t binding : findBindings(module)) {
    if (!findPart(module, "forward_train", binding) || !findPart(module, "loss", binding))
      continue;
    FailureOr<Backward> backward = differentiateBinding(module, binding, parameters, *scale, what, options);
    if (failed(backward))
      return failure();
    functions.push_back(std::move(*backward));
  }
  if (functions.empty())
    return success(); // forward only: nothing is trained
  finishAll(module, parameters, functions, what.materialized, "no gradient of the loss reaches it");
  return success();
}

namespace {

struct DifferentiatePass : impl::DifferentiatePassBase<DifferentiatePass> {
  using Base::Base;

  void runOnOperation() override {
    autodiff::DifferentiateOptions options;
    options.mutation = {mutateOperation, mutateOperand, mutateFactor};
    options.remarkSaved = remarkSaved;
    LossOptions what;
    if (headChunk >= 0)
      what.headChunk = headChunk;
    if (failed(differentiateLoss(getOperation(), options, what)))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::train
