// What the manifest says about the loss, and what the host itself computes from outputs and labels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/loss_info.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "host/data/convert.h"

namespace ortc::host {

Status parseLossInfo(const std::string &manifest, const std::string &where, LossInfo &loss) {
  using Json = nlohmann::json;
  auto bad = [&](const std::string &what) { return Status::failure(where + ": the manifest " + what); };
  Json parsed = Json::parse(manifest, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object())
    return bad("is no JSON object; compile the artifact again");
  if (!parsed.contains("loss") || !parsed["loss"].is_object() || !parsed["loss"].contains("kind") ||
      !parsed["loss"]["kind"].is_string())
    return bad("does not say which loss the artifact has; compile it again");
  const Json &from = parsed["loss"];
  static constexpr std::pair<const char *, LossKind> kKinds[] = {{"cross_entropy", LossKind::CrossEntropy},
                                                                 {"nll", LossKind::Nll},
                                                                 {"mse", LossKind::Mse},
                                                                 {"l1", LossKind::L1},
                                                                 {"smooth_l1", LossKind::SmoothL1},
                                                                 {"bce_with_logits", LossKind::BceWithLogits},
                                                                 {"output", LossKind::Output},
                                                                 {"none", LossKind::None}};
  std::string kind = from["kind"];
  auto found = std::find_if(std::begin(kKinds), std::end(kKinds),
                            [&](const auto &pair) { return kind == pair.first; });
  if (found == std::end(kKinds))
    return bad("has a loss '" + kind + "' that these tools do not know; use those of the compiler's version");
  loss = LossInfo();
  loss.kind = found->second;
  auto has = [&](const char *key) { return from.contains(key) && from[key].is_number(); };
  if (from.contains("output") && from["output"].is_string())
    loss.output = from["output"];
  if (has("axis"))
    loss.axis = from["axis"];
  if (has("ignore_index"))
    loss.ignoreIndex = from["ignore_index"];
  loss.hasIgnored = has("ignore_index");
  if (has("label_smoothing"))
    loss.labelSmoothing = from["label_smoothing"];
  if (has("beta"))
    loss.beta = from["beta"];
  return Status();
}

/// Elements of the first `rows` rows.
static int64_t countRowElements(const TensorView &view, int64_t rows) {
  int64_t count = 1;
  for (size_t i = 1; i < view.shape.size(); ++i)
    count *= view.shape[i];
  return count * (view.shape.empty() ? 1 : rows);
}

bool canIgnoreLabels(const LossInfo &loss, const TensorView &label) {
  return loss.hasClasses() && loss.hasIgnored && !isFloat(label.type);
}

double countLabels(const LossInfo &loss, const TensorView &label, int64_t rows) {
  if (!canIgnoreLabels(loss, label))
    return double(rows);
  int64_t count = countRowElements(label, rows), kept = 0;
  size_t element = getElementBytes(label.type);
  for (int64_t i = 0; i < count; ++i)
    kept += loadAsInteger(label.type, label.data + size_t(i) * element) != loss.ignoreIndex;
  return double(kept);
}

void ignoreLabels(const LossInfo &loss, const TensorView &label, int64_t rows, uint8_t *data) {
  size_t element = getElementBytes(label.type);
  int64_t first = countRowElements(label, rows), end = countRowElements(label, label.shape[0]);
  for (int64_t i = first; i < end; ++i) {
    int64_t value = loss.ignoreIndex; // little-endian: the low bytes are the narrow value
    std::memcpy(data + size_t(i) * element, &value, element);
  }
}

bool canComputeLoss(const LossInfo &loss, const TensorView &output, const TensorView &label) {
  if (!isFloat(output.type) || output.shape.empty() || output.shape != label.shape)
    return false;
  switch (loss.kind) {
  case LossKind::CrossEntropy:
    return isFloat(label.type) && loss.axis == 1 && output.shape.size() > 1;
  case LossKind::Mse:
  case LossKind::L1:
  case LossKind::SmoothL1:
  case LossKind::BceWithLogits:
    return true;
  default:
    return false;
  }
}

double computeLoss(const LossInfo &loss, const TensorView &output, const TensorView &label, int64_t rows) {
  size_t outputBytes = getElementBytes(output.type), labelBytes = getElementBytes(label.type);
  auto getOutput = [&](int64_t i) {
    return loadAsDouble(output.type, output.data + size_t(i) * outputBytes);
  };
  auto getLabel = [&](int64_t i) { return loadAsDouble(label.type, label.data + size_t(i) * labelBytes); };
  int64_t count = countRowElements(output, rows);
  double sum = 0;
  if (loss.kind == LossKind::CrossEntropy) {
    int64_t classes = output.shape[1], inner = 1;
    for (size_t i = 2; i < output.shape.size(); ++i)
      inner *= output.shape[i];
    int64_t places = rows * inner;
    for (int64_t place = 0; place < places; ++place) {
      int64_t base = place / inner * classes * inner + place % inner;
      double largest = -HUGE_VAL, total = 0;
      for (int64_t c = 0; c < classes; ++c)
        largest = std::max(largest, getOutput(base + c * inner));
      for (int64_t c = 0; c < classes; ++c)
        total += std::exp(getOutput(base + c * inner) - largest);
      double logTotal = largest + std::log(total);
      for (int64_t c = 0; c < classes; ++c) {
        double target =
            getLabel(base + c * inner) * (1 - loss.labelSmoothing) + loss.labelSmoothing / double(classes);
        sum += target * (logTotal - getOutput(base + c * inner));
      }
    }
    return sum / double(places);
  }
  for (int64_t i = 0; i < count; ++i) {
    double x = getOutput(i), y = getLabel(i), distance = std::abs(x - y);
    if (loss.kind == LossKind::Mse)
      sum += distance * distance;
    else if (loss.kind == LossKind::L1)
      sum += distance;
    else if (loss.kind == LossKind::SmoothL1)
      sum += distance < loss.beta ? distance * distance / (2 * loss.beta) : distance - loss.beta / 2;
    else
      sum += std::max(x, 0.0) - x * y + std::log1p(std::exp(-std::abs(x)));
  }
  return sum / double(count);
}

bool addAccuracy(const LossInfo &loss, const TensorView &output, const TensorView &label, int64_t rows,
                 int64_t &right, int64_t &total, int64_t &notNumbers) {
  auto axis = size_t(loss.axis);
  if (!loss.hasClasses() || loss.axis < 0 || axis >= output.shape.size() || !isFloat(output.type))
    return false;
  bool indices = !isFloat(label.type);
  Shape wanted = output.shape;
  if (indices)
    wanted.erase(wanted.begin() + loss.axis);
  if (label.shape != wanted)
    return false;
  int64_t classes = output.shape[axis], inner = 1, outer = 1;
  for (size_t i = 0; i < output.shape.size(); ++i)
    (i < axis ? outer : inner) *= i == axis ? 1 : output.shape[i];
  if (axis > 0) // rows are the leading axis; with classes leading, all of it is real
    outer = outer / output.shape[0] * rows;
  constexpr int64_t kNone = -1;
  auto findLargest = [&](const TensorView &view, int64_t base) {
    size_t element = getElementBytes(view.type);
    int64_t best = 0;
    double largest = -HUGE_VAL;
    for (int64_t c = 0; c < classes; ++c) {
      double value = loadAsDouble(view.type, view.data + size_t(base + c * inner) * element);
      if (std::isnan(value))
        return kNone;
      if (value > largest) {
        largest = value;
        best = c;
      }
    }
    return best;
  };
  for (int64_t place = 0; place < outer * inner; ++place) {
    int64_t base = place / inner * classes * inner + place % inner;
    int64_t wantedClass =
        indices ? loadAsInteger(label.type, label.data + size_t(place) * getElementBytes(label.type))
                : findLargest(label, base);
    if (indices && loss.hasIgnored && wantedClass == loss.ignoreIndex)
      continue;
    ++total;
    int64_t predicted = findLargest(output, base);
    right += predicted == wantedClass && predicted != kNone;
    notNumbers += predicted == kNone;
  }
  return true;
}

} // namespace ortc::host
