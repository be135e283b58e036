// JSON that others wrote.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <nlohmann/json.hpp>
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

} // namespace ortc::host
