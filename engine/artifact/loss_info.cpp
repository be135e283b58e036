// What the manifest says about the loss, and what the host makes of outputs and labels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/loss_info.h"

#include <algorithm>
#include <cmath>

#include "support/Elements.h"
#include "support/Json.h"

namespace ortc::engine {

/// One loss of a manifest; false where it does not say which it is.
static bool parseLoss(const nlohmann::json &from, LossInfo &loss) {
  if (!from.is_object() || !from.contains("kind") || !from["kind"].is_string())
    return false;
  loss.kind = from["kind"];
  loss.isNone = from["kind"] == "none";
  loss.isInGraph = from["kind"] == "output";
  auto has = [&](const char *key) { return from.contains(key) && from[key].is_number_integer(); };
  for (auto [key, text] : {std::pair("output", &loss.output),
                           {"name", &loss.name},
                           {"value", &loss.value},
                           {"weight", &loss.weight},
                           {"compares", &loss.compares},
                           {"input", &loss.label}})
    if (from.contains(key) && from[key].is_string())
      *text = from[key];
  loss.hasClasses = has("axis");
  if (loss.hasClasses)
    loss.axis = from["axis"];
  if (has("ignore_index"))
    loss.ignoreIndex = from["ignore_index"];
  loss.hasIgnored = has("ignore_index");
  if (has("blank"))
    loss.blank = from["blank"];
  loss.isSum = from.contains("reduction") && from["reduction"] == "sum";
  loss.comparesSamples = from.contains("compares_samples");
  if (from.contains("class_weight") && from["class_weight"].is_array())
    for (const auto &each : from["class_weight"])
      loss.classWeight.push_back(each.is_number() ? each.get<double>() : 1);
  if (from.contains("inputs") && from["inputs"].is_array())
    for (const auto &each : from["inputs"])
      loss.inputs.push_back(each.is_string() ? each.get<std::string>() : "");
  return true;
}

Status parseLosses(const std::string &manifest, const std::string &where, std::vector<LossInfo> &losses) {
  using Json = nlohmann::json;
  auto bad = [&](const std::string &what) { return Status::failure(where + ": the manifest " + what); };
  Json parsed = parseJson<Json>(manifest);
  if (!parsed.is_object())
    return bad("is no JSON object; compile the artifact again");
  Json parts = Json::array({parsed.contains("loss") ? parsed["loss"] : Json()});
  if (parts[0].is_object() && parts[0].contains("parts") && parts[0]["parts"].is_array())
    parts = Json(parts[0]["parts"]);
  losses.clear();
  bool isRead = !parts.empty();
  for (const Json &part : parts)
    isRead &= parseLoss(part, losses.emplace_back());
  return isRead ? Status() : bad("does not say which loss the artifact has; compile it again");
}

bool LossInfo::reads(const std::string &input) const {
  return (input == label && !isInGraph) || std::find(inputs.begin(), inputs.end(), input) != inputs.end();
}

std::string LossInfo::findInput(const std::string &name) const {
  for (const std::string &input : inputs)
    if (input == name || input.starts_with(name + "."))
      return input;
  return "";
}

/// Elements of the first `rows` rows.
static int64_t countRowElements(const TensorView &view, int64_t rows) {
  int64_t count = 1;
  for (size_t i = 1; i < view.shape.size(); ++i)
    count *= view.shape[i];
  return count * (view.shape.empty() ? 1 : rows);
}

bool canIgnoreLabels(const LossInfo &loss, const TensorView &label) {
  return loss.hasClasses && loss.hasIgnored && !isFloat(label.type);
}

double countLabels(const LossInfo &loss, const TensorView &label, const TensorView &weights, int64_t rows) {
  const bool counts = canIgnoreLabels(loss, label);
  const bool isWeighted = counts && !loss.classWeight.empty();
  const int64_t each = rows == 0 ? 0 : countRowElements(label, rows) / rows;
  const size_t element = getElementBytes(label.type);
  double total = 0;
  for (int64_t row = 0; row < rows; ++row) {
    double count = counts ? 0 : 1;
    for (int64_t i = row * each; counts && i < (row + 1) * each; ++i) {
      int64_t value = loadAsInteger(label.type, label.data + size_t(i) * element);
      bool isClass = value >= 0 && size_t(value) < loss.classWeight.size();
      if (value != loss.ignoreIndex)
        count += !isWeighted ? 1 : isClass ? loss.classWeight[size_t(value)] : 0;
    }
    if (weights.type != DataType::None)
      count *= loadAsDouble(weights.type, weights.data + size_t(row) * getElementBytes(weights.type));
    total += count;
  }
  return total;
}

void ignoreLabels(const LossInfo &loss, const TensorView &label, int64_t rows, uint8_t *data) {
  size_t element = getElementBytes(label.type);
  int64_t first = countRowElements(label, rows), end = countRowElements(label, label.shape[0]);
  for (int64_t i = first; i < end; ++i) {
    int64_t value = loss.ignoreIndex; // little-endian: the low bytes are the narrow value
    std::memcpy(data + size_t(i) * element, &value, element);
  }
}

} // namespace ortc::engine
