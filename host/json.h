// JSON that others wrote, and JSON for others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace ortc::host {

/// What `text` says. Discarded where it is no JSON, or deeper than any file of ours: copies and dumps recurse.
template <typename Json = nlohmann::json> Json parseJson(std::string_view text) {
  constexpr int kDeepest = 64;
  bool isTooDeep = false;
  auto watch = [&](int depth, typename Json::parse_event_t, Json &) {
    isTooDeep |= depth > kDeepest;
    return !isTooDeep;
  };
  Json parsed = Json::parse(text, watch, /*allow_exceptions=*/false);
  return isTooDeep ? Json(Json::value_t::discarded) : parsed;
}

/// A file of JSON. Names of models, flags and files are bytes: what is no UTF-8 becomes U+FFFD.
template <typename Json> std::string formatJson(const Json &value) {
  return value.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

} // namespace ortc::host
