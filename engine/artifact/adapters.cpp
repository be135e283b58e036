// Low-rank adapters of an artifact, and the files in which the PEFT library keeps them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/adapters.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "engine/artifact/linear_pattern.h"
#include "support/Json.h"
#include "support/Text.h"

namespace ortc::engine {

std::vector<NamedFile> listLoadedFiles(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return {{"--load", path}};
  std::filesystem::path folder = path;
  return {{"a file of --load", (folder / kPeftConfig).string()},
          {"a file of --load", (folder / kPeftTensors).string()}};
}

Status parseAdapters(const std::string &manifest, const std::string &where, std::vector<Adapter> &adapters) {
  nlohmann::json parsed = parseJson(manifest);
  adapters.clear();
  if (!parsed.is_object() || !parsed.contains("adapters"))
    return Status();
  auto bad = [&] {
    return Status::failure(where + ": the manifest's \"adapters\" are damaged; compile it again");
  };
  if (!parsed["adapters"].is_array())
    return bad();
  for (const nlohmann::json &item : parsed["adapters"]) {
    if (!item.is_object())
      return bad();
    Adapter adapter;
    auto text = [&](const char *key, std::string &value) {
      bool is = item.contains(key) && item[key].is_string();
      value = is ? item[key].get<std::string>() : std::string();
      return is;
    };
    auto number = [&](const char *key, double &value) {
      bool is = item.contains(key) && item[key].is_number();
      value = is ? item[key].get<double>() : 0;
      return is;
    };
    auto flag = [&](const char *key, bool &value) {
      bool is = item.contains(key) && item[key].is_boolean();
      value = is && item[key].get<bool>();
      return is;
    };
    double rank = 0;
    if (!text("weight", adapter.weight) || !text("a", adapter.a) || !text("b", adapter.b) ||
        !text("kind", adapter.kind) || !number("rank", rank) || !(rank >= 1 && rank <= 1e9) ||
        !number("alpha", adapter.alpha) || !number("dropout", adapter.dropout) ||
        !number("scale", adapter.scale) || !flag("transposed", adapter.isTransposed) ||
        !flag("rank_stabilized", adapter.isRankStabilized))
      return bad();
    if (item.contains("quantized") &&
        (!text("quantized", adapter.quantized) || !text("quantized_scale", adapter.quantizedScale)))
      return bad();
    adapter.rank = int64_t(rank);
    adapters.push_back(adapter);
  }
  return Status();
}

static std::string scaleKey(const Adapter &adapter) { return "lora.scale " + adapter.weight; }

std::map<std::string, std::string> formatScales(const std::vector<Adapter> &adapters) {
  constexpr size_t kMostBytes = 1000; // a string of the metadata has 1023
  std::map<std::string, std::string> scales;
  for (const Adapter &adapter : adapters)
    if (std::string value = formatExact(adapter.scale); scaleKey(adapter).size() + value.size() <= kMostBytes)
      scales[scaleKey(adapter)] = value;
  return scales;
}

Status checkScales(const std::map<std::string, std::string> &metadata, const std::string &path,
                   const std::vector<Adapter> &adapters) {
  for (const Adapter &adapter : adapters) {
    auto found = metadata.find(scaleKey(adapter));
    if (std::string scale = formatExact(adapter.scale); found != metadata.end() && found->second != scale)
      return Status::failure(path + ": the adapter of '" + adapter.weight + "' has a scale of " +
                             found->second + ", but the artifact was compiled with one of " + scale +
                             "; compile with the alpha and rs of --lora that it was saved with");
  }
  return Status();
}

std::string peftName(const std::string &tensor) { return "base_model.model." + tensor; }

/// The module of a weight: its name without what names the tensor in it.
static std::string moduleOf(const Adapter &adapter) {
  const std::string end = ".weight";
  const std::string &name = adapter.weight;
  return name.ends_with(end) ? name.substr(0, name.size() - end.size()) : name;
}

using Config = nlohmann::ordered_json;

/// A value in a message.
static std::string show(const Config &value) {
  constexpr size_t kMost = 100;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

/// A number of the configuration, which keeps its value where the key is not there.
static Status readNumber(const Config &json, const std::string &key, const std::string &where,
                         double &value) {
  if (!json.contains(key) || json[key].is_null())
    return Status();
  if (!json[key].is_number())
    return Status::failure(where + ": '" + key + "' is " + show(json[key]) + ", but it must be a number");
  value = json[key].get<double>();
  return Status();
}

/// Numbers for modules, by regular expressions.
using Patterns = std::vector<std::pair<LinearPattern, double>>;

static Status readPatterns(const Config &json, const std::string &key, const std::string &where,
                           Patterns &patterns) {
  if (!json.contains(key) || json[key].is_null())
    return Status();
  if (!json[key].is_object())
    return Status::failure(where + ": '" + key + "' is " + show(json[key]) +
                           ", but it must be an object with a number for each module");
  constexpr size_t kMostStates = 500000; // names of 80 characters for each of 6,000 modules
  size_t states = 0;
  for (const auto &[name, unused] : json[key].items()) {
    double value = 0;
    ORTC_TRY(readNumber(json[key], name, where + ": '" + key + "'", value));
    std::string why;
    LinearPattern pattern;
    if (!pattern.parse(name, why))
      return Status::failure(where + ": '" + key + "' has the key '" + name.substr(0, 100) +
                             "', an expression with " + why +
                             ", which is not taken; write the module's name");
    if ((states += pattern.countStates()) > kMostStates)
      return Status::failure(where + ": '" + key + "' has expressions of more than " +
                             std::to_string(kMostStates) +
                             " states; write names of modules, or a number for all");
    patterns.emplace_back(std::move(pattern), value);
  }
  return Status();
}

/// What a table of patterns has for a module: PEFT takes the first key that matches the end of its name.
static double findPattern(const Patterns &patterns, const std::string &module, double otherwise) {
  for (const auto &[pattern, value] : patterns)
    if (pattern.matchesEnd(module))
      return value;
  return otherwise;
}

/// What a configuration has that the tensors of low-rank factors alone do not say; "" if nothing.
static std::string findMore(const Config &json) {
  auto isSet = [&](const char *key) {
    if (!json.contains(key))
      return false;
    const Config &value = json[key];
    return value.is_boolean() ? value.get<bool>() : value.is_string() ? value != "none" : !value.empty();
  };
  for (const auto &[key, what] : {std::pair("use_dora", "DoRA"), std::pair("bias", "trained biases"),
                                  std::pair("lora_bias", "biases of adapters"),
                                  std::pair("modules_to_save", "layers that were trained whole")})
    if (isSet(key))
      return std::string(what) + " ('" + key + "' is " + show(json[key]) + ")";
  return "";
}

Status checkPeftConfig(std::string_view text, const std::string &where,
                       const std::vector<Adapter> &adapters) {
  auto json = parseJson<Config>(text);
  if (!json.is_object() || !json.contains("peft_type") || json["peft_type"] != "LORA")
    return Status::failure(where + ": is no configuration of LoRA");
  if (std::string more = findMore(json); !more.empty())
    return Status::failure(where + ": has " + more + ", which adapters of --lora have not");
  double commonRank = 8, commonAlpha = 8; // PEFT's defaults
  Patterns ranks, alphas;
  ORTC_TRY(readNumber(json, "r", where, commonRank));
  ORTC_TRY(readNumber(json, "lora_alpha", where, commonAlpha));
  ORTC_TRY(readPatterns(json, "rank_pattern", where, ranks));
  ORTC_TRY(readPatterns(json, "alpha_pattern", where, alphas));
  bool isRankStabilized = json.contains("use_rslora") && json["use_rslora"] == true;
  for (const Adapter &adapter : adapters) {
    double rank = findPattern(ranks, moduleOf(adapter), commonRank),
           alpha = findPattern(alphas, moduleOf(adapter), commonAlpha),
           scale = alpha / (isRankStabilized ? std::sqrt(rank) : rank);
    if (!(std::fabs(scale - adapter.scale) <= 1e-6 * std::fabs(adapter.scale)))
      return Status::failure(where + ": the adapter of '" + adapter.weight + "' has rank " +
                             formatNumber(rank) + " and alpha " + formatNumber(alpha) + ", a scale of " +
                             formatNumber(scale) + ", but the artifact was compiled with one of " +
                             formatNumber(adapter.scale));
  }
  return Status();
}

/// A name as a regular expression that matches it alone.
static std::string escape(const std::string &name) {
  std::string text;
  for (char c : name) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && !std::isalnum(byte) && c != '_') // others are parts of a character
      text += '\\';
    text += c;
  }
  return text;
}

Status makePeftConfig(const std::vector<Adapter> &adapters, std::string &config) {
  const Adapter &first = adapters.front();
  std::string modules; // an expression: a list of names would be one of ends of names
  std::vector<const Adapter *> longestFirst;
  bool areEqual = true;
  for (const Adapter &adapter : adapters) {
    if (adapter.dropout != first.dropout || adapter.isRankStabilized != first.isRankStabilized)
      return Status::refusal("the adapters of '" + first.weight + "' and '" + adapter.weight +
                             "' differ in dropout or rs, for which PEFT's configuration has one value");
    areEqual &= adapter.rank == first.rank && adapter.alpha == first.alpha;
    modules += (modules.empty() ? "" : "|") + escape(moduleOf(adapter));
    longestFirst.push_back(&adapter);
  }
  std::sort(longestFirst.begin(), longestFirst.end(), [](const Adapter *x, const Adapter *y) {
    return std::pair(y->weight.size(), x->weight) < std::pair(x->weight.size(), y->weight);
  });
  // PEFT declares alpha as a whole number.
  auto alphaOf = [](double alpha) {
    bool isWhole = std::fabs(alpha) < 0x1p63 && alpha == std::trunc(alpha);
    return isWhole ? nlohmann::ordered_json(static_cast<int64_t>(alpha)) : nlohmann::ordered_json(alpha);
  };
  // The first key that is the end of a module's name wins: every module has its own.
  nlohmann::ordered_json ranks = nlohmann::ordered_json::object(), alphas = ranks;
  for (const Adapter *adapter : longestFirst)
    if (!areEqual) {
      ranks[escape(moduleOf(*adapter))] = adapter->rank;
      alphas[escape(moduleOf(*adapter))] = alphaOf(adapter->alpha);
    }
  nlohmann::ordered_json json{{"peft_type", "LORA"},
                              {"task_type", nullptr},
                              {"base_model_name_or_path", nullptr},
                              {"inference_mode", true},
                              {"r", first.rank},
                              {"lora_alpha", alphaOf(first.alpha)},
                              {"lora_dropout", first.dropout},
                              {"use_rslora", first.isRankStabilized},
                              {"bias", "none"},
                              {"fan_in_fan_out", false},
                              {"target_modules", modules},
                              {"rank_pattern", ranks},
                              {"alpha_pattern", alphas},
                              {"modules_to_save", nullptr}};
  config = formatJson(json);
  return Status();
}

} // namespace ortc::engine
