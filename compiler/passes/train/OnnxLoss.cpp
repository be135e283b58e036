// Losses that are ONNX functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/OnnxLoss.h"

#include "compiler/frontend/ImportTypes.h"
#include "compiler/passes/train/OnnxFunction.h"
#include "dialects/train/ElementTypes.h"

using namespace mlir;

namespace ortc::train {

using frontend::FunctionValue;
using nn::TensorBuilder;

static constexpr const char *kLabel = "label";

/// The output of the function: the loss, or its terms. Null, with an error, where it is neither.
static Value build(const LossOperands &operands) {
  const OnnxLoss &loss = *operands.loss.file;
  TensorBuilder &b = operands.b;
  llvm::StringMap<Value> values;
  for (auto [input, value] : llvm::zip_equal(loss.predictions, operands.predictions))
    values[input->name] = value;
  if (loss.label)
    values[kLabel] = operands.label;
  for (auto [input, value] : llvm::zip_equal(loss.inputs, operands.inputs))
    values[input->name] = value;
  Type element = TensorBuilder::elementOf(operands.prediction);
  FailureOr<SmallVector<Value>> results =
      computeFunction(b, *loss.file, operands.settings, values, element.isF64());
  if (failed(results))
    return {};
  auto type = TensorBuilder::typeOf(results->front());
  auto refuse = [&](const Twine &reason) {
    emitError(b.getLoc()) << "loss '" << loss.name << "': its output '"
                          << loss.file->getOutputs().front().name << "' is " << describeType(type) << ", "
                          << reason;
    return Value();
  };
  if (!isa<FloatType>(type.getElementType()))
    return refuse("and a loss is of floating point");
  Value value = b.cast(results->front(), element);
  if (type.getRank() == 0) {
    for (const char *key : {kReduction, kSampleWeight})
      if (operands.loss.given.count(key))
        return refuse("which has no samples for " + Twine(key) + "; leave it out, or give terms of samples");
    return value;
  }
  if (Value weight = operands.sampleWeight; weight && TensorBuilder::shapeOf(weight)[0] != type.getDimSize(0))
    return refuse("which does not have the samples of sample_weight in front");
  return reduceTerms(operands, {value});
}

FailureOr<RankedTensorType> inferInputType(const OnnxLoss &loss, const FunctionValue &value,
                                           RankedTensorType prediction, Location loc) {
  auto refuse = [&](const Twine &reason) {
    return emitError(loc) << "loss '" << loss.name << "': input '" << value.name << "' is "
                          << value.describeType() << ", " << reason;
  };
  if (!value.type)
    return refuse("and no input of the model has that name; declare its type in the file (onnxscript: "
                  "label: INT64[\"N\"])");
  Type element = frontend::importElementType(loc.getContext(), value.type);
  if (!isa<FloatType, IntegerType>(element))
    return refuse("which no label is");
  if (element.isF32() && prediction.getElementType().isF64())
    element = prediction.getElementType();
  else if (auto integer = dyn_cast<IntegerType>(element))
    element = IntegerType::get(loc.getContext(), integer.getWidth());
  if (!value.dims && isa<FloatType>(element))
    return prediction.clone(element);
  if (!value.dims)
    return refuse("without dimensions; declare them with the names of those of '" +
                  loss.predictions.front()->name + "'");
  DimSizes sizes;
  if (std::string wrong = matchShape(*loss.predictions.front(), prediction, sizes); !wrong.empty()) {
    emitError(loc) << "loss '" << loss.name << "': " << wrong;
    return failure();
  }
  SmallVector<int64_t> shape;
  for (const frontend::DeclaredDim &dim : *value.dims) {
    auto size = sizes.find(dim.name);
    if (dim.size < 0 && (dim.name.empty() || size == sizes.end()))
      return refuse("and its dimension '" + dim.name + "' is none of '" + loss.predictions.front()->name +
                    "', " + loss.predictions.front()->describeType());
    shape.push_back(dim.size < 0 ? size->second : dim.size);
  }
  return RankedTensorType::get(shape, element);
}

Status parseOnnxLoss(std::string_view text, LossSpec &parsed) {
  auto loss = std::make_shared<OnnxLoss>();
  std::string_view given;
  ORTC_TRY(openFunction(text, loss->file, given));
  const frontend::FunctionFile &file = *loss->file;
  loss->name = functionName(file);
  const std::string what = "loss " + quote(loss->name);
  LossDefinition &definition = loss->definition;
  definition.name = loss->name.c_str();
  definition.meaning = "an ONNX function";
  definition.predictions.clear();
  loss->label = file.findInput(kLabel);
  bool isBehind = false;
  for (const FunctionValue &input : file.getInputs())
    if (&input == loss->label)
      isBehind = true;
    else if (input.initial || input.isAttribute)
      definition.keys.push_back(functionKey(input, input.name.c_str()));
    else
      (isBehind ? loss->inputs : loss->predictions).push_back(&input);
  for (const frontend::FunctionInteger &each : file.getIntegers())
    definition.keys.push_back(functionKey(each, each.name.c_str()));
  if (loss->predictions.empty())
    return Status::refusal(what + " reads no output of the model: inputs in front of 'label' are outputs");
  if (file.getOutputs().size() != 1)
    return Status::refusal(what + " gives " + std::to_string(file.getOutputs().size()) +
                           " outputs; a loss is one: a number, or a term for every sample");
  for (const Key &key : definition.keys)
    for (const char *name : {kReduction, kSampleWeight, "weight"})
      if (StringRef(key.name) == name)
        return Status::refusal(what + " has a key " + quote(name) +
                               ", which all losses have; rename it in the file");
  for (const FunctionValue *each : loss->predictions)
    definition.predictions.push_back(each->name.c_str());
  definition.label = loss->label ? LabelKind::Values : LabelKind::None;
  definition.fits = [](ArrayRef<ArrayRef<int64_t>>) { return true; };
  definition.build = build;
  const FunctionValue &output = file.getOutputs().front();
  // One number, whatever its dimensions, has no samples.
  definition.comparesSamples =
      !output.dims ||
      llvm::all_of(*output.dims, [](const frontend::DeclaredDim &dim) { return dim.size == 1; });
  ORTC_TRY(parseSettings(!given.empty(), given, what, keysOf(definition), nullptr).moveTo(parsed.given));
  ORTC_TRY(checkRequired(definition.keys, Settings(definition.keys, parsed.given), what));
  parsed.name = loss->name;
  parsed.file = std::move(loss);
  return Status();
}

} // namespace ortc::train
