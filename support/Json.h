// JSON that others wrote, and JSON for others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace ortc {

/// What `text` says. Discarded where it is no JSON, or has more objects and arrays in each other than `deepest`, which
/// no file of ours has: copies and dumps recurse. `twice` gets a key that an object has twice, of which one is kept.
template <typename Json = nlohmann::json>
Json parseJson(std::string_view text, size_t deepest = 64, std::string *twice = nullptr);

/// A file of JSON. Names of models, flags and files are bytes: what is no UTF-8 becomes U+FFFD, and what
/// does not show is escaped.
template <typename Json> std::string formatJson(const Json &value);

// Both kinds are compiled once: the parser of a header takes seconds in every source.
extern template nlohmann::json parseJson<nlohmann::json>(std::string_view, size_t, std::string *);
extern template nlohmann::ordered_json parseJson<nlohmann::ordered_json>(std::string_view, size_t,
                                                                         std::string *);
extern template std::string formatJson(const nlohmann::json &);
extern template std::string formatJson(const nlohmann::ordered_json &);

} // namespace ortc
