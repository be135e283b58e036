// Where inputs and outputs of an artifact have the batch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/batch_table.h"

#include "support/Json.h"

namespace ortc::engine {

BatchTable BatchTable::parse(const std::string &manifest) {
  using Json = nlohmann::json;
  BatchTable table;
  Json parsed = parseJson<Json>(manifest);
  auto list = [](const Json &from, const char *key) {
    return from.is_object() && from.contains(key) && from[key].is_array() ? from[key] : Json::array();
  };
  auto text = [](const Json &from, const char *key) {
    return from.is_object() && from.contains(key) && from[key].is_string() ? from[key].get<std::string>()
                                                                           : std::string();
  };
  for (const Json &binding : list(parsed, "bindings"))
    for (auto [key, known] : {std::pair("inputs", &table.inputs), {"outputs", &table.outputs}})
      for (const Json &value : list(binding, key))
        if (value.is_object() && value.contains("batch") && value["batch"].is_boolean())
          (*known)[{text(binding, "name"), text(value, "name")}] = value["batch"];
  for (const Json &binding : list(parsed, "bindings"))
    for (const Json &value : list(binding, "outputs"))
      if (value.is_object() && value.contains("batch_axis") && value["batch_axis"].is_number_unsigned())
        table.axes[{text(binding, "name"), text(value, "name")}] = value["batch_axis"];
  return table;
}

size_t BatchTable::findAxis(const std::string &binding, const std::string &name) const {
  auto found = axes.find({binding, name});
  return found == axes.end() ? 0 : found->second;
}

std::optional<bool> BatchTable::find(const std::string &binding, const std::string &name,
                                     bool isInput) const {
  const std::map<Key, bool> &known = isInput ? inputs : outputs;
  auto found = known.find({binding, name});
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

} // namespace ortc::engine
