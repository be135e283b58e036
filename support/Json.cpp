// JSON that others wrote, and JSON for others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Json.h"

#include <set>
#include <vector>

#include "support/Text.h"

namespace ortc {
namespace {

/// Reads a text without keeping it. The library's parser has a hook that sees as much, but makes it look through all
/// members of an object before the one that it has read: 40,000 took 43 s.
class Watcher final : public nlohmann::json_sax<nlohmann::json> {
public:
  Watcher(size_t deepest, std::string *twice) : deepest(deepest), twice(twice) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool start_object(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool key(string_t &name) override {
    if (twice && !keys.back().insert(name).second)
      *twice = name;
    return true;
  }
  bool parse_error(size_t, const std::string &, const nlohmann::detail::exception &) override {
    return false;
  }

private:
  bool open() {
    keys.emplace_back();
    return keys.size() <= deepest;
  }
  bool close() {
    keys.pop_back();
    return true;
  }

  size_t deepest;
  std::string *twice;
  std::vector<std::set<std::string>> keys; ///< of what is open
};

} // namespace

template <typename Json> Json parseJson(std::string_view text, size_t deepest, std::string *twice) {
  Watcher watcher(deepest, twice);
  return nlohmann::json::sax_parse(text, &watcher) ? Json::parse(text) : Json(Json::value_t::discarded);
}

template <typename Json> std::string formatJson(const Json &value) {
  return escapeJson(value.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace)) + "\n";
}

template nlohmann::json parseJson<nlohmann::json>(std::string_view, size_t, std::string *);
template nlohmann::ordered_json parseJson<nlohmann::ordered_json>(std::string_view, size_t, std::string *);
template std::string formatJson(const nlohmann::json &);
template std::string formatJson(const nlohmann::ordered_json &);

} // namespace ortc
