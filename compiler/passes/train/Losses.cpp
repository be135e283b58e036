// Losses as tensor programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"

#include "compiler/passes/train/OnnxLoss.h"
#include "compiler/passes/train/losses/FactorFiles.h"
#include "dialects/train/ElementTypes.h"
#include "dialects/train/TrainDialect.h"
#include "support/EditDistance.h"
#include "support/Plural.h"
#include "support/Text.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

constinit const Range kNumber = {"a number from -3.4e38 to 3.4e38", [](double value) {
                                   return std::fabs(value) <= std::numeric_limits<float>::max();
                                 }};
constinit const Range kFile = {"an .npy file, or none", [](double) { return true; }};

ArrayRef<const LossDefinition *> listLosses() {
#define ORTC_LOSS(name) &k##name##Loss,
  static const LossDefinition *const kTable[] = {
#include "compiler/passes/train/losses/Table.inc"
  };
#undef ORTC_LOSS
  return kTable;
}

const LossDefinition *findLoss(StringRef name) {
  auto found = llvm::find_if(listLosses(), [&](const LossDefinition *each) { return name == each->name; });
  return found == listLosses().end() ? nullptr : *found;
}

const LossDefinition *findLoss(const LossSpec &loss) {
  return loss.file ? &loss.file->definition : findLoss(StringRef(loss.name));
}

std::vector<Key> keysOf(const LossDefinition &definition) {
  std::vector<Key> keys = definition.keys;
  if (llvm::none_of(keys, [](const Key &key) { return key.name == std::string_view(kReduction); }))
    keys.push_back({kReduction, "mean", kWord, "what becomes of the terms", false, {"mean", "sum"}});
  keys.push_back({kSampleWeight, false, kSwitch, "an input of this name has a factor for every sample"});
  return keys;
}

Expected<LossSpec> parseLoss(std::string_view text) {
  std::string_view word, rest;
  bool hasRest = false;
  splitSpec(text, word, rest, hasRest);
  LossSpec parsed;
  parsed.name = std::string(word);
  parsed.text = std::string(text);
  parsed.isGiven = true;
  const LossDefinition *definition = findLoss(word);
  const std::string what = "loss " + quote(word);
  if (word == "onnx" && hasRest) {
    ORTC_TRY(parseOnnxLoss(rest, parsed));
  } else if (word == "output") {
    parsed.source = LossSource::Output;
    parsed.outputs = {std::string(rest)};
    if (rest.empty())
      return Status::refusal(what + " needs the name of the graph output that is the loss: output:NAME");
  } else if (word == "none") {
    parsed.source = LossSource::None;
    ORTC_TRY(parseSettings(hasRest, rest, what, {}, nullptr).moveTo(parsed.given));
  } else if (!definition) {
    std::vector<std::string> words;
    for (const LossDefinition *each : listLosses())
      words.push_back(each->name);
    words.insert(words.end(), {"onnx:FILE", "output:NAME", "none"});
    return Status::refusal("there is no " + what + "; there are " + joinWords(words) +
                           suggestWord(word, words));
  } else {
    ORTC_TRY(
        parseSettings(hasRest, rest, what, keysOf(*definition), definition->contradict).moveTo(parsed.given));
  }
  return parsed;
}

static const LossDefinition &definitionOf(const LossSpec &loss) {
  const LossDefinition *definition = findLoss(loss);
  assert(definition && "a spec of a formula names one");
  return *definition;
}

Settings settingsOf(const LossSpec &loss) { return Settings(keysOf(definitionOf(loss)), loss.given); }

bool needsLabel(const LossSpec &loss) {
  return loss.source == LossSource::Formula && definitionOf(loss).label != LabelKind::None;
}

bool hasClasses(const LossSpec &loss) {
  return needsLabel(loss) && definitionOf(loss).label == LabelKind::Classes;
}

bool mayHoldProbabilities(const LossSpec &loss) {
  return hasClasses(loss) && settingsOf(loss).has(kProbabilities);
}

/// Whether labels are class indices.
static bool takesIndices(const LossSpec &loss) {
  return hasClasses(loss) && !(mayHoldProbabilities(loss) && settingsOf(loss).isOn(kProbabilities));
}

/// The class axis: PyTorch's default 1 is 0 for a single sample.
static FailureOr<int64_t> findClassAxis(const LossSpec &loss, RankedTensorType type, Location loc) {
  int64_t given = settingsOf(loss).getInteger(kAxis);
  int64_t rank = type.getRank(), axis = given < 0 ? given + rank : given;
  if (rank == 1 && given == 1)
    axis = 0;
  if (axis < 0 || axis >= rank)
    return emitError(loc) << "loss " << loss.name << ": axis " << given << " is outside the output's "
                          << formatCount(rank, "dimension");
  return axis;
}

/// Floating point of at least f32.
static Type computeType(Type element) {
  return element.getIntOrFloatBitWidth() < 32 ? Type(Float32Type::get(element.getContext())) : element;
}

FailureOr<RankedTensorType> inferLabelType(const LossSpec &loss, RankedTensorType prediction, Location loc) {
  const LossDefinition &definition = definitionOf(loss);
  if (loss.file && loss.file->label)
    return inferInputType(*loss.file, *loss.file->label, prediction, loc);
  if (definition.inferLabel)
    return RankedTensorType::get(definition.inferLabel(settingsOf(loss), prediction),
                                 IntegerType::get(loc.getContext(), 64));
  if (!takesIndices(loss)) {
    bool isOfRows = definition.label == LabelKind::Rows && prediction.getRank() > 0;
    return RankedTensorType::get(prediction.getShape().drop_back(isOfRows),
                                 computeType(prediction.getElementType()));
  }
  FailureOr<int64_t> axis = findClassAxis(loss, prediction, loc);
  if (failed(axis))
    return failure();
  return RankedTensorType::get(nn::dropAxes(prediction.getShape(), {*axis}),
                               IntegerType::get(loc.getContext(), 64));
}

FailureOr<SmallVector<LossInput>> inferLossInputs(const LossSpec &loss, RankedTensorType prediction,
                                                  Location loc, function_ref<Type(StringRef)> known) {
  SmallVector<LossInput> inputs;
  if (loss.source != LossSource::Formula)
    return inputs;
  const Settings settings = settingsOf(loss);
  if (auto list = definitionOf(loss).listInputs)
    inputs = list(settings, prediction);
  for (const frontend::FunctionValue *input :
       loss.file ? ArrayRef(loss.file->inputs) : ArrayRef<const frontend::FunctionValue *>()) {
    Type given = known ? known(inputName(loss, input->name)) : Type();
    FailureOr<RankedTensorType> type = given ? FailureOr(cast<RankedTensorType>(given))
                                             : inferInputType(*loss.file, *input, prediction, loc);
    if (failed(type))
      return failure();
    inputs.push_back({input->name, *type});
  }
  if (settings.isOn(kSampleWeight)) {
    FailureOr<RankedTensorType> label = inferLabelType(loss, prediction, loc);
    if (failed(label))
      return failure();
    // Losses without a label compare vectors along the last axis.
    ArrayRef<int64_t> shape = label->getShape().drop_back(!needsLabel(loss));
    inputs.push_back({kSampleWeight,
                      RankedTensorType::get(shape.take_front(1), computeType(prediction.getElementType()))});
  }
  for (LossInput &input : inputs) {
    input.name = inputName(loss, input.name);
    if (Type given = known ? known(input.name) : Type(); given && given != input.type)
      return emitError(loc) << "the model's input '" << input.name << "' is " << describeType(given)
                            << ", and loss " << loss.name << " reads " << describeType(input.type)
                            << " of that name; rename it in the model";
  }
  return inputs;
}

static SmallVector<int64_t> allAxes(Value x) {
  return llvm::to_vector(llvm::seq<int64_t>(0, TensorBuilder::rankOf(x)));
}

static Value sumAll(TensorBuilder &b, Value x) { return b.sum(x, allAxes(x)); }

Value reduceTerms(const LossOperands &operands, const LossTerms &terms) {
  TensorBuilder &b = operands.b;
  const std::string &reduction = operands.settings.getWord(kReduction);
  auto type = TensorBuilder::typeOf(terms.each);
  Value each = terms.each, counts = terms.counts, weight = operands.sampleWeight;
  const int64_t samples = type.getRank() == 0 ? 1 : type.getDimSize(0);
  auto weigh = [&](Value x) {
    SmallVector<int64_t> leading(TensorBuilder::rankOf(weight), 0);
    return b.mul(x, b.broadcast(weight, type.getShape(), leading));
  };
  if (weight)
    each = weigh(each);
  Value total = sumAll(b, each);
  const int64_t number = reduction == "mean" ? type.getNumElements() / terms.size : samples;
  if (reduction == "sum")
    return terms.sign < 0 ? b.neg(total) : total;
  if (counts && reduction == "mean") {
    counts = b.cast(counts, type.getElementType());
    counts = sumAll(b, weight ? weigh(counts) : counts);
  } else if (weight) {
    counts = b.mulScalar(sumAll(b, weight), static_cast<double>(number) / static_cast<double>(samples));
  } else {
    return b.mulScalar(total, terms.sign / static_cast<double>(number));
  }
  Value mean = b.div(total, counts);
  return terms.sign < 0 ? b.neg(mean) : mean;
}

/// The label as the loss computes with it, or an error.
static FailureOr<Value> prepareLabel(TensorBuilder &b, const LossSpec &loss, Value label,
                                     RankedTensorType expected) {
  auto type = TensorBuilder::typeOf(label);
  bool bothInteger = isa<IntegerType>(type.getElementType()) && isa<IntegerType>(expected.getElementType());
  bool bothFloat = isa<FloatType>(type.getElementType()) && isa<FloatType>(expected.getElementType());
  if (type.getShape() != expected.getShape() || !(bothInteger || bothFloat))
    return emitError(b.getLoc()) << "the label has type " << describeType(type) << " but loss " << loss.name
                                 << " needs " << describeType(expected);
  if (type.getElementType().isInteger(32))
    return label; // an index type, too
  return b.cast(label, expected.getElementType());
}

/// Whether the formula takes what the loss reads.
static LogicalResult checkPredictions(const LossSpec &loss, ArrayRef<Value> predictions, Location loc) {
  const LossDefinition &definition = definitionOf(loss);
  auto type = TensorBuilder::typeOf(predictions.front());
  if (const char *reason = definition.misshape ? definition.misshape(settingsOf(loss), type) : nullptr)
    return emitError(loc) << "loss " << loss.name << " cannot take an output of type " << describeType(type)
                          << ": " << reason;
  SmallVector<ArrayRef<int64_t>> shapes(llvm::map_range(predictions, TensorBuilder::shapeOf));
  assert(shapes.size() == definition.predictions.size() && "addLoss() has counted them");
  if (definition.fits ? definition.fits(shapes) : llvm::all_equal(shapes))
    return success();
  InFlightDiagnostic error = emitError(loc)
                             << "the outputs that loss " << loss.name << " reads do not fit together:";
  for (auto [i, prediction] : llvm::enumerate(predictions))
    error << (i ? ", " : " ") << definition.predictions[i] << " has type "
          << describeType(prediction.getType());
  return error;
}

FailureOr<Value> buildLossValue(TensorBuilder &b, const LossSpec &loss, ValueRange given, Value label,
                                ArrayRef<Value> inputs) {
  SmallVector<Value> predictions(given);
  Type element;
  for (Value prediction : predictions) {
    if (!isa<FloatType>(TensorBuilder::elementOf(prediction)))
      return emitError(b.getLoc()) << "a loss needs a floating-point output, not "
                                   << describeType(prediction.getType());
    Type own = computeType(TensorBuilder::elementOf(prediction));
    element = element && element.isF64() ? element : own;
  }
  for (Value &prediction : predictions)
    prediction = b.cast(prediction, element);
  Value x = predictions.front();
  if (loss.source == LossSource::Output) {
    if (TensorBuilder::typeOf(x).getNumElements() != 1)
      return emitError(b.getLoc()) << "output '" << loss.outputs.front() << "' of type "
                                   << describeType(given.front().getType())
                                   << " cannot be the loss: a loss has one element";
    return b.reshape(x, {});
  }
  if (failed(checkPredictions(loss, llvm::to_vector(given), b.getLoc())))
    return failure();
  FailureOr<Value> prepared(Value{});
  if (needsLabel(loss)) {
    FailureOr<RankedTensorType> labelType = inferLabelType(loss, TensorBuilder::typeOf(x), b.getLoc());
    if (failed(labelType) || failed(prepared = prepareLabel(b, loss, label, *labelType)))
      return failure();
  }
  FailureOr<int64_t> axis = TensorBuilder::rankOf(x) - 1;
  if (hasClasses(loss))
    axis = findClassAxis(loss, TensorBuilder::typeOf(x), b.getLoc());
  if (failed(axis))
    return failure();
  Settings settings = settingsOf(loss);
  LossOperands operands{.b = b,
                        .loss = loss,
                        .settings = settings,
                        .prediction = x,
                        .label = *prepared,
                        .axis = *axis,
                        .predictions = predictions};
  FailureOr<Value> factors = readFactors(operands);
  if (failed(factors))
    return failure();
  operands.factors = *factors;
  if (settings.isOn(kSampleWeight)) {
    operands.sampleWeight = inputs.back();
    inputs = inputs.drop_back();
  }
  operands.inputs = inputs;
  Value value = definitionOf(loss).build(operands);
  if (!value)
    return failure();
  return value;
}

} // namespace ortc::train
