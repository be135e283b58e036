// The optimizer muon: torch.optim.Muon, with products in the parameter's type and not in bfloat16.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Optimizers.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static constexpr const char *kMomentum = "momentum", *kNesterov = "nesterov", *kEpsilon = "epsilon",
                            *kSteps = "ns_steps", *kBuffer = "momentum_buffer", *kAdjust = "adjust_lr_fn";
static constexpr const char *kCoefficients[] = {"ns_a", "ns_b", "ns_c"};
static constexpr Range kFinite = {"a number from -3.4e38 to 3.4e38",
                                  [](double value) { return std::fabs(value) <= 3.4e38; }};

/// The matrix with singular values of about 1: x /= max(|x|, epsilon), then ns_steps times x = a x + (b G + c G G) x,
/// G = x x^T. For the longer side the same with G = x^T x behind x, which a transposed matrix gives too.
static Value orthogonalize(UpdateStep &step, Value x) {
  TensorBuilder &b = step.b;
  Value norm = normOf(b, x), one = b.constantLike(norm, 1);
  x = step.scale(x, b.div(one, b.maximum(norm, step.scalar(kEpsilon))));
  bool isTall = TensorBuilder::shapeOf(x)[0] > TensorBuilder::shapeOf(x)[1];
  for (int64_t i = 0; i < step.settings.getInteger(kSteps); ++i) {
    Value gram = b.matmul(x, x, /*transposeLhs=*/isTall, /*transposeRhs=*/!isTall);
    Value factor = b.add(step.scale(gram, step.scalar(kCoefficients[1])),
                         step.scale(b.matmul(gram, gram), step.scalar(kCoefficients[2])));
    x = b.add(step.scale(x, step.scalar(kCoefficients[0])),
              isTall ? b.matmul(x, factor) : b.matmul(factor, x));
  }
  return x;
}

static double adjustment(const std::string &how, double rows, double columns) {
  return how == "original"          ? std::sqrt(std::max(1.0, rows / columns))
         : how == "match_rms_adamw" ? 0.2 * std::sqrt(std::max(rows, columns))
                                    : std::sqrt(rows / columns);
}

/// m += (g - m)(1 - momentum); u = m (with nesterov: g + (m - g) momentum); p *= 1 - lr weight_decay;
/// p -= lr times a factor of the shape times orthogonalize(u).
static void update(UpdateStep &step) {
  TensorBuilder &b = step.b;
  Value momentum = step.scalar(kMomentum), gradient = step.gradient;
  Value &buffer = step.states[kBuffer];
  buffer = b.add(buffer, step.scale(b.sub(gradient, buffer), oneMinus(b, momentum)));
  Value direction =
      step.settings.isOn(kNesterov) ? b.add(gradient, step.scale(b.sub(buffer, gradient), momentum)) : buffer;
  direction = orthogonalize(step, direction);
  step.decayParameter();
  double factor = adjustment(step.settings.getWord(kAdjust), static_cast<double>(step.shape[0]),
                             static_cast<double>(step.shape[1]));
  step.parameter = b.add(step.parameter, step.scale(direction, b.mulScalar(step.scalar(kLr), -factor)));
}

static const char *contradict(const Settings &settings) {
  int64_t steps = settings.getInteger(kSteps);
  return steps < 0 || steps > 99 ? "ns_steps must be from 0 to 99" : nullptr;
}

static const char *movesAlways(const Settings &) { return "momentum"; }

const OptimizerDefinition kMuonOptimizer = {
    .name = "muon",
    .meaning = "steps whose singular values are about one size; only for matrices",
    .keys = {lrKey(1e-3),
             ownDecayKey(0.1),
             betaKey(kMomentum, 0.95, "factor of the average of gradients"),
             {kNesterov, true, kSwitch, "the step looks ahead"},
             {kCoefficients[0], 3.4445, kFinite, "factor of the matrix in a Newton-Schulz step"},
             {kCoefficients[1], -4.775, kFinite, "factor of its cube"},
             {kCoefficients[2], 2.0315, kFinite, "factor of its fifth power"},
             epsilonKey(1e-7, "least norm that a matrix is divided by"),
             {kSteps, int64_t(5), kWhole, "Newton-Schulz steps, 0 to 99"},
             {kAdjust,
              std::string("original"),
              kWord,
              "how lr depends on the shape",
              false,
              {"original", "match_rms_adamw", "spectral_unclamped"}}},
    .contradict = contradict,
    .states = {{kBuffer}},
    .update = update,
    .movesAlways = movesAlways,
    .spans = "products of the whole matrix",
    .rank = 2};

} // namespace ortc::train
