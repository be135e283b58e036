// The commands ortc delta and ortc merge.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <charconv>
#include <cmath>

#include "host/delta.h"
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

void addDeltaCommand(CLI::App &app, Action &action) {
  auto options = std::make_shared<host::DeltaOptions>();
  CommandLine line(app, "delta", "what a training has changed, for ortc merge --base");
  line.addPositional("BASE", "what it began with: a checkpoint, or an artifact", options->base);
  line.addPositional("NEW", "the checkpoint that it has saved", options->trained);
  line.addText("-o,--output", "OUT.safetensors", "where the delta goes", options->output, true);
  line.addFlag("--int8", "rounded to integers: about a quarter of the bytes", options->int8);
  line.addFlag("--quiet", "no output but errors", options->quiet);
  line.setAction(action, [options] { return finish(host::makeDelta(*options)); });
}

void addMergeCommand(CLI::App &app, Action &action) {
  auto options = std::make_shared<host::MergeOptions>();
  CommandLine line(app, "merge", "the weighted mean of checkpoints, or of deltas on their base");
  line.addPositionals("FILE", "two checkpoints or more; with --base, deltas", options->files);
  line.addText("-o,--output", "OUT.safetensors", "where the checkpoint goes", options->output, true);
  line.addValue("--weights", "W1,W2,...", "a number for each file, such as its samples; default: all alike",
                [options](const std::string &text) { return parseWeights(text, options->weights); });
  line.addText("--base", "BASE", "what the deltas are of: a checkpoint, or an artifact", options->base);
  line.addFlag("--quiet", "no output but errors", options->quiet);
  line.setExample("ortc merge a.safetensors b.safetensors --weights 120,80 -o mean.safetensors");
  line.setAction(action, [options] { return finish(host::mergeFiles(*options)); });
}

} // namespace ortc::tool
