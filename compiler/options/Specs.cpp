// Parsers of what flags carry.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups, ties, adapters, quantisation, sparse tables, attention, the loss scale and modes; losses and optimizers are
// parsed where their tables are (compiler/passes/train).
#include "compiler/options/CompileOptions.h"
#include "compiler/options/Keys.h"
#include "support/Text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <set>

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

Expected<GroupSpec> parseGroup(std::string_view text) {
  std::string_view regex, rest;
  if (!splitPattern(text, regex, rest))
    return Status::refusal(
        quote(text) +
        " is no parameter group; write REGEX:KEY=VALUE,... with keys of the optimizer, lr_scale or "
        "optimizer=NAME");
  GroupSpec parsed;
  parsed.text = std::string(text);
  parsed.keys = std::string(rest);
  ORTC_TRY(NamePattern::parse(regex).moveTo(parsed.pattern));
  return parsed;
}

Expected<NoDecaySpec> parseNoDecay(std::string_view text) {
  NoDecaySpec parsed;
  for (std::string_view rest = text;;) {
    std::string_view word = rest.substr(0, rest.find(','));
    bool *field = word == "biases" ? &parsed.biases : word == "norms" ? &parsed.norms : nullptr;
    if (!field || *field)
      return Status::refusal(quote(text) + " must be biases, norms, or both with a comma between");
    *field = true;
    if (word.size() == rest.size())
      return parsed;
    rest.remove_prefix(word.size() + 1);
  }
}

Expected<TieSpec> parseTie(std::string_view text) {
  size_t equals = text.find('=');
  TieSpec tie = {std::string(text.substr(0, equals)),
                 std::string(equals == text.npos ? "" : text.substr(equals + 1))};
  if (tie.copy.empty() || tie.original.empty() || tie.copy == tie.original)
    return Status::refusal(quote(text) + " names no two initializers; write COPY=ORIGINAL");
  return tie;
}

/// Finds `text` among `words`; `what` begins the message.
template <typename Value>
static Expected<Value> parseWord(std::string_view text, const char *what,
                                 std::initializer_list<std::pair<const char *, Value>> words) {
  std::string known;
  for (const auto &[word, value] : words) {
    if (text == word)
      return value;
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  return Status::refusal(std::string(what) + " is " + quote(text) + " but must be one of " + known);
}

Expected<BatchNormSpec> parseBatchNorm(std::string_view text) {
  const std::vector<Key> keys = {
      {"unbiased", false, kSwitch, "running variances are those of samples, as PyTorch's"}};
  BatchNormSpec parsed;
  std::string_view word, rest;
  bool hasRest = false;
  splitSpec(text, word, rest, hasRest);
  ORTC_TRY(parseWord<BatchNormMode>(word, "the batch norm mode",
                                    {{"as-exported", BatchNormMode::AsExported},
                                     {"train", BatchNormMode::Train},
                                     {"frozen", BatchNormMode::Frozen}})
               .moveTo(parsed.mode));
  if (!hasRest)
    return parsed;
  if (parsed.mode == BatchNormMode::Frozen)
    return Status::refusal(quote(text) + ": frozen statistics do not move; leave the keys out");
  KeyValues given;
  ORTC_TRY(parseKeys(rest, "batch normalisation", keys).moveTo(given));
  parsed.isUnbiased = Settings(keys, given).isOn("unbiased");
  return parsed;
}

std::string describeBatchNorm(const BatchNormSpec &spec) {
  const char *modes[] = {"as-exported", "train", "frozen"};
  return std::string(modes[static_cast<int>(spec.mode)]) + (spec.isUnbiased ? ":unbiased=1" : "");
}

Expected<DropoutSpec> parseDropout(std::string_view text) {
  const std::vector<Key> keys = {
      {"masks", true, kSwitch, "masks that the graph draws itself are dropout, where they compute it"}};
  DropoutSpec parsed;
  std::string_view word, rest;
  bool hasRest = false;
  splitSpec(text, word, rest, hasRest);
  ORTC_TRY(parseWord<DropoutMode>(word, "the dropout mode",
                                  {{"as-exported", DropoutMode::AsExported},
                                   {"train", DropoutMode::Train},
                                   {"off", DropoutMode::Off}})
               .moveTo(parsed.mode));
  if (!hasRest)
    return parsed;
  KeyValues given;
  ORTC_TRY(parseKeys(rest, "dropout", keys).moveTo(given));
  parsed.findsMasks = Settings(keys, given).isOn("masks");
  return parsed;
}

std::string describeDropout(const DropoutSpec &spec) {
  const char *modes[] = {"as-exported", "train", "off"};
  return std::string(modes[static_cast<int>(spec.mode)]) + (spec.findsMasks ? "" : ":masks=0");
}

Expected<Numerics> parseNumerics(std::string_view text) {
  return parseWord<Numerics>(text, "the numerics mode",
                             {{"fast", Numerics::Fast}, {"portable", Numerics::Portable}});
}

Expected<Precision> parsePrecision(std::string_view text) {
  return parseWord<Precision>(text, "the precision",
                              {{"f32", Precision::F32},
                               {"bf16", Precision::BF16},
                               {"f16", Precision::F16},
                               {"tf32", Precision::TF32},
                               {"f64", Precision::F64}});
}

Expected<ParameterStorage> parseParameters(std::string_view text) {
  return parseWord<ParameterStorage>(text, "the type of parameters",
                                     {{"f32", ParameterStorage::F32},
                                      {"bf16", ParameterStorage::BF16Nearest},
                                      {"bf16:nearest", ParameterStorage::BF16Nearest},
                                      {"bf16:stochastic", ParameterStorage::BF16Stochastic}});
}

std::string_view narrowType(const CompileOptions &options) {
  return options.precision == Precision::BF16 ? "bf16" : options.precision == Precision::F16 ? "f16" : "";
}

static bool isMoreThanOne(double value) { return value > 1 && value <= 1e30; }
static bool isBetweenZeroAndOne(double value) { return value >= 1e-30 && value < 1; }

Expected<LossScaleSpec> parseLossScale(std::string_view text) {
  static constexpr Range kMoreThanOne = {"more than 1 and at most 1e30", isMoreThanOne};
  static constexpr Range kBelowOne = {"at least 1e-30 and below 1", isBetweenZeroAndOne};
  const LossScaleSpec defaults;
  const std::vector<Key> keys = {
      {"init", defaults.initial, kPositive, "the first scale"},
      {"growth", defaults.growth, kMoreThanOne, "factor after `interval` steps without skipping"},
      {"backoff", defaults.backoff, kBelowOne, "factor after a step that was skipped"},
      {"interval", defaults.interval, kWhole, "steps, at least 1"}};
  LossScaleSpec parsed;
  parsed.text = std::string(text);
  std::string_view word, rest;
  bool hasKeys = false;
  splitSpec(text, word, rest, hasKeys);
  if (word == "dynamic") {
    KeyValues given;
    ORTC_TRY(parseSettings(hasKeys, rest, "loss scale 'dynamic'", keys, nullptr).moveTo(given));
    Settings settings(keys, given);
    parsed.initial = settings.getNumber("init");
    parsed.growth = settings.getNumber("growth");
    parsed.backoff = settings.getNumber("backoff");
    parsed.interval = settings.getInteger("interval");
    if (parsed.interval < 1)
      return Status::refusal("loss scale 'dynamic': interval is " + std::to_string(parsed.interval) +
                             " but must be at least 1");
    return parsed;
  }
  parsed.isDynamic = false;
  if (!parseNumber(text, parsed.initial) || !kPositive.allows(parsed.initial))
    return Status::refusal("the loss scale is " + quote(text) + " but must be " +
                           formatSpec("dynamic", keys) + " or a number, " + kPositive.text);
  return parsed;
}

double LoraSpec::getScale() const {
  auto size = static_cast<double>(rank);
  return alpha / (isRankStabilized ? std::sqrt(size) : size);
}

Expected<LoraSpec> parseLora(std::string_view text) {
  LoraSpec parsed;
  const std::vector<Key> keys = {
      {"rank", parsed.rank, kWhole, "columns of the first factor, at least 1"},
      {"alpha", parsed.alpha, kPositive, "times 1 / rank, the factor of what an adapter adds"},
      {"dropout", parsed.dropout, kFraction,
       "share of what the first factor reads that is dropped in training"},
      {"rs", parsed.isRankStabilized, kSwitch, "alpha / sqrt(rank) instead of alpha / rank"}};
  std::string_view regex, rest;
  KeyValues given;
  if (splitPattern(text, regex, rest))
    ORTC_TRY(parseKeys(rest, "adapters " + quote(regex), keys).moveTo(given));
  Settings settings(keys, given);
  ORTC_TRY(NamePattern::parse(regex).moveTo(parsed.pattern));
  parsed.text = std::string(text);
  parsed.rank = settings.getInteger("rank");
  parsed.alpha = settings.getNumber("alpha");
  parsed.dropout = settings.getNumber("dropout");
  parsed.isRankStabilized = settings.isOn("rs");
  if (parsed.rank < 1)
    return Status::refusal("adapters " + quote(regex) + ": rank is " + std::to_string(parsed.rank) +
                           " but must be at least 1");
  return parsed;
}

static bool isShareAboveZero(double value) { return value > 0 && value <= 1; }

Expected<TrainSpec> parseTrain(std::string_view text) {
  static constexpr Range kShareAboveZero = {"a number above 0 and at most 1", isShareAboveZero};
  TrainSpec parsed;
  const std::vector<Key> keys = {
      {"channels", parsed.channels, kShareAboveZero, "share of the output channels, the first ones"}};
  // No other text that follows a colon is a setting: expressions have colons, and paths too.
  size_t colon = text.rfind(":channels");
  size_t end = colon == std::string_view::npos ? colon : text.find('=', colon);
  bool hasKeys = end != std::string_view::npos && text.substr(colon + 1, end - colon - 1) == "channels";
  std::string_view names = text.substr(0, hasKeys ? colon : text.size());
  ORTC_TRY(NamePattern::read(names).moveTo(parsed.pattern));
  if (!hasKeys)
    return parsed;
  KeyValues given;
  ORTC_TRY(parseKeys(text.substr(colon + 1), "tensors " + quote(names), keys).moveTo(given));
  parsed.channels = Settings(keys, given).getNumber("channels");
  return parsed;
}

Expected<BindSpec> parseBind(std::string_view text) {
  BindSpec parsed;
  for (std::string_view rest = text;;) {
    std::string_view word = rest.substr(0, rest.find(','));
    bool *field = word == "parameters"  ? &parsed.parameters
                  : word == "gradients" ? &parsed.gradients
                  : word == "strided"   ? &parsed.strided
                                        : nullptr;
    bool isLast = word.size() == rest.size();
    bool isNothing = isLast && !parsed.parameters && !parsed.gradients && word == "strided";
    if (!field || *field || isNothing)
      return Status::refusal(quote(text) +
                             " must be parameters, gradients, or both with a comma between, and strided "
                             "where layouts are the artifact's");
    *field = true;
    if (isLast)
      return parsed;
    rest.remove_prefix(word.size() + 1);
  }
}

double channelsOf(const CompileOptions &options, const std::string &tensor) {
  for (size_t i = 0; i < options.train.size() && i < options.channels.size(); ++i)
    if (options.train[i].matches(tensor))
      return options.channels[i];
  return 1;
}

Expected<SparseSpec> parseSparse(std::string_view text) {
  SparseSpec parsed;
  const std::vector<Key> keys = {
      {"lazy", parsed.isLazy, kSwitch,
       "a row waits for its next gradient where momentum, averages or a decay would move it"}};
  std::string_view regex, rest;
  KeyValues given;
  if (splitPattern(text, regex, rest))
    ORTC_TRY(parseKeys(rest, "sparse tables " + quote(regex), keys).moveTo(given));
  ORTC_TRY(NamePattern::parse(regex).moveTo(parsed.pattern));
  parsed.text = std::string(text);
  parsed.isLazy = Settings(keys, given).isOn("lazy");
  return parsed;
}

Expected<BaseSpec> parseBase(std::string_view text) {
  BaseSpec parsed;
  const std::vector<Key> keys = {
      {"block", parsed.block, kWhole, "numbers that share a scale: a power of two from 32 to 4096"}};
  std::string_view word, rest;
  bool hasKeys = false;
  splitSpec(text, word, rest, hasKeys);
  if (word != "int8" && word != "int4")
    return Status::refusal("the base is " + quote(text) + " but must be one of " + formatSpec("int8", keys) +
                           ", " + formatSpec("int4", keys));
  KeyValues given;
  ORTC_TRY(parseSettings(hasKeys, rest, "base " + quote(word), keys, nullptr).moveTo(given));
  parsed.text = std::string(text);
  parsed.bits = word == "int8" ? 8 : 4;
  parsed.block = Settings(keys, given).getInteger("block");
  if (parsed.block < 32 || parsed.block > 4096 || (parsed.block & (parsed.block - 1)) != 0)
    return Status::refusal("base " + quote(word) + ": block is " + std::to_string(parsed.block) +
                           " but must be a power of two from 32 to 4096");
  return parsed;
}

Expected<EmitSpec> parseEmit(std::string_view text) {
  EmitSpec parsed;
  parsed.text = std::string(text);
  const std::vector<Key> keys = {
      {"name", parsed.name, kName, "what the names of C begin with: letters, digits and _, no digit first"}};
  std::string_view word, rest;
  bool hasKeys = false;
  splitSpec(text, word, rest, hasKeys);
  if (word == "wasm" && !hasKeys) {
    parsed.kind = EmitSpec::Wasm;
    return parsed;
  }
  if (word != "static")
    return Status::refusal(quote(text) + " must be " + formatSpec("static", keys) + " or wasm");
  KeyValues given;
  ORTC_TRY(parseSettings(hasKeys, rest, quote(word), keys, nullptr).moveTo(given));
  parsed.name = Settings(keys, given).getWord("name");
  auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto isAllowed = [&](char c) { return isLetter(c) || (c >= '0' && c <= '9'); };
  if (parsed.name.empty() || parsed.name.size() > 64 || !isLetter(parsed.name.front()) ||
      !std::all_of(parsed.name.begin(), parsed.name.end(), isAllowed))
    return Status::refusal("'static': name is " + quote(parsed.name) +
                           " but must be an identifier of C of at most 64 characters");
  // Of C and C++, and what the sources take from headers.
  static const std::set<std::string, std::less<>> kTaken = {
      "alignas",  "alignof",  "and",     "asm",      "auto",    "bool",    "break",     "case",   "catch",
      "char",     "class",    "const",   "continue", "default", "delete",  "do",        "double", "else",
      "enum",     "explicit", "export",  "extern",   "false",   "float",   "for",       "friend", "goto",
      "if",       "inline",   "int",     "long",     "main",    "mutable", "namespace", "new",    "noexcept",
      "not",      "NULL",     "nullptr", "operator", "or",      "private", "protected", "public", "register",
      "restrict", "return",   "short",   "signed",   "sizeof",  "static",  "struct",    "switch", "template",
      "this",     "throw",    "true",    "try",      "typedef", "typeid",  "typename",  "union",  "unsigned",
      "using",    "virtual",  "void",    "volatile", "wchar_t", "while",   "xor",       "size_t", "uint8_t"};
  if (kTaken.count(parsed.name) || parsed.name.starts_with("ortc") || parsed.name.starts_with("__"))
    return Status::refusal("'static': name is " + quote(parsed.name) +
                           ", which C, C++ or ortc has for itself; give another");
  return parsed;
}

Expected<ObjectFormat> parseObjectFormat(std::string_view text) {
  if (text == "elf")
    return ObjectFormat::Elf;
  if (text == "macho")
    return ObjectFormat::MachO;
  if (text == "coff")
    return ObjectFormat::Coff;
  return Status::refusal(quote(text) + " must be elf, macho or coff");
}

Expected<bool> parseOptimization(std::string_view text) {
  if (text == "size" || text == "speed")
    return text == "size";
  return Status::refusal(quote(text) + " must be speed or size");
}

Expected<QatSpec> parseQat(std::string_view text) {
  QatSpec parsed;
  const std::string average = "moving_average", channel = "channel";
  const std::vector<Key> keys = {
      {"bits", parsed.bits, kWhole, "of the integers, 2 to 8"},
      {"per", channel, kWord, "what has a range of its own in a weight", false, {channel, "tensor"}},
      {"observer",
       average,
       kWord,
       "how a range follows from the values of steps",
       false,
       {average, "minmax"}},
      {"averaging", parsed.averaging, kShare, "weight of a step in the moving average"},
      {"observe", parsed.observedSteps, kWhole, "steps that observe; 0: all, with learned=1 the first"},
      {"learned", parsed.isLearned, kSwitch, "scales are trained after the steps that observe"}};
  std::string_view regex, rest;
  bool hasKeys = splitPattern(text, regex, rest);
  std::string what = "quantisation " + quote(regex);
  KeyValues given;
  if (hasKeys)
    ORTC_TRY(parseKeys(rest, what, keys).moveTo(given));
  Settings settings(keys, given);
  ORTC_TRY(NamePattern::parse(regex).moveTo(parsed.pattern));
  parsed.text = std::string(text);
  parsed.bits = settings.getInteger("bits");
  parsed.isPerChannel = settings.getWord("per") == channel;
  parsed.isAveraged = settings.getWord("observer") == average;
  parsed.averaging = settings.getNumber("averaging");
  parsed.observedSteps = settings.getInteger("observe");
  parsed.isLearned = settings.isOn("learned");
  if (parsed.bits < 2 || parsed.bits > 8)
    return Status::refusal(what + ": bits is " + std::to_string(parsed.bits) + " but must be from 2 to 8");
  if (parsed.observedSteps < 0)
    return Status::refusal(what + ": observe is " + std::to_string(parsed.observedSteps) +
                           " but must be 0 or more");
  if (!parsed.isAveraged && given.count("averaging"))
    return Status::refusal(what + ": averaging is of observer=moving_average; leave it out");
  return parsed;
}

Expected<AttentionSpec> parseAttention(std::string_view text) {
  const std::vector<Key> keys = {
      {"rows", int64_t(0), kWhole, "queries of a tile; 0: as many as a core's caches hold the scores of"}};
  AttentionSpec parsed;
  std::string_view word, rest;
  bool hasKeys = false;
  splitSpec(text, word, rest, hasKeys);
  if (word == "tiled") {
    KeyValues given;
    ORTC_TRY(parseSettings(hasKeys, rest, "attention 'tiled'", keys, nullptr).moveTo(given));
    parsed = {1, Settings(keys, given).getInteger("rows")};
    if (parsed.rows < 0)
      return Status::refusal("attention 'tiled': rows is " + std::to_string(parsed.rows) +
                             " but must be 0 or more");
  } else if (text == "whole") {
    parsed.least = INT64_MAX;
  } else if (text != "auto") {
    return Status::refusal("the attention mode is " + quote(text) + " but must be one of auto, " +
                           formatSpec("tiled", keys) + ", whole");
  }
  return parsed;
}

Expected<uint64_t> parseBytes(std::string_view text) {
  const auto [name, unit] = findByteUnit(text);
  const std::string_view number = text.substr(0, text.size() - name.size());
  uint64_t whole = 0;
  double parsed = 0;
  constexpr uint64_t kMost = uint64_t(1) << 60;
  if (parseUnsigned(number, whole) && whole > 0 && whole <= kMost / unit)
    return whole * unit;
  if (unit > 1 && parseNumber(number, parsed) && parsed > 0 && parsed * static_cast<double>(unit) >= 1 &&
      parsed * static_cast<double>(unit) <= static_cast<double>(kMost))
    return static_cast<uint64_t>(parsed * static_cast<double>(unit));
  return Status::refusal(quote(text) +
                         " must be a number of bytes from 1 to 1024PiB, such as 65536, 300KiB or 1.5GiB");
}

} // namespace ortc
