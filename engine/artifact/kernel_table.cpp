// What the manifest says about the kernels of an artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/kernel_table.h"

#include "support/Json.h"
#include "support/Lists.h"

namespace ortc::engine {

using Json = nlohmann::json;

template <typename Value> static Value getValue(const Json &item, const char *key, Value otherwise) {
  auto found = item.find(key);
  if (found == item.end())
    return otherwise;
  if constexpr (std::is_same_v<Value, std::string>)
    return found->is_string() ? found->get<Value>() : otherwise;
  else if constexpr (std::is_same_v<Value, bool>)
    return found->is_boolean() ? found->get<Value>() : otherwise;
  else
    return found->is_number() ? found->get<Value>() : otherwise;
}

static std::string describePlace(const Json &item) {
  std::string place;
  for (auto [key, words] :
       {std::pair("nodes", ""), {"gradients", "gradient of "}, {"updates", "update of "}}) {
    std::vector<std::string> names;
    if (item.contains(key) && item[key].is_array())
      for (const Json &name : item[key])
        if (name.is_string())
          names.push_back(name);
    if (!names.empty())
      place += (place.empty() ? "" : "; ") + (words + joinSome(names, 2));
  }
  return place;
}

KernelTable parseKernelTable(const std::string &manifest) {
  KernelTable table;
  Json parsed = parseJson<Json>(manifest);
  if (!parsed.is_object() || !parsed.contains("kernels") || !parsed["kernels"].is_array())
    return table;
  for (const Json &item : parsed["kernels"]) {
    KernelFacts facts;
    if (item.is_object()) {
      facts.name = getValue(item, "name", std::string());
      facts.work = getValue(item, "work", std::string());
      facts.shape = getValue(item, "shape", std::string());
      facts.place = describePlace(item);
      facts.flops = getValue(item, "flops", 0.0);
      facts.bytes = getValue(item, "bytes", 0.0);
      facts.isParallel = getValue(item, "parallel", false);
    }
    table.kernels.push_back(facts);
  }
  table.isDouble = parsed.contains("flags") && parsed["flags"].is_object() &&
                   getValue(parsed["flags"], "precision", std::string()) == "f64";
  return table;
}

} // namespace ortc::engine
