// The optimizer adafactor: torch.optim.Adafactor.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Optimizers.h"

#include <cmath>

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static constexpr const char *kDecay = "beta2_decay", *kEpsilon1 = "epsilon1", *kEpsilon2 = "epsilon2",
                            *kThreshold = "d";
static constexpr const char *kRows = "row_var", *kColumns = "col_var", *kVariance = "variance";
static constexpr Range kNotPositive = {"a number from -3.4e38 to 0",
                                       [](double value) { return value <= 0 && value >= -3.4e38; }};
static constexpr Range kAtLeastOne = {"a number from 1 to 3.4e38",
                                      [](double value) { return value >= 1 && value <= 3.4e38; }};

using Shape = std::optional<SmallVector<int64_t>>;

/// The shape with 1 in the last dimension but `fromEnd`; nothing for vectors.
static Shape without(ArrayRef<int64_t> shape, size_t fromEnd) {
  if (shape.size() < 2)
    return std::nullopt;
  SmallVector<int64_t> reduced(shape);
  reduced[shape.size() - 1 - fromEnd] = 1;
  return reduced;
}
static Shape shapeOfRows(ArrayRef<int64_t> shape) { return without(shape, 0); }
static Shape shapeOfColumns(ArrayRef<int64_t> shape) { return without(shape, 1); }
static Shape shapeOfVariance(ArrayRef<int64_t> shape) {
  return shape.size() < 2 ? Shape(SmallVector<int64_t>(shape)) : std::nullopt;
}

static Value repeat(TensorBuilder &b, Value x, Value like) {
  return b.broadcastTo(x, TensorBuilder::shapeOf(like));
}

/// Of vectors v += (g g - v) t^beta2_decay. Of others the same of means of g g over the last dimension and over the one
/// before it, and v is the product of both divided by the mean of the first.
static Value estimateVariance(UpdateStep &step, Value weight, Value epsilon1) {
  TensorBuilder &b = step.b;
  Value square = b.mul(step.gradient, step.gradient);
  auto average = [&](Value &old, Value value) {
    old = b.add(old, step.scale(b.sub(value, old), weight));
    return old;
  };
  size_t rank = step.shape.size();
  if (rank < 2)
    return average(step.states[kVariance], square);
  auto meanOver = [&](Value x, int64_t axis) {
    return b.mulScalar(b.sum(x, {axis}, /*keepDims=*/true), 1.0 / TensorBuilder::shapeOf(x)[axis]);
  };
  int64_t last = step.axes[rank - 1], before = step.axes[rank - 2];
  Value rows = average(step.states[kRows], meanOver(square, last));
  Value columns = average(step.states[kColumns], meanOver(square, before));
  Value mean = meanOver(rows, before);
  Value product = b.mul(repeat(b, rows, square), repeat(b, columns, square));
  return b.div(product, repeat(b, b.maximum(mean, spread(b, epsilon1, mean)), square));
}

/// a = max(epsilon2, |p| / sqrt(n)) min(lr, 1 / sqrt(t)); p *= 1 - lr weight_decay; u = g / sqrt(max(v, epsilon1^2));
/// p -= a / max(1, |u| / (sqrt(n) d)) u, with n elements of p.
static void update(UpdateStep &step) {
  TensorBuilder &b = step.b;
  Value lr = step.scalar(kLr), t = step.scalar(kUpdates), one = b.constantLike(lr, 1);
  Value weight = b.exp(b.mul(step.scalar(kDecay), b.log(t)));
  double root = std::sqrt(static_cast<double>(TensorBuilder::typeOf(step.parameter).getNumElements()));
  Value size = b.maximum(step.scalar(kEpsilon2), b.mulScalar(normOf(b, step.parameter), 1 / root));
  Value alpha = b.mul(size, b.minimum(lr, b.div(one, b.sqrt(t))));
  step.decayParameter();

  Value epsilon1 = step.scalar(kEpsilon1);
  if (!epsilon1) {
    const auto &semantics = cast<FloatType>(TensorBuilder::elementOf(step.gradient)).getFloatSemantics();
    epsilon1 =
        b.constantLike(lr, std::ldexp(1.0, 1 - static_cast<int>(APFloat::semanticsPrecision(semantics))));
  }
  Value variance = estimateVariance(step, weight, epsilon1);
  Value least = spread(b, b.mul(epsilon1, epsilon1), variance);
  Value direction = b.div(step.gradient, b.sqrt(b.maximum(variance, least)));
  Value excess = b.div(normOf(b, direction), b.mulScalar(step.scalar(kThreshold), root));
  step.parameter = b.add(step.parameter, step.scale(direction, b.neg(b.div(alpha, b.maximum(excess, one)))));
}

static const char *movesAlways(const Settings &) { return "the average of squares"; }

const OptimizerDefinition kAdafactorOptimizer = {
    .name = "adafactor",
    .meaning =
        "steps of the size of their parameter; for matrices it keeps only averages of rows and columns",
    .keys = {lrKey(1e-2),
             {kDecay, -0.8, kNotPositive, "power of the step that weighs its squares"},
             {kEpsilon1, 0.0, kNotNegative, "least root of a variance; 0: the gap above 1 in the type",
              /*zeroIsAbsent=*/true},
             {kEpsilon2, 1e-3, kNotNegative, "least size of a parameter"},
             {kThreshold, 1.0, kAtLeastOne, "largest size of a direction"},
             ownDecayKey(0),
             maximizeKey()},
    .shared = {countState()},
    .states = {{kRows, nullptr, shapeOfRows},
               {kColumns, nullptr, shapeOfColumns},
               {kVariance, nullptr, shapeOfVariance}},
    .update = update,
    .movesAlways = movesAlways,
    .spans = "means over rows and columns"};

} // namespace ortc::train
