// Flags whose regular expression matches nothing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/options/CompileOptions.h"
#include "compiler/options/Keys.h"

#include <algorithm>
#include <iterator>

#include "support/EditDistance.h"

namespace ortc {

std::string listClosest(std::string_view pattern, const std::vector<std::string> &names) {
  constexpr size_t kShown = 3, kCompared = 256; // the time is the product of lengths
  std::vector<std::pair<size_t, size_t>> order; // distance, index: names in the order of the file where equal
  for (size_t i = 0; i < names.size(); ++i)
    order.push_back(
        {editDistance(pattern.substr(0, kCompared), std::string_view(names[i]).substr(0, kCompared)), i});
  std::sort(order.begin(), order.end());
  std::string list;
  for (size_t i = 0; i < order.size() && i < kShown; ++i)
    list += (i ? ", '" : "'") + names[order[i].second] + "'";
  return list + (order.size() > kShown ? ", ..." : "");
}

/// What is wrong with a list: names that nothing has. Empty when there are none.
static std::string describeUnknown(const std::string &what, const NamePattern &list,
                                   const KnownNames &known) {
  constexpr size_t kShown = 4;
  std::vector<std::string> all = known.initializers, unknown;
  all.insert(all.end(), known.sources.begin(), known.sources.end());
  std::sort(all.begin(), all.end());
  std::set_difference(list.getNames()->begin(), list.getNames()->end(), all.begin(), all.end(),
                      std::back_inserter(unknown));
  if (unknown.empty())
    return "";
  std::string text =
      what + " has " + std::to_string(unknown.size()) +
      (unknown.size() == 1 ? " name that is no initializer: " : " names that are no initializers: ");
  for (size_t i = 0; i < unknown.size() && i < kShown; ++i)
    text += (i ? ", '" : "'") + unknown[i] + "'";
  return text + (unknown.size() > kShown ? ", ..." : "") +
         "; exporters leave out what no output needs, and rename what they fold";
}

std::vector<std::string> findUnmatchedPatterns(const CompileOptions &options,
                                               const std::vector<NamePattern> &more,
                                               const KnownNames &known) {
  std::vector<std::string> found;
  auto check = [&](const char *flag, const NamePattern &pattern, const char *what,
                   const std::vector<std::string> &names) {
    if (pattern.getNames()) {
      if (std::string text = describeUnknown(std::string(flag) + " " + pattern.getText(), pattern, known);
          !text.empty())
        found.push_back(std::move(text));
      return;
    }
    auto isMatched = [&](const std::string &name) { return pattern.matches(name); };
    if (std::none_of(names.begin(), names.end(), isMatched))
      found.push_back(
          std::string(flag) + " '" + pattern.getText() + "' matches no " + what +
          (names.empty() ? "; there is none" : "; closest: " + listClosest(pattern.getText(), names)));
  };
  for (const NamePattern &pattern : options.train)
    check("--train", pattern, "initializer", known.initializers);
  for (const NamePattern &pattern : options.freeze)
    check("--freeze", pattern, "initializer", known.initializers);
  for (const NamePattern &pattern : options.materialized)
    check("--materialize-gradients", pattern, "trained tensor", known.trained);
  for (const GroupSpec &group : options.groups)
    check("--group", group.pattern, "trained tensor", known.trained);
  for (const SparseSpec &sparse : options.sparse)
    check("--sparse", sparse.pattern, "trained tensor", known.trained);
  for (const RegularizeSpec &regularizer : options.updateSpecs.regularizers)
    check("--regularize", regularizer.pattern, "trained tensor", known.trained);
  for (const NamePattern &pattern : more)
    if (std::string text = describeUnknown(pattern.getText(), pattern, known); !text.empty())
      found.push_back(std::move(text));
  return found;
}

} // namespace ortc
