// Parsers of `kind:key=value,...` specs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A spec is a word, and after a colon a list of key=value. A table of the keys a kind takes, with the range
// of each, drives parsing and messages alike.
#include "compiler/options/CompileOptions.h"

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace ortc {

bool parseInteger(std::string_view text, int64_t &value) {
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool parseUnsigned(std::string_view text, uint64_t &value) {
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool parseNumber(std::string_view text, double &value) {
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size() && !text.empty() && std::isfinite(value);
}

namespace {

/// One key of a spec: where its value goes and what it may be. Exactly one of the targets is set.
struct Key {
  const char *name;
  const char *range; ///< in words, for messages
  double *number = nullptr;
  int64_t *integer = nullptr;
  bool *flag = nullptr;
  bool (*allowed)(double) = nullptr; ///< of numbers
};

// Steps compute with them in float32, which has no larger numbers, and no smaller ones that it can divide by.
constexpr const char *kNotNegative = "a number from 0 to 3.4e38",
                     *kPositive = "a number from 1.2e-38 to 3.4e38";
constexpr double kLargest = std::numeric_limits<float>::max(), kSmallest = std::numeric_limits<float>::min();
bool isNotNegative(double value) { return value >= 0 && value <= kLargest; }
bool isPositive(double value) { return value >= kSmallest && value <= kLargest; }
bool isFraction(double value) { return value >= 0 && value < 1; }
bool isShare(double value) { return value >= 0 && value <= 1; }

std::string quote(std::string_view text) { return "'" + std::string(text) + "'"; }

} // namespace

/// Reads `key=value,...` by the table. `what` names the spec in messages, e.g. "optimizer 'sgd'".
static bool parseKeys(std::string_view text, const std::string &what, const std::vector<Key> &keys,
                      std::string &error) {
  std::vector<const char *> seen;
  while (true) {
    size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    size_t equals = item.find('=');
    std::string_view name = item.substr(0, equals);
    const Key *key = nullptr;
    for (const Key &candidate : keys)
      if (name == candidate.name)
        key = &candidate;
    if (!key) {
      std::string known;
      for (const Key &candidate : keys)
        known += (known.empty() ? "" : ", ") + std::string(candidate.name);
      error = what + " has no option " + quote(name) +
              (known.empty() ? "; it takes none" : "; it takes " + known);
      return false;
    }
    if (equals == std::string_view::npos) {
      error = what + ": option " + quote(name) + " needs a value: " + key->name + "=...";
      return false;
    }
    for (const char *earlier : seen) {
      if (earlier == key->name) {
        error = what + ": option " + quote(name) + " is given twice";
        return false;
      }
    }
    seen.push_back(key->name);
    std::string_view value = item.substr(equals + 1);
    bool good = false;
    if (key->integer) {
      good = parseInteger(value, *key->integer);
    } else if (key->number) {
      double parsed = 0;
      good = parseNumber(value, parsed) && key->allowed(parsed);
      if (good)
        *key->number = parsed;
    } else {
      good = value == "0" || value == "1" || value == "true" || value == "false";
      if (good)
        *key->flag = value == "1" || value == "true";
    }
    if (!good) {
      error = what + ": " + key->name + " is " + quote(value) + " but must be " + key->range;
      return false;
    }
    if (comma == std::string_view::npos)
      return true;
    text.remove_prefix(comma + 1);
  }
}

/// Splits `word:rest`; `hasRest` tells `word` from `word:`.
static void splitSpec(std::string_view text, std::string_view &word, std::string_view &rest, bool &hasRest) {
  size_t colon = text.find(':');
  word = text.substr(0, colon);
  hasRest = colon != std::string_view::npos;
  rest = hasRest ? text.substr(colon + 1) : std::string_view();
}

bool parseLoss(std::string_view text, LossSpec &loss, std::string &error) {
  std::string_view word, rest;
  bool hasRest = false;
  splitSpec(text, word, rest, hasRest);
  LossSpec parsed;
  parsed.text = std::string(text);
  parsed.isGiven = true;
  std::vector<Key> keys;
  bool found = false;
  for (LossKind kind : {LossKind::CrossEntropy, LossKind::Nll, LossKind::Mse, LossKind::L1,
                        LossKind::SmoothL1, LossKind::BceWithLogits, LossKind::Output, LossKind::None}) {
    if (word == getLossName(kind)) {
      parsed.kind = kind;
      found = true;
    }
  }
  if (!found) {
    error = "there is no loss " + quote(word) +
            "; there are cross_entropy, nll, mse, l1, smooth_l1, bce_with_logits, output:NAME and none";
    return false;
  }
  if (parsed.kind == LossKind::Output) {
    parsed.output = std::string(rest);
    if (rest.empty()) {
      error = "loss 'output' needs the name of the graph output that is the loss: output:NAME";
      return false;
    }
    loss = std::move(parsed);
    return true;
  }
  if (parsed.kind == LossKind::CrossEntropy) {
    keys = {{.name = "axis", .range = "a whole number", .integer = &parsed.axis},
            {.name = "ignore_index", .range = "a whole number", .integer = &parsed.ignoreIndex},
            {.name = "label_smoothing",
             .range = "a number from 0 to 1",
             .number = &parsed.labelSmoothing,
             .allowed = isShare},
            {.name = "probabilities", .range = "0 or 1", .flag = &parsed.probabilities}};
  } else if (parsed.kind == LossKind::Nll) {
    keys = {{.name = "axis", .range = "a whole number", .integer = &parsed.axis},
            {.name = "ignore_index", .range = "a whole number", .integer = &parsed.ignoreIndex}};
  } else if (parsed.kind == LossKind::SmoothL1) {
    keys = {{.name = "beta", .range = kPositive, .number = &parsed.beta, .allowed = isPositive}};
  }
  if (hasRest && !parseKeys(rest, "loss " + quote(word), keys, error))
    return false;
  if (parsed.probabilities && parsed.ignoreIndex != LossSpec().ignoreIndex) {
    error = "loss 'cross_entropy': probabilities have no index to ignore; leave ignore_index or "
            "probabilities out";
    return false;
  }
  loss = std::move(parsed);
  return true;
}

bool parseOptimizer(std::string_view text, OptimizerSpec &optimizer, std::string &error) {
  std::string_view word, rest;
  bool hasRest = false;
  splitSpec(text, word, rest, hasRest);
  OptimizerSpec parsed;
  parsed.text = std::string(text);
  parsed.isGiven = true;
  std::vector<Key> keys = {
      {.name = "lr", .range = kNotNegative, .number = &parsed.lr, .allowed = isNotNegative}};
  if (word == "sgd") {
    parsed.kind = OptimizerKind::Sgd;
    keys.push_back(
        {.name = "momentum", .range = kNotNegative, .number = &parsed.momentum, .allowed = isNotNegative});
  } else if (word == "adam" || word == "adamw") {
    parsed.kind = word == "adam" ? OptimizerKind::Adam : OptimizerKind::AdamW;
    parsed.beta1 = 0.9;
    parsed.beta2 = 0.999;
    parsed.epsilon = 1e-8;
    parsed.weightDecay = word == "adamw" ? 1e-2 : 0;
    const char *range = "a number of at least 0 and below 1";
    keys.push_back({.name = "beta1", .range = range, .number = &parsed.beta1, .allowed = isFraction});
    keys.push_back({.name = "beta2", .range = range, .number = &parsed.beta2, .allowed = isFraction});
    keys.push_back(
        {.name = "epsilon", .range = kNotNegative, .number = &parsed.epsilon, .allowed = isNotNegative});
  } else {
    error = "there is no optimizer " + quote(word) + "; there are sgd, adam and adamw";
    return false;
  }
  keys.push_back({.name = "weight_decay",
                  .range = kNotNegative,
                  .number = &parsed.weightDecay,
                  .allowed = isNotNegative});
  if (parsed.kind == OptimizerKind::Sgd)
    keys.push_back({.name = "nesterov", .range = "0 or 1", .flag = &parsed.nesterov});
  if (hasRest && !parseKeys(rest, "optimizer " + quote(word), keys, error))
    return false;
  if (parsed.nesterov && parsed.momentum == 0) {
    error = "optimizer 'sgd': nesterov needs a momentum above 0";
    return false;
  }
  optimizer = std::move(parsed);
  return true;
}

bool parseGroup(std::string_view text, GroupSpec &group, std::string &error) {
  // The options follow the last colon: a regular expression may have colons of its own, as in '(?:a|b)'.
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.find('=', colon) == std::string_view::npos) {
    error = quote(text) +
            " is no parameter group; write REGEX:lr_scale=X,weight_decay=Y with either option or both";
    return false;
  }
  GroupSpec parsed;
  parsed.text = std::string(text);
  double weightDecay = -1;
  std::vector<Key> keys = {
      {.name = "lr_scale", .range = kNotNegative, .number = &parsed.lrScale, .allowed = isNotNegative},
      {.name = "weight_decay", .range = kNotNegative, .number = &weightDecay, .allowed = isNotNegative}};
  std::string_view regex = text.substr(0, colon);
  if (!NamePattern::parse(regex, parsed.pattern, error) ||
      !parseKeys(text.substr(colon + 1), "group " + quote(regex), keys, error))
    return false;
  if (weightDecay >= 0)
    parsed.weightDecay = weightDecay;
  group = std::move(parsed);
  return true;
}

bool parseTie(std::string_view text, TieSpec &tie, std::string &error) {
  size_t equals = text.find('=');
  tie = {std::string(text.substr(0, equals)),
         std::string(equals == text.npos ? "" : text.substr(equals + 1))};
  if (!tie.copy.empty() && !tie.original.empty() && tie.copy != tie.original)
    return true;
  error = quote(text) + " names no two initializers; write COPY=ORIGINAL";
  return false;
}

/// Finds `text` among `words`; `what` begins the message.
template <typename Value>
static bool parseWord(std::string_view text, const char *what,
                      std::initializer_list<std::pair<const char *, Value>> words, Value &result,
                      std::string &error) {
  std::string known;
  for (const auto &[word, value] : words) {
    if (text == word) {
      result = value;
      return true;
    }
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  error = std::string(what) + " is " + quote(text) + " but must be one of " + known;
  return false;
}

bool parseBatchNorm(std::string_view text, BatchNormMode &mode, std::string &error) {
  return parseWord(text, "the batch norm mode",
                   {{"as-exported", BatchNormMode::AsExported},
                    {"train", BatchNormMode::Train},
                    {"frozen", BatchNormMode::Frozen}},
                   mode, error);
}

bool parseDropout(std::string_view text, DropoutMode &mode, std::string &error) {
  return parseWord(text, "the dropout mode",
                   {{"as-exported", DropoutMode::AsExported}, {"train", DropoutMode::Train}}, mode, error);
}

bool parseNumerics(std::string_view text, Numerics &numerics, std::string &error) {
  return parseWord(text, "the numerics mode", {{"fast", Numerics::Fast}, {"portable", Numerics::Portable}},
                   numerics, error);
}

bool parsePrecision(std::string_view text, Precision &precision, std::string &error) {
  return parseWord(text, "the precision", {{"f32", Precision::F32}, {"f64", Precision::F64}}, precision,
                   error);
}

bool parseBytes(std::string_view text, std::optional<uint64_t> &bytes, std::string &error) {
  static constexpr std::pair<std::string_view, uint64_t> kUnits[] = {{"KiB", 1ull << 10},
                                                                     {"MiB", 1ull << 20},
                                                                     {"GiB", 1ull << 30},
                                                                     {"TiB", 1ull << 40},
                                                                     {"PiB", 1ull << 50},
                                                                     {"kB", 1000},
                                                                     {"KB", 1000},
                                                                     {"MB", 1000'000},
                                                                     {"GB", 1000'000'000},
                                                                     {"TB", 1000'000'000'000},
                                                                     {"PB", 1000'000'000'000'000},
                                                                     {"B", 1}};
  uint64_t unit = 1;
  std::string_view number = text;
  for (const auto &[name, size] : kUnits)
    if (number.ends_with(name)) {
      number.remove_suffix(name.size());
      unit = size;
      break;
    }
  uint64_t whole = 0;
  double parsed = 0;
  constexpr uint64_t kMost = uint64_t(1) << 60;
  if (parseUnsigned(number, whole) && whole > 0 && whole <= kMost / unit) {
    bytes = whole * unit;
    return true;
  }
  if (unit > 1 && parseNumber(number, parsed) && parsed > 0 && parsed * static_cast<double>(unit) >= 1 &&
      parsed * static_cast<double>(unit) <= static_cast<double>(kMost)) {
    bytes = static_cast<uint64_t>(parsed * static_cast<double>(unit));
    return true;
  }
  error = quote(text) + " must be a number of bytes from 1 to 1024PiB, such as 65536, 300KiB or 1.5GiB";
  return false;
}

} // namespace ortc
