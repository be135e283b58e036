// What --data names: files, patterns of files, and what is said about them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/data/data_spec.h"

#include <algorithm>
#include <cctype>
#include <glob.h>
#include <string_view>
#include <unistd.h>

namespace ortc::engine {

static bool isThere(const std::string &path) { return access(path.c_str(), F_OK) == 0; }

/// What a key or a column may be called: no path.
static bool isName(const std::string &text) {
  return !text.empty() && text.find_first_of("/*?[") == std::string::npos;
}

/// Takes "?key=value&..." off the end; a "?" that no key follows is one of a pattern.
static Status takeOptions(std::string &text, DataSpec::Options &options) {
  size_t mark = text.rfind('?');
  if (mark == std::string::npos)
    return Status();
  std::string rest = text.substr(mark + 1);
  size_t equals = rest.find('=');
  if (equals == std::string::npos || !isName(rest.substr(0, equals)))
    return Status();
  for (size_t begin = 0; begin <= rest.size();) {
    size_t end = std::min(rest.find('&', begin), rest.size());
    std::string pair = rest.substr(begin, end - begin);
    equals = pair.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == pair.size())
      return Status::refusal(text + ": '" + pair + "' is not key=value");
    std::string key = pair.substr(0, equals);
    for (const auto &[other, value] : options)
      if (other == key)
        return Status::refusal(text + ": '" + key + "' is given twice");
    options.emplace_back(key, pair.substr(equals + 1));
    begin = end + 1;
  }
  text.resize(mark);
  return Status();
}

static Status expand(DataSpec::Part &part) {
  if (isThere(part.text) || part.text.find_first_of("*?[") == std::string::npos) {
    part.files = {part.text};
    return Status();
  }
  glob_t found{};
  int result = glob(part.text.c_str(), GLOB_NOSORT, nullptr, &found);
  if (result == 0)
    part.files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (result != 0 && result != GLOB_NOMATCH)
    return Status::failure(part.text + ": its folders cannot be read");
  std::sort(part.files.begin(), part.files.end());
  return part.files.empty() ? Status::failure(part.text + ": no file has such a name") : Status();
}

Status DataSpec::parse(const std::string &text, DataSpec &spec) {
  spec = DataSpec();
  if (isThere(text)) {
    spec.parts = {{"", text, {text}}};
    return Status();
  }
  std::string rest = text;
  constexpr std::string_view kTokens = "tokens:";
  if (rest.starts_with(kTokens)) {
    spec.isTokens = true;
    rest = rest.substr(kTokens.size());
  }
  if (!isThere(rest))
    ORTC_TRY(takeOptions(rest, spec.options));
  for (size_t begin = 0; begin <= rest.size();) {
    size_t end = isThere(rest.substr(begin)) ? rest.size() : std::min(rest.find(',', begin), rest.size());
    Part part;
    part.text = rest.substr(begin, end - begin);
    size_t equals = part.text.find('=');
    if (equals != std::string::npos && !isThere(part.text) && isName(part.text.substr(0, equals))) {
      part.name = part.text.substr(0, equals);
      part.text = part.text.substr(equals + 1);
    }
    if (part.text.empty())
      return Status::refusal("'" + text + "' names a file that has no name");
    ORTC_TRY(expand(part));
    spec.parts.push_back(std::move(part));
    begin = end + 1;
  }
  return Status();
}

} // namespace ortc::engine
