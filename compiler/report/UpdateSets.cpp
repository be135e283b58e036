// What could be trained where memory is short.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/report/UpdateSets.h"

#include "support/Printable.h"
#include "support/Text.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace ortc::report {

/// Of so many layers every number of last ones is tried; of more, steps grow.
static constexpr size_t kEveryLayer = 16;
/// Of one expression, with room for what is put around it; the limit is 4096.
static constexpr size_t kMostBytes = 3500;

using Names = std::vector<std::string>;

/// The name as an expression of ECMAScript, which matches bytes: any of them where one does not show.
static std::string escape(std::string_view name) {
  std::string text;
  while (!name.empty()) {
    const Character character = readCharacter(name);
    if (!isPrintable(character.code))
      text.append(character.bytes, '.');
    else if (std::string_view("^$\\.*+?()[]{}|").find(name.front()) != std::string_view::npos)
      text += std::string("\\") + name.front();
    else
      text += name.substr(0, character.bytes);
    name.remove_prefix(character.bytes);
  }
  return text;
}

/// Expressions of at most kMostBytes for these names, with `suffix` behind each.
static void addPatterns(const Names &names, const std::string &suffix, Names &patterns) {
  for (size_t i = 0; i < names.size();) {
    std::string pattern = escape(names[i++]);
    bool isOne = true;
    for (; i < names.size() && pattern.size() + names[i].size() < kMostBytes; ++i, isOne = false)
      pattern += "|" + escape(names[i]);
    patterns.push_back(isOne || suffix.empty() ? pattern + suffix : "(?:" + pattern + ")" + suffix);
  }
}

/// Trained tensors by layers, in the order of the graph.
static std::vector<Names> findLayers(const proto::GraphProto &graph, const Names &trained) {
  std::set<std::string> isTrained(trained.begin(), trained.end()), isVector, seen;
  for (const auto &tensor : graph.initializer())
    if (std::count_if(tensor.dims().begin(), tensor.dims().end(), [](int64_t size) { return size != 1; }) <=
        1)
      isVector.insert(tensor.name());
  std::vector<Names> layers;
  for (const auto &node : graph.node()) {
    bool begins = layers.empty();
    Names tensors;
    for (const std::string &input : node.input())
      if (isTrained.count(input) && seen.insert(input).second) {
        tensors.push_back(input);
        begins |= !isVector.count(input);
      }
    if (tensors.empty())
      continue;
    if (begins)
      layers.emplace_back();
    layers.back().insert(layers.back().end(), tensors.begin(), tensors.end());
  }
  return layers;
}

static std::vector<size_t> listCounts(size_t layers) {
  std::vector<size_t> counts;
  for (size_t count = 1; count <= layers; count += layers <= kEveryLayer || count < 4 ? 1 : count / 3)
    counts.push_back(count);
  if (!counts.empty() && counts.back() != layers)
    counts.push_back(layers);
  return counts;
}

std::vector<UpdateSet> listUpdateSets(const proto::GraphProto &graph, const Names &trained,
                                      const std::function<bool(const std::string &)> &hasChannels) {
  std::vector<Names> layers = findLayers(graph, trained);
  auto lastOf = [&](size_t count) {
    Names names;
    for (size_t i = layers.size() - count; i < layers.size(); ++i)
      names.insert(names.end(), layers[i].begin(), layers[i].end());
    return names;
  };
  auto describe = [&](size_t count) {
    return count == layers.size()
               ? "all layers"
               : "last " + std::to_string(count) + " of " + formatCount(int64_t(layers.size()), "layer");
  };
  std::vector<UpdateSet> sets;
  std::vector<size_t> counts = listCounts(layers.size());
  for (auto count = counts.rbegin(); count != counts.rend(); ++count)
    if (*count < layers.size()) {
      UpdateSet &set = sets.emplace_back();
      set.what = describe(*count);
      addPatterns(lastOf(*count), "", set.train);
    }
  Names vectors;
  std::set<std::string> isTrained(trained.begin(), trained.end());
  for (const auto &tensor : graph.initializer())
    if (isTrained.count(tensor.name()) && tensor.dims_size() == 1)
      vectors.push_back(tensor.name());
  if (!vectors.empty() && vectors.size() < trained.size()) {
    UpdateSet &set = sets.emplace_back();
    set.what = "biases and norms";
    addPatterns(vectors, "", set.train);
  }
  for (const auto &[share, text] : {std::pair("0.5", "1/2"), {"0.25", "1/4"}, {"0.125", "1/8"}})
    for (auto count = counts.rbegin(); count != counts.rend(); ++count) {
      Names parts, whole;
      for (const std::string &name : lastOf(*count))
        (hasChannels(name) ? parts : whole).push_back(name);
      if (parts.empty())
        continue;
      UpdateSet &set = sets.emplace_back();
      set.what = describe(*count) + ", " + text + " of the channels";
      addPatterns(whole, "", set.train);
      addPatterns(parts, std::string(":channels=") + share, set.train);
    }
  return sets;
}

const UpdateSet *findBest(const std::vector<UpdateSet> &sets, uint64_t budget) {
  const UpdateSet *best = nullptr;
  for (const UpdateSet &set : sets)
    if (set.getBytes() <= budget && (!best || set.values > best->values ||
                                     (set.values == best->values && set.getBytes() < best->getBytes())))
      best = &set;
  return best;
}

static std::string quoteForShell(const std::string &text) {
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string describeUpdateSets(const std::vector<UpdateSet> &sets, uint64_t budget, const std::string &unit) {
  const UpdateSet *best = findBest(sets, budget);
  char line[200];
  std::snprintf(line, sizeof line, "%-10s%-39s%9s%12s%12s%12s%12s%13s\n", "", "", "values", "persistent",
                "transient", "both", "constants", "MFLOP/step");
  std::string text =
      "fit " + formatBytesIn(budget, unit) +
      ": what could be trained, and what a session takes with it (constants can stay in flash)\n" + line;
  for (const UpdateSet &set : sets) {
    std::snprintf(line, sizeof line, "%-4s %3zu  %-39.39s%9lld%12s%12s%12s%12s%13.3f\n",
                  &set == best               ? "best"
                  : set.getBytes() <= budget ? "fits"
                                             : "",
                  size_t(&set - sets.data()), makePrintable(set.what).c_str(),
                  static_cast<long long>(set.values), formatBytes(set.persistent).c_str(),
                  formatBytes(set.transient).c_str(), formatBytes(set.getBytes()).c_str(),
                  formatBytes(set.constants).c_str(), double(set.flops) * 1e-6);
    text += line;
  }
  text += "flags, in the place of all --train\n";
  for (const UpdateSet &set : sets) {
    std::snprintf(line, sizeof line, "%8zu ", size_t(&set - sets.data()));
    text += line;
    if (set.train.empty())
      text += " as given";
    for (const std::string &pattern : set.train)
      text += " --train " + quoteForShell(pattern);
    text += "\n";
  }
  return text;
}

nlohmann::ordered_json makeFitReport(const std::vector<UpdateSet> &sets, uint64_t budget) {
  const UpdateSet *best = findBest(sets, budget);
  nlohmann::ordered_json report = {{"budget", budget}, {"best", nullptr}};
  if (best)
    report["best"] = best - sets.data();
  for (const UpdateSet &set : sets)
    report["sets"].push_back({{"what", set.what},
                              {"train", set.train},
                              {"tensors", set.tensors},
                              {"values", set.values},
                              {"persistent", set.persistent},
                              {"transient", set.transient},
                              {"constants", set.constants},
                              {"flops", set.flops},
                              {"fits", set.getBytes() <= budget}});
  return report;
}

} // namespace ortc::report
