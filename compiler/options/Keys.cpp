// Keys of a spec `word:key=value,...`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/options/Keys.h"

#include "compiler/options/CompileOptions.h"
#include "support/EditDistance.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <limits>

namespace ortc {

static constexpr double kLargest = std::numeric_limits<float>::max(),
                        kSmallest = std::numeric_limits<float>::min();

constinit const Range kNotNegative = {"a number from 0 to 3.4e38",
                                      [](double value) { return value >= 0 && value <= kLargest; }};
constinit const Range kPositive = {"a number from 1.2e-38 to 3.4e38",
                                   [](double value) { return value >= kSmallest && value <= kLargest; }};
constinit const Range kFraction = {"a number of at least 0 and below 1",
                                   [](double value) { return value >= 0 && value < 1; }};
constinit const Range kShare = {"a number from 0 to 1",
                                [](double value) { return value >= 0 && value <= 1; }};
constinit const Range kWhole = {"a whole number", [](double) { return true; }};
constinit const Range kSwitch = {"0 or 1", [](double) { return true; }};
constinit const Range kWord = {"one of ", [](double) { return true; }};
constinit const Range kName = {"a name", [](double) { return true; }};

Settings::Settings(const std::vector<Key> &keys, const KeyValues &given) {
  for (const Key &key : keys) {
    auto found = given.find(key.name);
    values[key.name] = found == given.end() ? key.initial : found->second;
  }
}

const KeyValue &Settings::get(std::string_view key) const {
  auto found = values.find(key);
  assert(found != values.end() && "a formula reads only keys that its definition lists");
  return found->second;
}

/// Reads a value of the key's type within its range.
static bool parseValue(std::string_view text, const Key &key, KeyValue &value) {
  if (std::holds_alternative<int64_t>(key.initial))
    return parseInteger(text, value.emplace<int64_t>());
  if (std::holds_alternative<double>(key.initial)) {
    auto &number = value.emplace<double>();
    return parseNumber(text, number) && key.range.allows(number);
  }
  if (std::holds_alternative<std::string>(key.initial)) {
    value = std::string(text);
    return key.words.empty() ? !text.empty()
                             : std::find(key.words.begin(), key.words.end(), text) != key.words.end();
  }
  value = text == "1" || text == "true";
  return text == "0" || text == "1" || text == "true" || text == "false";
}

Expected<KeyValues> parseKeys(std::string_view text, const std::string &what, const std::vector<Key> &keys) {
  KeyValues given;
  while (true) {
    size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    size_t equals = item.find('=');
    std::string_view name = item.substr(0, equals);
    auto key = std::find_if(keys.begin(), keys.end(), [&](const Key &each) { return name == each.name; });
    if (key == keys.end()) {
      std::string known;
      std::vector<std::string> names;
      for (const Key &candidate : keys) {
        known += (known.empty() ? "" : ", ") + std::string(candidate.name);
        names.push_back(candidate.name);
      }
      return Status::refusal(what + " has no option " + quote(name) +
                             (known.empty() ? "; it takes none" : "; it takes " + known) +
                             suggestWord(name, names));
    }
    if (equals == std::string_view::npos)
      return Status::refusal(what + ": option " + quote(name) + " needs a value: " + key->name + "=...");
    KeyValue value;
    std::string_view written = item.substr(equals + 1);
    if (given.find(name) != given.end())
      return Status::refusal(what + ": option " + quote(name) + " is given twice");
    if (!parseValue(written, *key, value)) {
      std::string allowed = key->range.text;
      for (const std::string &word : key->words)
        allowed += (&word == &key->words.front() ? "" : ", ") + word;
      double number = 0;
      if (std::holds_alternative<int64_t>(key->initial) && parseNumber(written, number))
        allowed += ", in digits, below 2^63"; // 1e9, 1.5, or 20 digits
      return Status::refusal(what + ": " + key->name + " is " + quote(written) + " but must be " + allowed);
    }
    given[key->name] = value;
    if (comma == std::string_view::npos)
      return given;
    text.remove_prefix(comma + 1);
  }
}

Expected<KeyValues> parseSettings(bool hasKeys, std::string_view text, const std::string &what,
                                  const std::vector<Key> &keys, const char *(*contradict)(const Settings &)) {
  KeyValues given;
  if (hasKeys)
    ORTC_TRY(parseKeys(text, what, keys).moveTo(given));
  if (const char *reason = contradict ? contradict(Settings(keys, given)) : nullptr)
    return Status::refusal(what + ": " + reason);
  return given;
}

bool splitPattern(std::string_view text, std::string_view &regex, std::string_view &keys) {
  size_t colon = text.rfind(':');
  constexpr std::string_view kFile = "optimizer=onnx";
  if (colon != text.npos && colon > kFile.size() && text.substr(colon - kFile.size(), kFile.size()) == kFile)
    colon = text.rfind(':', colon - 1);
  bool hasKeys = colon != std::string_view::npos && text.find('=', colon) != std::string_view::npos;
  regex = text.substr(0, hasKeys ? colon : text.size());
  keys = hasKeys ? text.substr(colon + 1) : std::string_view();
  return hasKeys;
}

void splitSpec(std::string_view text, std::string_view &word, std::string_view &rest, bool &hasRest) {
  size_t colon = text.find(':');
  word = text.substr(0, colon);
  hasRest = colon != std::string_view::npos;
  rest = hasRest ? text.substr(colon + 1) : std::string_view();
}

std::string formatValue(const KeyValue &value) {
  if (const auto *integer = std::get_if<int64_t>(&value))
    return std::to_string(*integer);
  if (const bool *flag = std::get_if<bool>(&value))
    return *flag ? "1" : "0";
  if (const auto *word = std::get_if<std::string>(&value))
    return *word;
  char buffer[32];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, std::get<double>(value)).ptr);
  if (size_t zero = text.find("e-0"); zero != std::string::npos) // 1e-08
    text.erase(zero + 2, 1);
  return text;
}

std::string formatSpec(const char *word, const std::vector<Key> &keys) {
  std::string text = word;
  for (const Key &key : keys)
    text += (&key == &keys.front() ? "[:" : ",") + std::string(key.name) + "=" + formatValue(key.initial);
  return text + (keys.empty() ? "" : "]");
}

std::string quote(std::string_view text) { return "'" + std::string(text) + "'"; }

} // namespace ortc
