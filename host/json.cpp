// JSON that others wrote, and JSON for others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/json.h"

namespace ortc::host {

template <typename Json> Json parseJson(std::string_view text) {
  constexpr int kDeepest = 64;
  bool isTooDeep = false;
  auto watch = [&](int depth, typename Json::parse_event_t, Json &) {
    isTooDeep |= depth > kDeepest;
    return !isTooDeep;
  };
  Json parsed = Json::parse(text, watch, /*allow_exceptions=*/false);
  return isTooDeep ? Json(Json::value_t::discarded) : parsed;
}

template <typename Json> std::string formatJson(const Json &value) {
  return value.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

template nlohmann::json parseJson<nlohmann::json>(std::string_view);
template nlohmann::ordered_json parseJson<nlohmann::ordered_json>(std::string_view);
template std::string formatJson(const nlohmann::json &);
template std::string formatJson(const nlohmann::ordered_json &);

} // namespace ortc::host
