// Low-rank adapters of an artifact, and the files in which the PEFT library keeps them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/adapters.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "host/json.h"
#include "host/text.h"

namespace ortc::host {

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
    if (std::string value = formatExact(adapter.scale);
        scaleKey(adapter).size() + value.size() <= kMostBytes)
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

/// The name that an expression without operators matches.
static std::string unescape(const std::string &pattern) {
  std::string name;
  for (char c : pattern)
    if (c != '\\')
      name += c;
  return name;
}

/// What a table of patterns has for a module: PEFT takes the first key that is the end of its name.
static double findPattern(const nlohmann::ordered_json &json, const char *key, const std::string &module,
                          double otherwise) {
  if (!json.contains(key) || !json[key].is_object())
    return otherwise;
  for (const auto &[pattern, value] : json[key].items())
    if (std::string name = unescape(pattern);
        value.is_number() && (module == name || module.ends_with("." + name)))
      return value.get<double>();
  return otherwise;
}

Status checkPeftConfig(std::string_view text, const std::string &where,
                       const std::vector<Adapter> &adapters) {
  auto json = parseJson<nlohmann::ordered_json>(text);
  auto number = [&](const char *key, double otherwise) {
    return json.contains(key) && json[key].is_number() ? json[key].get<double>() : otherwise;
  };
  auto isOn = [&](const char *key) {
    return json.contains(key) && json[key].is_boolean() && json[key].get<bool>();
  };
  if (!json.is_object() || !json.contains("peft_type") || json["peft_type"] != "LORA")
    return Status::failure(where + ": is no configuration of LoRA");
  if (isOn("use_dora") || (json.contains("bias") && json["bias"].is_string() && json["bias"] != "none"))
    return Status::failure(where + ": has DoRA, or trained biases, which adapters of --lora have not");
  for (const Adapter &adapter : adapters) {
    double rank = findPattern(json, "rank_pattern", moduleOf(adapter), number("r", 8)),
           alpha = findPattern(json, "alpha_pattern", moduleOf(adapter), number("lora_alpha", 8)),
           scale = alpha / (isOn("use_rslora") ? std::sqrt(rank) : rank);
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
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_')
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

} // namespace ortc::host
