// Parsers of what flags carry.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups, ties and modes; losses and optimizers are parsed where their tables are (passes/train).
#include "compiler/options/CompileOptions.h"
#include "compiler/options/Keys.h"

#include <charconv>
#include <cmath>
#include <initializer_list>

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
  const std::vector<Key> keys = {
      {"lr_scale", 1.0, kNotNegative, "factor of the learning rate"},
      {"weight_decay", 0.0, kNotNegative, "the group's own; not given: the optimizer's"}};
  KeyValues given;
  std::string_view regex = text.substr(0, colon);
  if (!NamePattern::parse(regex, parsed.pattern, error) ||
      !parseKeys(text.substr(colon + 1), "group " + quote(regex), keys, given, error))
    return false;
  Settings settings(keys, given);
  parsed.lrScale = settings.getNumber("lr_scale");
  if (given.count("weight_decay"))
    parsed.weightDecay = settings.getNumber("weight_decay");
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
