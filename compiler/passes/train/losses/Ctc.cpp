// The loss ctc: torch.nn.CTCLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graves et al., Connectionist Temporal Classification (2006), equations 6 to 8, in logarithms. A loop over frames
// carries the probabilities of all prefixes of a label with blanks between its classes. A probability of 0 is a large
// negative number: differences of infinities would be NaN.
#include "compiler/passes/train/Losses.h"
#include "dialects/nn/ScanBuilder.h"

#include <limits>

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static constexpr const char *kBlank = "blank", *kZeroInfinity = "zero_infinity", *kLabels = "labels",
                            *kInputLengths = "input_lengths", *kTargetLengths = "target_lengths";
/// The logarithm of 0. Sums over a billion frames stay finite in float32.
static constexpr double kNever = -1e29;

static const char *misshape(const Settings &settings, RankedTensorType prediction) {
  if (prediction.getRank() != 3)
    return "it needs [frames, samples, classes]";
  if (prediction.getDimSize(2) < 2)
    return "it needs a class beside the blank";
  if (settings.getInteger(kBlank) >= prediction.getDimSize(2))
    return "the blank is not one of the classes";
  bool isTooLong = !settings.isOn(kTargetLengths) && settings.getInteger(kLabels) > prediction.getDimSize(0);
  return isTooLong ? "every sample has more labels than frames" : nullptr;
}

static SmallVector<int64_t> inferLabel(const Settings &settings, RankedTensorType prediction) {
  int64_t labels = settings.getInteger(kLabels);
  return {prediction.getDimSize(1), labels > 0 ? labels : prediction.getDimSize(0)};
}

static SmallVector<LossInput> listInputs(const Settings &settings, RankedTensorType prediction) {
  auto type =
      RankedTensorType::get({prediction.getDimSize(1)}, IntegerType::get(prediction.getContext(), 64));
  SmallVector<LossInput> inputs;
  for (const char *name : {kInputLengths, kTargetLengths})
    if (settings.isOn(name))
      inputs.push_back({name, type});
  return inputs;
}

static const char *contradict(const Settings &settings) {
  constexpr int64_t kMostLabels = 1 << 24;
  return settings.getInteger(kBlank) < 0              ? "blank must be at least 0"
         : settings.getInteger(kLabels) < 0           ? "labels must be at least 0"
         : settings.getInteger(kLabels) > kMostLabels ? "labels must be at most 16777216"
                                                      : nullptr;
}

namespace {

/// Samples N, frames T, labels S of a sample with padding, places P = 2 S + 1 of labels and blanks.
class Alignments {
public:
  explicit Alignments(const LossOperands &operands);

  /// [N]: minus the logarithm of the probability of all alignments, infinite where there is none.
  Value sumUp();
  Value getInputLengths() const { return inputLengths; }   ///< [N]
  Value getTargetLengths() const { return targetLengths; } ///< [N]

private:
  Value checkIndex(Value index, const char *name, int64_t lower, int64_t upper);
  Value takeLengths(const char *name, int64_t most);
  Value checkLabels();
  Value iota(ArrayRef<int64_t> shape, int64_t axis) {
    return b.iota(RankedTensorType::get(shape, b.getI64Type()), axis);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, double value) {
    return b.compare(predicate, a, b.constantLike(a, value));
  }
  /// [N, P] moved on by some places, with `filler` in front.
  Value shift(Value x, int64_t places, double filler);
  /// log(exp(a) + exp(b) + ...)
  Value addLogarithms(ArrayRef<Value> values);

  TensorBuilder &b;
  Value logProbability; ///< [T, N, C]
  int64_t blank, frames, samples, classes, labels, places;
  ArrayRef<Value> inputs; ///< that are not taken yet
  const LossSpec &loss;
  const Settings &settings;
  Value inputLengths, targetLengths, label;
};

} // namespace

Alignments::Alignments(const LossOperands &operands)
    : b(operands.b), logProbability(operands.prediction), blank(operands.settings.getInteger(kBlank)),
      inputs(operands.inputs), loss(operands.loss), settings(operands.settings), label(operands.label) {
  auto shape = TensorBuilder::shapeOf(logProbability);
  frames = shape[0];
  samples = shape[1];
  classes = shape[2];
  labels = TensorBuilder::shapeOf(label)[1];
  places = 2 * labels + 1;
  label = b.cast(label, b.getI64Type());
  inputLengths = takeLengths(kInputLengths, frames);
  targetLengths = takeLengths(kTargetLengths, labels);
  label = checkLabels();
}

Value Alignments::checkIndex(Value index, const char *name, int64_t lower, int64_t upper) {
  return nn::CheckIndexOp::create(b, index.getType(), index, b.getStringAttr(inputName(loss, name)),
                                  b.getI64IntegerAttr(lower), b.getI64IntegerAttr(upper), IntegerAttr());
}

Value Alignments::takeLengths(const char *name, int64_t most) {
  auto type = RankedTensorType::get({samples}, b.getI64Type());
  if (!settings.isOn(name))
    return b.constant(type, static_cast<double>(most));
  Value given = inputs.front();
  inputs = inputs.drop_front();
  return checkIndex(given, name, 0, most + 1);
}

/// Labels that are neither blank nor out of range; padding, which may be anything, becomes some class.
Value Alignments::checkLabels() {
  const int64_t other = blank == 0 ? 1 : 0;
  Value length = b.broadcast(targetLengths, {samples, labels}, {0});
  Value isPadding = b.compare(arith::CmpIPredicate::sge, iota({samples, labels}, 1), length);
  Value some = b.constantLike(label, static_cast<double>(other));
  Value real = b.select(isPadding, some, label);
  if (blank == 0 || blank == classes - 1)
    return checkIndex(real, "label", blank == 0, blank == 0 ? classes : classes - 1);
  // Classes are two ranges, and each label is checked against the one on its side.
  Value isAbove = compare(arith::CmpIPredicate::sgt, real, static_cast<double>(blank));
  Value next = b.constantLike(label, static_cast<double>(blank + 1));
  Value below = checkIndex(b.select(isAbove, some, real), "label", 0, blank);
  Value above = checkIndex(b.select(isAbove, real, next), "label", blank + 1, classes);
  return b.select(isAbove, above, below);
}

Value Alignments::shift(Value x, int64_t count, double filler) {
  Value padded = b.pad(x, b.scalar(TensorBuilder::elementOf(x), filler), {0, count}, {0, 0});
  return b.sliceAxis(padded, 1, 0, places);
}

Value Alignments::addLogarithms(ArrayRef<Value> values) {
  Value largest = values.front();
  for (Value value : values.drop_front())
    largest = b.maximum(largest, value);
  largest = b.detach(largest); // cancels out
  Value sum;
  for (Value value : values) {
    Value each = b.exp(b.sub(value, largest));
    sum = sum ? b.add(sum, each) : each;
  }
  return b.add(largest, b.log(sum));
}

Value Alignments::sumUp() {
  using arith::CmpIPredicate;
  const SmallVector<int64_t> table = {samples, places};
  // The class of every place: blanks at even ones.
  Value doubled = b.broadcast(label, {samples, labels, 2}, {0, 1});
  Value pairs = b.reshape(doubled, {samples, 2 * labels});
  Value blanks = b.constant(RankedTensorType::get(table, b.getI64Type()), static_cast<double>(blank));
  Value place = iota(table, 1);
  Value isLabel =
      compare(CmpIPredicate::eq, b.createOrFold<arith::RemSIOp>(place, b.constantLike(place, 2)), 1);
  Value classOf = b.select(isLabel, b.padZeros(pairs, {0, 0}, {0, 1}), blanks);
  // Two places at once: from a label to a different one.
  Value before = shift(classOf, 2, static_cast<double>(blank));
  Value skips = b.logicalAnd(isLabel, b.compare(CmpIPredicate::ne, classOf, before));

  Value never = b.constantLike(logProbability, kNever);
  Value possible =
      b.select(b.compare(arith::CmpFPredicate::OLT, logProbability, never), never, logProbability);
  SmallVector<int64_t> all = {frames, samples, places};
  auto type = RankedTensorType::get(all, TensorBuilder::elementOf(logProbability));
  Value emitted =
      nn::GatherElementsOp::create(b, type, possible, b.broadcast(classOf, all, {1, 2}), /*axis=*/2);
  Value isFrame = b.compare(CmpIPredicate::slt, iota(all, 0), b.broadcast(inputLengths, all, {1}));

  auto state = RankedTensorType::get(table, TensorBuilder::elementOf(logProbability));
  Value first =
      b.select(compare(CmpIPredicate::eq, place, 0), b.constant(state, 0), b.constant(state, kNever));
  Value last = nn::buildScan(b, frames, /*reverse=*/false, {first},
                             {emitted, b.cast(isFrame, b.getI32Type())}, {b.cast(skips, b.getI32Type())},
                             [&](const nn::ScanArguments &in) {
                               Value alpha = in.carried[0], none = b.constant(state, kNever);
                               Value canSkip = compare(CmpIPredicate::ne, in.invariants[0], 0);
                               Value counts = compare(CmpIPredicate::ne, in.slices[1], 0);
                               Value skipped = b.select(canSkip, shift(alpha, 2, kNever), none);
                               Value sum = addLogarithms({alpha, shift(alpha, 1, kNever), skipped});
                               return SmallVector<Value>{b.select(counts, b.add(sum, in.slices[0]), alpha)};
                             })
                   .front();

  // Alignments end with the last label or with the blank behind it.
  Value end = b.broadcast(b.mulScalar(targetLengths, 2), table, {0});
  Value distance = b.sub(end, place);
  Value isEnd = b.logicalOr(compare(CmpIPredicate::eq, distance, 0), compare(CmpIPredicate::eq, distance, 1));
  Value ends = b.select(isEnd, last, b.constant(state, kNever));
  Value largest = b.detach(b.reduce(nn::ReduceKind::max, ends, {1}));
  Value sum = b.sum(b.exp(b.sub(ends, b.broadcast(largest, table, {0}))), {1});
  return b.neg(b.add(largest, b.log(sum)));
}

/// Zeros, with the gradient that PyTorch gives beside that of alignments: exp(x) in every frame of a sample. Behind a
/// log_softmax both add up to the gradient of the loss.
static Value addProbabilities(TensorBuilder &b, Value logProbability, Value inputLengths) {
  Value p = b.exp(logProbability);
  auto shape = TensorBuilder::shapeOf(p);
  Value frame = b.iota(RankedTensorType::get(shape, b.getI64Type()), 0);
  Value isFrame = b.compare(arith::CmpIPredicate::slt, frame, b.broadcast(inputLengths, shape, {1}));
  Value sum = b.sum(b.select(isFrame, p, b.zerosLike(p)), {0, 2});
  return b.sub(sum, b.detach(sum));
}

static Value build(const LossOperands &operands) {
  TensorBuilder &b = operands.b;
  Alignments alignments(operands);
  Value lost = alignments.sumUp();
  Value each = b.add(lost, addProbabilities(b, operands.prediction, alignments.getInputLengths()));
  Value isImpossible = b.compare(arith::CmpFPredicate::OGT, lost, b.constantLike(lost, -kNever / 2));
  const bool isZero = operands.settings.isOn(kZeroInfinity);
  Value instead = b.constantLike(lost, isZero ? 0 : std::numeric_limits<double>::infinity());
  each = b.select(isImpossible, instead, each);
  if (operands.settings.getWord(kReduction) == "mean") {
    Value lengths = alignments.getTargetLengths(), one = b.constantLike(lengths, 1);
    each = b.div(each, b.cast(b.maximum(lengths, one), TensorBuilder::elementOf(each)));
  }
  return reduceTerms(operands, {each});
}

const LossDefinition kCtcLoss = {
    .name = "ctc",
    .meaning = "of logarithms of probabilities [frames, samples, classes] and labels [samples, labels]; in a "
               "mean, the term "
               "of a sample is divided by the number of its labels",
    .label = LabelKind::Sequences,
    .keys = {{kBlank, int64_t(0), kWhole, "class between labels"},
             {kZeroInfinity, false, kSwitch, "a label that no alignment fits costs 0, not infinity"},
             {kLabels, int64_t(0), kWhole, "labels of a sample, with padding; 0: as many as frames"},
             {kInputLengths, true, kSwitch, "an input of this name has the frames of each sample; else all"},
             {kTargetLengths, true, kSwitch,
              "an input of this name has the labels of each sample; else all"}},
    .contradict = contradict,
    .misfits = {{"Softmax", "ctc takes logarithms of probabilities", nullptr}},
    .build = build,
    .misshape = misshape,
    .inferLabel = inferLabel,
    .listInputs = listInputs};

} // namespace ortc::train
