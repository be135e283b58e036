// Write the losses of graph outputs and labels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function per binding, because shapes differ. The forward functions say which outputs there are;
// whichever of both modes exists is asked, as they have the same outputs.
#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/ProgramParts.h"
#include "compiler/passes/train/ProgramTensors.h"
#include "compiler/passes/train/TrainingProgram.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::train {

#define GEN_PASS_DEF_BUILDLOSSPASS
#include "compiler/passes/train/Passes.h.inc"

namespace {
struct Output {
  StringAttr name;
  RankedTensorType type;
};
} // namespace

static bool isNarrow(Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  return element.isF16() || element.isBF16();
}

static SmallVector<Output> listOutputs(func::FuncOp forward) {
  SmallVector<Output> outputs;
  for (unsigned i = 0; i < forward.getNumResults(); ++i)
    if (auto name = forward.getResultAttrOfType<StringAttr>(i, kOutput))
      outputs.push_back({name, cast<RankedTensorType>(forward.getResultTypes()[i])});
  return outputs;
}

/// The output of that name; without a name the only one, or the first of floating point.
static FailureOr<Output> chooseOutput(func::FuncOp forward, StringRef name) {
  SmallVector<Output> outputs = listOutputs(forward);
  for (const Output &output : outputs)
    if (name.empty() ? outputs.size() == 1 || isa<FloatType>(output.type.getElementType())
                     : output.name == name)
      return output;
  InFlightDiagnostic error = forward.emitError();
  if (name.empty())
    error << "the graph has no floating-point output for the loss";
  else
    error << "the graph has no output '" << name << "' for the loss";
  error << "; its outputs are";
  for (auto [i, output] : llvm::enumerate(outputs))
    error << (i ? ", " : " ") << output.name;
  return error;
}

/// Whether the type of the label says that it holds probabilities, as in PyTorch: of floating point and the
/// logits' shape.
static bool holdsProbabilities(Type label, RankedTensorType prediction) {
  auto type = dyn_cast_or_null<RankedTensorType>(label);
  return type && isa<FloatType>(type.getElementType()) && type.getShape() == prediction.getShape();
}

namespace {

/// One binding's function of all losses.
class LossBuilder {
public:
  LossBuilder(ModuleOp module, func::FuncOp forward, int64_t binding, StringRef lossInput)
      : module(module), forward(forward), lossInput(lossInput),
        composer(module, partName("loss", binding),
                 NameLoc::get(StringAttr::get(module.getContext(), "loss"), forward.getLoc())),
        b(composer.getBuilder()) {}

  LogicalResult run(ArrayRef<LossSpec> losses, bool countsLabels);

private:
  FailureOr<Value> build(LossSpec loss);
  FailureOr<Value> takePrediction(const LossSpec &loss, StringRef name);
  FailureOr<Value> takeLabel(LossSpec &loss, RankedTensorType prediction);
  FailureOr<Value> weigh(const LossSpec &loss, Value value);
  LogicalResult checkName(const LossSpec &loss);
  FailureOr<Port> countLabels(const LossSpec &loss);

  ModuleOp module;
  func::FuncOp forward;
  StringRef lossInput;
  FunctionComposer composer;
  nn::TensorBuilder &b;
};

} // namespace

/// An output as the loss computes with it: in f32 at least.
FailureOr<Value> LossBuilder::takePrediction(const LossSpec &loss, StringRef name) {
  FailureOr<Output> output = chooseOutput(forward, name);
  if (failed(output))
    return failure();
  if (hasClasses(loss) && output->type.getRank() <= 1 && output->type.getNumElements() == 1)
    return forward.emitError() << "output '" << output->name.getValue() << "' is one number, and loss "
                               << loss.name
                               << " needs classes; if the graph computes its loss, give --loss output:"
                               << output->name.getValue();
  FailureOr<Value> prediction = composer.getArgument({kOutput, output->name}, output->type);
  if (succeeded(prediction) && isNarrow(output->type))
    prediction = b.cast(*prediction, b.getF32Type());
  return prediction;
}

FailureOr<Value> LossBuilder::takeLabel(LossSpec &loss, RankedTensorType prediction) {
  Type type = findInput(forward, loss.label);
  if (mayHoldProbabilities(loss) && holdsProbabilities(type, prediction))
    loss.given[kProbabilities] = true;
  if (!type) {
    FailureOr<RankedTensorType> inferred = inferLabelType(loss, prediction, b.getLoc());
    if (failed(inferred))
      return failure();
    type = *inferred;
  }
  FailureOr<Value> label = composer.getArgument(nameAttribute(module.getContext(), kInput, loss.label), type);
  if (succeeded(label) && isNarrow(type))
    label = b.cast(*label, b.getF32Type());
  return label;
}

FailureOr<Value> LossBuilder::build(LossSpec loss) {
  SmallVector<Value> predictions;
  std::vector<std::string> names =
      loss.outputs.empty() ? std::vector<std::string>{lossInput.str()} : loss.outputs;
  for (const std::string &name : names) {
    FailureOr<Value> prediction = takePrediction(loss, name);
    if (failed(prediction))
      return failure();
    predictions.push_back(*prediction);
  }
  FailureOr<Value> label(Value{});
  if (needsLabel(loss) && failed(label = takeLabel(loss, nn::TensorBuilder::typeOf(predictions.front()))))
    return failure();
  FailureOr<SmallVector<LossInput>> listed =
      inferLossInputs(loss, nn::TensorBuilder::typeOf(predictions.front()), b.getLoc(),
                      [this](StringRef name) { return findInput(forward, name); });
  if (failed(listed))
    return failure();
  SmallVector<Value> inputs;
  for (const LossInput &each : *listed) {
    FailureOr<Value> input =
        composer.getArgument(nameAttribute(module.getContext(), kInput, each.name), each.type);
    if (failed(input))
      return failure();
    inputs.push_back(*input);
  }
  return buildLossValue(b, loss, predictions, *label, inputs);
}

/// Hosts find the value of a loss by its name.
LogicalResult LossBuilder::checkName(const LossSpec &loss) {
  std::string name = valueName(loss);
  bool isOutput =
      llvm::any_of(listOutputs(forward), [&](const Output &output) { return output.name == name; });
  if (!isOutput && !findInput(forward, name))
    return success();
  return forward.emitError() << "the graph has " << (isOutput ? "an output" : "an input") << " named '"
                             << name << "', which is the name of the value of loss '" << loss.id
                             << "'; give the loss another name";
}

/// Times its weight, which all bindings share.
FailureOr<Value> LossBuilder::weigh(const LossSpec &loss, Value value) {
  std::string name = weightName(loss);
  auto known = module.lookupSymbol<TensorOp>(name);
  FailureOr<Value> weight = known && known.getRole() == Role::scalar
                                ? composer.getArgument(symbolAttribute(known, kTensor), known.getStoredType())
                                : ProgramTensors(module, &composer).getScalar(name, loss.weight.value_or(1));
  if (failed(weight))
    return failure();
  return b.mul(value, b.cast(*weight, nn::TensorBuilder::elementOf(value)));
}

/// How many labels are not ignored, after the loss is built.
FailureOr<Port> LossBuilder::countLabels(const LossSpec &loss) {
  NamedAttribute name = nameAttribute(module.getContext(), kOutput, kLabelCount);
  Value label = composer.findArgument(nameAttribute(module.getContext(), kInput, loss.label));
  if (!hasClasses(loss) || !isa<IntegerType>(nn::TensorBuilder::elementOf(label)))
    return forward.emitError() << "--accumulate by=tokens counts labels that are class indices, and loss "
                               << loss.name << " has none; leave by=tokens out";
  for (const char *key : {kReduction, kClassWeight, kSampleWeight})
    if (loss.given.count(key))
      return forward.emitError()
             << "--accumulate by=tokens takes the mean over labels that count alike, and loss " << loss.name
             << " has " << key << "; leave one of both out";
  Value counted = b.cast(b.differsFrom(label, settingsOf(loss).getInteger(kIgnoreIndex)), b.getF64Type());
  return Port{name, b.sum(counted, llvm::to_vector(llvm::seq(nn::TensorBuilder::rankOf(counted))))};
}

LogicalResult LossBuilder::run(ArrayRef<LossSpec> losses, bool countsLabels) {
  SmallVector<Port> results;
  SmallVector<Value> values;
  for (const LossSpec &loss : losses) {
    FailureOr<Value> value = build(loss);
    if (failed(value))
      return failure();
    values.push_back(*value);
    if (losses.size() == 1)
      continue;
    if (failed(checkName(loss)))
      return failure();
    results.push_back({nameAttribute(module.getContext(), kOutput, valueName(loss)), *value});
  }
  Type element = nn::TensorBuilder::elementOf(values.front());
  for (Value value : values)
    if (nn::TensorBuilder::elementOf(value).isF64())
      element = b.getF64Type();
  Value total;
  for (auto [loss, value] : llvm::zip_equal(losses, values)) {
    FailureOr<Value> part(b.cast(value, element));
    if ((losses.size() > 1 || loss.weight) && failed(part = weigh(loss, *part)))
      return failure();
    total = total ? b.add(total, *part) : *part;
  }
  results.insert(results.begin(), {unitAttribute(module.getContext(), kLoss), total});
  if (countsLabels) {
    FailureOr<Port> count = countLabels(losses.front());
    if (failed(count))
      return failure();
    results.push_back(*count);
  }
  composer.finish(results, /*dropArguments=*/false);
  return success();
}

LogicalResult buildLoss(ModuleOp module, ArrayRef<LossSpec> losses, StringRef lossInput, bool countsLabels) {
  if (losses.front().source == LossSource::None)
    return success();
  for (int64_t binding : findBindings(module)) {
    func::FuncOp forward = findPart(module, "forward_train", binding);
    if (!forward)
      forward = findPart(module, "forward_eval", binding);
    if (failed(LossBuilder(module, forward, binding, lossInput).run(losses, countsLabels)))
      return failure();
  }
  return success();
}

namespace {

struct BuildLossPass : impl::BuildLossPassBase<BuildLossPass> {
  using Base::Base;

  void runOnOperation() override {
    std::vector<LossSpec> losses(1);
    SmallVector<StringRef> specs;
    StringRef(loss.getValue()).split(specs, ';', -1, /*KeepEmpty=*/false);
    for (StringRef spec : specs)
      if (Status status = addLoss(spec, losses); !status.isOk()) {
        getOperation().emitError(status.getMessage());
        return signalPassFailure();
      }
    if (failed(buildLoss(getOperation(), losses, lossInput)))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::train
