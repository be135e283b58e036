// What else could be trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/report/TrainChoices.h"

#include "support/Plural.h"
#include "support/Printable.h"
#include "support/Text.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace ortc::report {

std::vector<TrainChoice> listTrainChoices(const proto::GraphProto &graph,
                                          const std::vector<std::string> &trained) {
  std::set<std::string> isTrained(trained.begin(), trained.end());
  std::vector<std::vector<std::string>> layers; // a tensor that several nodes read belongs to the first
  std::set<std::string> seen;
  for (const auto &node : graph.node()) {
    std::vector<std::string> tensors;
    for (const std::string &input : node.input())
      if (isTrained.count(input) && seen.insert(input).second)
        tensors.push_back(input);
    if (!tensors.empty())
      layers.push_back(std::move(tensors));
  }
  std::vector<TrainChoice> choices;
  auto add = [&](const std::string &what, std::vector<std::string> tensors) {
    std::sort(tensors.begin(), tensors.end());
    bool isNew = std::none_of(choices.begin(), choices.end(),
                              [&](const TrainChoice &other) { return other.tensors == tensors; });
    if (!tensors.empty() && tensors.size() < trained.size() && isNew)
      choices.push_back({{}, what, std::move(tensors)});
  };
  for (size_t count : {layers.size() / 2, layers.size() / 4, size_t(1)}) {
    std::vector<std::string> tensors;
    for (size_t i = layers.size() - std::min(count, layers.size()); i < layers.size(); ++i)
      tensors.insert(tensors.end(), layers[i].begin(), layers[i].end());
    add("last " + std::to_string(count) + " of " + formatCount(layers.size(), "layer"), std::move(tensors));
  }
  std::vector<std::string> vectors;
  for (const auto &tensor : graph.initializer())
    if (isTrained.count(tensor.name()) && tensor.dims_size() == 1)
      vectors.push_back(tensor.name());
  add("biases and norms", std::move(vectors));
  return choices;
}

std::string describeTrainChoices(const std::vector<TrainChoice> &choices) {
  std::string text =
      "trained                   tensors  persistent   constants   transient         all       saved\n";
  auto sum = [](const TrainChoice &choice) {
    return choice.persistent + choice.constants + choice.transient;
  };
  for (const TrainChoice &choice : choices) {
    double saved = sum(choices.front()) == 0 ? 0 : 1 - double(sum(choice)) / double(sum(choices.front()));
    char line[160];
    std::snprintf(line, sizeof line, "  %-24.24s%7zu%12s%12s%12s%12s%10.1f %%\n",
                  makePrintable(choice.what).c_str(), choice.tensors.size(),
                  formatBytes(choice.persistent).c_str(), formatBytes(choice.constants).c_str(),
                  formatBytes(choice.transient).c_str(), formatBytes(sum(choice)).c_str(), saved * 100);
    text += line;
  }
  return text;
}

} // namespace ortc::report
