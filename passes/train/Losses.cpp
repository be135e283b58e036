// Losses as tensor programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/train/Losses.h"

#include "dialects/train/TrainDialect.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

ArrayRef<const LossDefinition *> listLosses() {
#define ORTC_LOSS(name) &k##name##Loss,
  static const LossDefinition *const kTable[] = {
#include "passes/train/losses/Table.inc"
  };
#undef ORTC_LOSS
  return kTable;
}

const LossDefinition *findLoss(StringRef name) {
  auto found = llvm::find_if(listLosses(), [&](const LossDefinition *each) { return name == each->name; });
  return found == listLosses().end() ? nullptr : *found;
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
  if (word == "output") {
    parsed.source = LossSource::Output;
    parsed.output = std::string(rest);
    if (rest.empty())
      return Status::refusal(what + " needs the name of the graph output that is the loss: output:NAME");
  } else if (word == "none") {
    parsed.source = LossSource::None;
    ORTC_TRY(parseSettings(hasRest, rest, what, {}, nullptr).moveTo(parsed.given));
  } else if (!definition) {
    std::vector<std::string> words;
    for (const LossDefinition *each : listLosses())
      words.push_back(each->name);
    words.insert(words.end(), {"output:NAME", "none"});
    return Status::refusal("there is no " + what + "; there are " + joinWords(words));
  } else {
    ORTC_TRY(
        parseSettings(hasRest, rest, what, definition->keys, definition->contradict).moveTo(parsed.given));
  }
  return parsed;
}

std::string describeLosses() {
  std::string text;
  for (const LossDefinition *each : listLosses())
    text += formatSpec(each->name, each->keys) + ", ";
  return text + "output:NAME (the graph computes its loss) or none; default: " + LossSpec().name;
}

static const LossDefinition &definitionOf(const LossSpec &loss) {
  const LossDefinition *definition = findLoss(loss.name);
  assert(definition && "a spec of a formula names one");
  return *definition;
}

Settings settingsOf(const LossSpec &loss) { return Settings(definitionOf(loss).keys, loss.given); }

bool needsLabel(const LossSpec &loss) { return loss.source == LossSource::Formula; }

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
    return emitError(loc) << "loss " << loss.name << ": axis " << given << " is outside the output's " << rank
                          << " dimensions";
  return axis;
}

/// Floating point of at least f32.
static Type computeType(Type element) {
  return element.getIntOrFloatBitWidth() < 32 ? Type(Float32Type::get(element.getContext())) : element;
}

FailureOr<RankedTensorType> inferLabelType(const LossSpec &loss, RankedTensorType prediction, Location loc) {
  if (!takesIndices(loss))
    return RankedTensorType::get(prediction.getShape(), computeType(prediction.getElementType()));
  FailureOr<int64_t> axis = findClassAxis(loss, prediction, loc);
  if (failed(axis))
    return failure();
  return RankedTensorType::get(nn::dropAxes(prediction.getShape(), {*axis}),
                               IntegerType::get(loc.getContext(), 64));
}

static SmallVector<int64_t> allAxes(Value x) {
  return llvm::to_vector(llvm::seq<int64_t>(0, TensorBuilder::rankOf(x)));
}

Value averageAll(TensorBuilder &b, Value x) { return b.mean(x, allAxes(x)); }
Value sumAll(TensorBuilder &b, Value x) { return b.sum(x, allAxes(x)); }

/// The label as the loss computes with it, or an error.
static FailureOr<Value> prepareLabel(TensorBuilder &b, const LossSpec &loss, Value label,
                                     RankedTensorType expected) {
  auto type = TensorBuilder::typeOf(label);
  bool bothInteger = isa<IntegerType>(type.getElementType()) && isa<IntegerType>(expected.getElementType());
  bool bothFloat = isa<FloatType>(type.getElementType()) && isa<FloatType>(expected.getElementType());
  if (type.getShape() != expected.getShape() || !(bothInteger || bothFloat))
    return emitError(b.getLoc()) << "the label has type " << type << " but loss " << loss.name << " needs "
                                 << expected;
  if (type.getElementType().isInteger(32))
    return label; // an index type, too
  return b.cast(label, expected.getElementType());
}

FailureOr<Value> buildLossValue(TensorBuilder &b, const LossSpec &loss, Value prediction, Value label) {
  if (!isa<FloatType>(TensorBuilder::elementOf(prediction)))
    return emitError(b.getLoc()) << "a loss needs a floating-point output, not " << prediction.getType();
  Value x = b.cast(prediction, computeType(TensorBuilder::elementOf(prediction)));
  if (loss.source == LossSource::Output) {
    if (TensorBuilder::typeOf(x).getNumElements() != 1)
      return emitError(b.getLoc()) << "output '" << loss.output << "' of type " << prediction.getType()
                                   << " cannot be the loss: a loss has one element";
    return b.reshape(x, {});
  }
  FailureOr<RankedTensorType> labelType = inferLabelType(loss, TensorBuilder::typeOf(x), b.getLoc());
  if (failed(labelType))
    return failure();
  FailureOr<Value> prepared = prepareLabel(b, loss, label, *labelType);
  if (failed(prepared))
    return failure();
  FailureOr<int64_t> axis = 0;
  if (hasClasses(loss))
    axis = findClassAxis(loss, TensorBuilder::typeOf(x), b.getLoc());
  if (failed(axis))
    return failure();
  Settings settings = settingsOf(loss);
  return definitionOf(loss).build({b, settings, x, *prepared, *axis});
}

} // namespace ortc::train
