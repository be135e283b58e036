// Why a training has come to a loss, or to weights, that are not finite.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/session/not_finite.h"

#include <algorithm>
#include <cmath>

#include "support/Text.h"

namespace ortc::engine {

/// From the beginning of a run to its end: losses move by less without an update gone wrong, and so do weights.
constexpr double kGrowthOfLoss = 10, kGrowthOfWeights = 100, kSmallWeights = 0.01;

/// An input of the step with NaN, or with infinities, and where that is from.
static std::string describeData(const FailedStep &step, bool isNan) {
  for (size_t input = 0; input < step.entry.inputs.size(); ++input) {
    const InputSpec &spec = step.entry.inputs[input];
    const TensorView view = step.session.view(step.entry, spec.name);
    size_t bytes = 0;
    if (!isFloat(spec.type) || !view.data || !countBytes(view.shape, view.type, bytes))
      continue;
    const int64_t at = Finiteness::find(view.type, view.data, bytes, isNan);
    if (at < 0)
      continue;
    const std::string place = step.describeElement(input, at, view.shape);
    return "; the input '" + spec.name + "' is " + (isNan ? "nan" : "infinite") +
           " in the data: " + (place.empty() ? "element " + std::to_string(at) + " of the step's" : place) +
           ": leave such samples out, or repair them";
  }
  return "";
}

/// "the data (up to 3.2) and the weights (up to 0.4)": numbers may be finite, and their products not.
static std::string describeSizes(const FailedStep &step, double largestWeight) {
  double largest = 0;
  for (const InputSpec &spec : step.entry.inputs) {
    const TensorView view = step.session.view(step.entry, spec.name);
    size_t bytes = 0;
    if (isFloat(spec.type) && view.data && countBytes(view.shape, view.type, bytes))
      largest = std::max(largest, Finiteness::of(view.type, view.data, bytes).largest);
  }
  return "the data (up to " + formatShort(largest) + ") and the weights (up to " +
         formatShort(largestWeight) + ")";
}

std::string describeGrowth(const FiniteCheck &check, const LossTrend &losses, double now) {
  const double first = check.getLargestAtFirst();
  std::string what;
  if (!losses.isEmpty() && std::fabs(losses.last) > kGrowthOfLoss * std::fabs(losses.first))
    what = "the loss was " + formatShort(losses.first) + " at first and " + formatShort(losses.last) +
           " in step " + std::to_string(losses.lastStep);
  else if (now > kGrowthOfWeights * std::max(first, kSmallWeights))
    what = "the largest weight was " + formatShort(first) + " at first and is " + formatShort(now);
  return what.empty() ? "" : "; the numbers grew: " + what + ": try a smaller --lr";
}

Status explainNotFinite(const NotFiniteStep &met, std::string &reason) {
  auto tell = [&](const std::string &text) {
    reason = text;
    return !reason.empty();
  };
  if (tell(describeData(met.step, /*isNan=*/true)) || tell(describeLabels(met.step)))
    return Status();
  std::optional<BadTensor> constant;
  ORTC_TRY(met.check.findBadConstant(met.step.session, constant));
  const std::optional<BadTensor> &weights = met.check.getBadAtFirst();
  if (constant && constant->found.nans)
    return tell("; the constant " + constant->describe() + ": the model's file has them"), Status();
  if (weights)
    return tell("; " + weights->describe() + " since before the first step"), Status();
  double largest = 0;
  ORTC_TRY(met.check.findLargest(met.step.session, largest));
  if (tell(describeGrowth(met.check, met.losses, largest)))
    return Status();
  // An update may have overwritten the weights that the step has read, the first one those of the beginning.
  const std::string sizes =
      describeSizes(met.step, met.isUntouched || met.hasUpdates ? largest : met.check.getLargestAtFirst());
  if (met.update && met.update->isParameter && !met.update->found.nans)
    return tell("; the update is larger than its type holds: try a smaller --lr"), Status();
  if (tell(describeData(met.step, /*isNan=*/false)))
    return Status();
  if (constant)
    return tell("; the constant " + constant->describe() + ": the model's file has them"), Status();
  if (met.update && !met.update->isParameter)
    reason = "; it is a statistic of the step's, and " + sizes +
             " are finite: sums of squares beyond what its type holds; smaller numbers keep away from there";
  else if (met.update)
    reason = "; the loss, the data and the weights before it were finite and had not grown: a gradient has "
             "no value "
             "where the model is, as that of sqrt, log or a norm at 0; an epsilon keeps away from there";
  else if (met.isUntouched || !met.hasUpdates)
    reason = "; " + sizes +
             " are finite and have not grown: the model has no finite value there, as log or a division at "
             "0, or exp "
             "and products that are larger than their type holds (float16: 65504); an epsilon, a bound or a "
             "smaller "
             "scale keeps away from there";
  else
    reason = "; --stop-on-nan ends before such an update and says where it comes from";
  return Status();
}

} // namespace ortc::engine
