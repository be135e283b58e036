// Several losses of one artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"
#include "support/Plural.h"

#include <algorithm>

namespace ortc::train {

/// No point: of losses a and a.weight, the value of one would be called as the weight of the other.
static bool isNameLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// Takes `NAME=` off the front, if it is there: no key of a spec comes before its first colon.
static std::string_view takeName(std::string_view &text) {
  size_t equals = text.substr(0, text.find_first_of(":@")).find('=');
  if (equals == std::string_view::npos)
    return {};
  std::string_view name = text.substr(0, equals);
  text.remove_prefix(equals + 1);
  return name;
}

/// The outputs of `A+B`: of a loss that reads one, the name as a whole.
static Expected<std::vector<std::string>> splitOutputs(std::string_view text, const LossSpec &loss) {
  const std::vector<const char *> &wanted = findLoss(loss)->predictions;
  std::vector<std::string> outputs;
  for (size_t plus = 0; plus != std::string_view::npos && outputs.size() < wanted.size();) {
    plus = wanted.size() == 1 ? std::string_view::npos : text.find('+');
    outputs.emplace_back(text.substr(0, plus));
    text.remove_prefix(plus == std::string_view::npos ? text.size() : plus + 1);
  }
  if (outputs.size() == wanted.size() && text.empty() && std::count(outputs.begin(), outputs.end(), "") == 0)
    return outputs;
  std::string names;
  for (const char *each : wanted)
    names += (names.empty() ? "" : "+") + std::string(each);
  return Status::refusal("loss " + quote(loss.name) + " reads " + std::to_string(wanted.size()) +
                         (wanted.size() == 1 ? " output" : " outputs") + "; write " + loss.text + "@" +
                         names);
}

/// Of `weight=W`, which ends the text of a loss. Keys of the formula stand in front of its outputs.
static Expected<double> parseWeight(std::string_view text, const std::string &what, const LossSpec &loss) {
  static const std::vector<Key> keys = {{"weight", 1.0, kNotNegative, "what the loss is multiplied by"}};
  const LossDefinition *definition = findLoss(loss.name);
  const std::string first(text.substr(0, text.find('=')));
  for (const Key &key : definition ? keysOf(*definition) : std::vector<Key>())
    if (first == key.name)
      return Status::refusal(what + ": " + first + " is a key of " + loss.name + "; write " + loss.name +
                             ":" + std::string(text) + "@OUTPUT");
  KeyValues given;
  ORTC_TRY(parseKeys(text, what, keys).moveTo(given));
  return Settings(keys, given).getNumber("weight");
}

static Expected<LossSpec> parseNamedLoss(std::string_view text) {
  std::string_view spec = text, outputs, weight;
  const std::string_view name = takeName(spec);
  bool hasOutputs = false;
  if (size_t at = spec.rfind('@'); at != std::string_view::npos && !spec.starts_with("output:")) {
    hasOutputs = true; // behind `output:` all is a name
    splitPattern(spec.substr(at + 1), outputs, weight);
    spec = spec.substr(0, at);
  } else if (size_t colon = spec.rfind(":weight="); colon != std::string_view::npos) {
    weight = spec.substr(colon + 1);
    spec = spec.substr(0, colon);
  }
  LossSpec parsed;
  ORTC_TRY(parseLoss(spec).moveTo(parsed));
  if (parsed.source == LossSource::None && (hasOutputs || !weight.empty()))
    return Status::refusal(quote(text) + ": none reads nothing; leave what follows it out");
  if (parsed.source == LossSource::Formula && (hasOutputs || findLoss(parsed)->predictions.size() > 1))
    ORTC_TRY(splitOutputs(outputs, parsed).moveTo(parsed.outputs));
  parsed.text = std::string(text);
  if (name.data()) {
    parsed.id = std::string(name);
    if (name.empty() || name.size() > 64 || !std::all_of(name.begin(), name.end(), isNameLetter))
      return Status::refusal("the loss of " + quote(text) + " is called " + quote(name) +
                             "; up to 64 letters, digits, '_' and '-' make a name");
  }
  if (!weight.empty())
    ORTC_TRY(parseWeight(weight, "loss " + quote(name.empty() ? parsed.name : parsed.id), parsed)
                 .moveTo(parsed.weight.emplace()));
  return parsed;
}

/// What several losses must say that one need not.
static Status checkSeveral(const std::vector<LossSpec> &losses) {
  for (size_t i = 0; i < losses.size(); ++i) {
    const LossSpec &loss = losses[i];
    if (loss.source == LossSource::None)
      return Status::refusal("--loss none is no loss, and there are others; leave it out");
    if (loss.id.empty())
      return Status::refusal(quote(loss.text) + " has no name, and there are " +
                             std::to_string(losses.size()) +
                             " losses; write NAME=SPEC@OUTPUT, whose label is the input label.NAME");
    if (loss.outputs.empty())
      return Status::refusal(
          "loss " + quote(loss.id) + " does not say which output it reads, and there are " +
          formatCount(losses.size(), "loss", "losses") + "; write " + loss.text + "@OUTPUT");
    for (size_t k = 0; k < i; ++k)
      if (losses[k].id == loss.id)
        return Status::refusal("two losses are called " + quote(loss.id) +
                               ", which would share the label 'label." + loss.id +
                               "'; give each a name of its own");
  }
  return Status();
}

Status addLoss(std::string_view text, std::vector<LossSpec> &losses) {
  LossSpec added;
  ORTC_TRY(parseNamedLoss(text).moveTo(added));
  if (!losses.front().isGiven)
    losses.clear();
  losses.push_back(std::move(added));
  if (losses.size() == 1)
    return Status();
  for (LossSpec &loss : losses)
    loss.label = LossSpec().label + "." + loss.id;
  return checkSeveral(losses);
}

std::string valueName(const LossSpec &loss) { return "loss" + (loss.id.empty() ? "" : "." + loss.id); }
std::string inputName(const LossSpec &loss, llvm::StringRef name) {
  return name.str() + loss.label.substr(LossSpec().label.size());
}
std::string weightName(const LossSpec &loss) { return valueName(loss) + ".weight"; }

} // namespace ortc::train
