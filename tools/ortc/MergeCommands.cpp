// The commands ortc delta and ortc merge.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <charconv>
#include <cmath>

#include "engine/checkpoints/delta.h"
#include "tools/ortc/Commands.h"

namespace ortc::tool {

/// "120,80.5"
static Status parseWeights(const std::string &text, std::vector<double> &weights) {
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    double weight = 0;
    auto [rest, error] = std::from_chars(text.data() + begin, text.data() + end, weight);
    if (error != std::errc() || rest != text.data() + end || !std::isfinite(weight) || weight < 0)
      return Status::refusal(
          "'" + text.substr(begin, end - begin) +
          "' is no weight; give numbers from 0, one for each file, with commas between them");
    weights.push_back(weight);
    begin = end + 1;
  }
  return Status();
}

void addDeltaCommand(Tool &tool) {
  auto options = std::make_shared<engine::DeltaOptions>();
  CommandLine line(tool, "delta");
  line.addPositional("BASE", options->base);
  line.addPositional("NEW", options->trained);
  line.addText("output", options->output);
  line.addFlag("int8", options->int8);
  line.addFlag("quiet", options->quiet);
  line.setAction([options] { return finish(engine::makeDelta(*options)); });
}

void addMergeCommand(Tool &tool) {
  auto options = std::make_shared<engine::MergeOptions>();
  CommandLine line(tool, "merge");
  line.addPositionals("FILE", options->files);
  line.addText("output", options->output);
  line.addValue("weights",
                [options](const std::string &text) { return parseWeights(text, options->weights); });
  line.addText("base", options->base);
  line.addFlag("quiet", options->quiet);
  line.setAction([options] { return finish(engine::mergeFiles(*options)); });
}

} // namespace ortc::tool
