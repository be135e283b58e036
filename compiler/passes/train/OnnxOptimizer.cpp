// Optimizers that are ONNX functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/OnnxOptimizer.h"

#include "compiler/passes/train/OnnxFunction.h"
#include "dialects/train/ElementTypes.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "support/EditDistance.h"
#include "support/Text.h"

#include <cmath>

using namespace mlir;

namespace ortc::train {

using frontend::FunctionValue;
using nn::TensorBuilder;

static constexpr const char *kParameter = "parameter", *kGradient = "gradient", *kStep = "step",
                            *kNew = "_new";

static bool isScalarState(const FunctionValue &state) { return state.dims && state.dims->empty(); }

/// A state without dimensions has one element in as many dimensions as its parameter.
static std::optional<SmallVector<int64_t>> shapeOfScalar(ArrayRef<int64_t> file) {
  return SmallVector<int64_t>(file.size(), 1);
}

namespace {

/// One parameter's update: tensors have the layout of the file in the formula, and that of the plan around it.
class Formula {
public:
  explicit Formula(UpdateStep &step) : step(step), b(step.b), file(*step.file->file) {}

  LogicalResult run() {
    llvm::StringMap<Value> operands;
    operands[kParameter] = enter(step.parameter);
    operands[kGradient] = enter(step.gradient);
    for (const FunctionValue &input : file.getInputs())
      if (Value state = step.states.lookup(input.name))
        operands[input.name] = isScalarState(input) ? b.reshape(state, {}) : enter(state);
      else if (input.name == kStep)
        operands[kStep] = step.scalar(kUpdates);
      else if (step.settings.has(input.name) && std::holds_alternative<double>(step.settings.get(input.name)))
        operands[input.name] = scalarOf(input.name);
    Type element = TensorBuilder::elementOf(step.parameter);
    FailureOr<SmallVector<Value>> results =
        computeFunction(b, file, step.settings, operands, element.isF64());
    if (failed(results))
      return failure();
    for (auto [output, result] : llvm::zip_equal(file.getOutputs(), *results)) {
      StringRef name = StringRef(output.name).drop_back(StringRef(kNew).size());
      auto type = TensorBuilder::typeOf(result);
      if (type.getShape() != TensorBuilder::shapeOf(operands[name]) || !isa<FloatType>(type.getElementType()))
        return emitError(b.getLoc()) << "optimizer '" << step.file->name << "': output '" << output.name
                                     << "' is " << describeType(type) << ", and '" << name << "' is "
                                     << describeType(operands[name].getType());
      Value &target = name == kParameter ? step.parameter : step.states[name];
      result = b.cast(result, element);
      target = type.getRank() == 0 ? b.reshape(result, TensorBuilder::shapeOf(target)) : leave(result);
    }
    return success();
  }

private:
  /// A hyper-parameter; 0 where this parameter has none, as --no-decay makes it.
  Value scalarOf(StringRef name) {
    Value scalar = step.scalar(name);
    return scalar ? scalar : b.scalar(b.getF64Type(), 0);
  }
  bool isPermuted() const { return !isIdentityPermutation(step.axes); }
  Value enter(Value stored) { return isPermuted() ? b.transpose(stored, step.axes) : stored; }
  Value leave(Value value) {
    return isPermuted() ? b.transpose(value, invertPermutationVector(step.axes)) : value;
  }

  UpdateStep &step;
  TensorBuilder &b;
  const frontend::FunctionFile &file;
};

} // namespace

static void update(UpdateStep &step) { step.isRefused = failed(Formula(step).run()); }

/// What the names of inputs and outputs must be.
static Status checkNames(const frontend::FunctionFile &file, const std::string &what) {
  std::vector<std::string> inputs, outputs;
  for (const FunctionValue &input : file.getInputs())
    inputs.push_back(input.name);
  for (const FunctionValue &output : file.getOutputs())
    outputs.push_back(output.name);
  for (const char *name : {kParameter, kGradient, kLr})
    if (!file.findInput(name))
      return Status::refusal(what + " has no input " + quote(name) + "; its inputs are " + joinWords(inputs) +
                             suggestWord(name, inputs));
  std::string result = std::string(kParameter) + kNew;
  if (!file.findOutput(result))
    return Status::refusal(what + " has no output " + quote(result) + "; its outputs are " +
                           joinWords(outputs) + suggestWord(result, outputs));
  for (const std::string &output : outputs) {
    StringRef name = output;
    bool isNew = name.consume_back(kNew) && file.findInput(name.str());
    if (!isNew || name == kGradient || name == kLr || name == kStep)
      return Status::refusal(what + ": output " + quote(output) +
                             " is no new state; that of an input NAME is called NAME_new");
  }
  return Status();
}

static Status checkType(const FunctionValue &input, bool isTensor, const std::string &what) {
  if (isTensor && input.type != 0 && input.type != kFloat && input.type != kDouble)
    return Status::refusal(what + ": input " + quote(input.name) + " is " + input.describeType() +
                           ", and tensors of an optimizer are FLOAT");
  bool isNumber = input.type == 0 || input.type == kFloat || input.type == kDouble || input.type == kInt32 ||
                  input.type == kInt64;
  if (!isTensor && (!isNumber || !input.isScalar()))
    return Status::refusal(what + ": input " + quote(input.name) + " is " + input.describeType() +
                           ", and it is one number; state has an output " + quote(input.name + kNew));
  return Status();
}

/// Hyper-parameters of steps, and keys of groups, have names of their own; other flags' have a dot.
static Status checkKeys(const std::vector<Key> &keys, const std::string &what) {
  for (const Key &key : keys) {
    StringRef name = key.name;
    if (name.contains('.') || llvm::is_contained({"accumulate", "clip_norm", "clip_value", "ema_decay",
                                                  "lr_scale", "optimizer", "loss_scale", "step"},
                                                 name))
      return Status::refusal(what + " has a key " + quote(key.name) +
                             ", which is a name of a step's own; rename it in the file");
    const double *number = std::get_if<double>(&key.initial);
    if (name == kLr && number && *number < 0)
      return Status::refusal(what + ": the default of 'lr' is " + formatNumber(*number) +
                             ", but must be a number from 0 to 3.4e38");
  }
  return Status();
}

Status readOnnxOptimizer(std::string_view text, std::shared_ptr<const OnnxOptimizer> &read,
                         std::string_view &keys) {
  auto optimizer = std::make_shared<OnnxOptimizer>();
  ORTC_TRY(openFunction(text, optimizer->file, keys));
  const frontend::FunctionFile &file = *optimizer->file;
  optimizer->name = functionName(file);
  const std::string what = "optimizer " + quote(optimizer->name);
  ORTC_TRY(checkNames(file, what));
  OptimizerDefinition &definition = optimizer->definition;
  definition.name = optimizer->name.c_str();
  definition.meaning = "an ONNX function";
  definition.update = update;
  definition.spans = "whole tensors";
  for (const FunctionValue &input : file.getInputs()) {
    bool isState = file.findOutput(input.name + kNew) != nullptr;
    bool isTensor = isState || input.name == kGradient;
    ORTC_TRY(checkType(input, isTensor, what));
    if (isState && llvm::is_contained({"accumulated", "ema", "swa"}, StringRef(input.name)))
      return Status::refusal(what + " has a state " + quote(input.name) +
                             ", which is a name of a step's own; rename it in the file");
    if (input.name == kParameter || input.name == kGradient)
      continue;
    if (isState)
      definition.states.push_back({.name = input.name.c_str(),
                                   .shape = isScalarState(input) ? shapeOfScalar : nullptr,
                                   .initial = input.initial.value_or(0)});
    else if (input.name == kStep)
      definition.shared.push_back(countState());
    else if (input.name == kLr)
      definition.keys.push_back(lrKey(input.initial.value_or(std::nan(""))));
    else
      definition.keys.push_back(functionKey(input, input.name.c_str()));
  }
  for (const frontend::FunctionInteger &each : file.getIntegers())
    definition.keys.push_back(functionKey(each, each.name.c_str()));
  ORTC_TRY(checkKeys(definition.keys, what));
  read = std::move(optimizer);
  return Status();
}

} // namespace ortc::train
