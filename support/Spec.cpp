// Flags of the form NAME[:key=value,...].
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "support/EditDistance.h"
#include "support/Text.h"

namespace ortc {

Status parseSpec(const std::string &text, const std::string &what, Spec &spec) {
  size_t colon = text.find(':');
  spec = Spec{text.substr(0, colon), {}};
  while (colon != std::string::npos) {
    size_t begin = colon + 1;
    colon = text.find(',', begin);
    std::string item = text.substr(begin, colon == std::string::npos ? colon : colon - begin);
    size_t equals = item.find('=');
    if (equals == 0 || equals == std::string::npos)
      return Status::refusal(what + ": '" + item + "' is no key=value");
    if (!spec.values.emplace(item.substr(0, equals), item.substr(equals + 1)).second)
      return Status::refusal(what + ": " + item.substr(0, equals) + " is given twice");
  }
  return Status();
}

Status checkKeys(const Spec &spec, const std::string &what, const std::vector<std::string> &keys) {
  for (const auto &[key, value] : spec.values)
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      return Status::refusal(what + ": it has no option '" + key + "'; it takes " +
                             (keys.empty() ? "none" : joinWords(keys) + suggestWord(key, keys)));
  return Status();
}

template <typename Number> static bool readAll(const std::string &text, Number &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Status readNumber(const Spec &spec, const std::string &what, const std::string &key, double least,
                  double most, double &value) {
  auto found = spec.values.find(key);
  if (found == spec.values.end() ||
      (readAll(found->second, value) && std::isfinite(value) && value >= least && value <= most))
    return Status();
  return Status::refusal(what + ": " + key + " is '" + found->second + "', but it must be a number from " +
                         formatNumber(least) + " to " + formatNumber(most));
}

Status readWhole(const Spec &spec, const std::string &what, const std::string &key, int64_t least,
                 int64_t most, int64_t &value) {
  auto found = spec.values.find(key);
  if (found == spec.values.end() || (readAll(found->second, value) && value >= least && value <= most))
    return Status();
  return Status::refusal(what + ": " + key + " is '" + found->second +
                         "', but it must be a whole number from " + std::to_string(least) + " to " +
                         std::to_string(most));
}

std::string describeNames(const std::string &name, const std::vector<std::string> &names) {
  return "there are " + joinWords(names) + suggestWord(name, names);
}

} // namespace ortc
