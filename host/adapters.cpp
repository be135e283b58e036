// Low-rank adapters of an artifact, and the files in which the PEFT library keeps them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/adapters.h"

#include <cmath>

#include "host/json.h"
#include "host/text.h"

namespace ortc::host {

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
    adapter.rank = int64_t(rank);
    adapters.push_back(adapter);
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

/// What a table of patterns has for a module; PEFT matches a key with the end of a module's name.
static double findPattern(const nlohmann::json &json, const char *key, const std::string &module,
                          double otherwise) {
  if (!json.contains(key) || !json[key].is_object())
    return otherwise;
  for (const auto &[pattern, value] : json[key].items())
    if (value.is_number() && (module == pattern || module.ends_with("." + pattern)))
      return value.get<double>();
  return otherwise;
}

Status checkPeftConfig(const std::string &text, const std::string &where,
                       const std::vector<Adapter> &adapters) {
  nlohmann::json json = parseJson(text);
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

Status makePeftConfig(const std::vector<Adapter> &adapters, std::string &config) {
  const Adapter &first = adapters.front();
  nlohmann::ordered_json modules = nlohmann::ordered_json::array(), ranks = nlohmann::ordered_json::object(),
                         alphas = nlohmann::ordered_json::object();
  for (const Adapter &adapter : adapters) {
    if (adapter.dropout != first.dropout || adapter.isRankStabilized != first.isRankStabilized)
      return Status::refusal("the adapters of '" + first.weight + "' and '" + adapter.weight +
                             "' differ in dropout or rs, for which PEFT's configuration has one value");
    modules.push_back(moduleOf(adapter));
    if (adapter.rank != first.rank)
      ranks[moduleOf(adapter)] = adapter.rank;
    if (adapter.alpha != first.alpha)
      alphas[moduleOf(adapter)] = adapter.alpha;
  }
  // PEFT declares alpha as a whole number.
  auto alphaOf = [](double alpha) {
    return alpha == double(int64_t(alpha)) ? nlohmann::ordered_json(int64_t(alpha))
                                           : nlohmann::ordered_json(alpha);
  };
  for (auto &alpha : alphas)
    alpha = alphaOf(alpha);
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
