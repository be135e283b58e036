// The commands ortc eval, predict, gradients.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/metrics/metric_set.h"
#include "engine/training/apply.h"
#include "tools/ortc/Commands.h"
#include "tools/ortc/Vocabularies.h"

namespace ortc::tool {

/// Adds a command of this kind.
static void addApply(Tool &tool, const char *name, Status (*run)(const engine::ApplyOptions &)) {
  auto options = std::make_shared<engine::ApplyOptions>();
  CommandLine line(tool, name);
  line.addPositional("DIR", options->artifact);
  line.addText("data", options->data);
  if (run != engine::evaluateData)
    line.addText("output", options->output);
  line.addText("load", options->load);
  if (run != engine::computeGradients)
    line.addWeights("weights", options->weights);
  line.addText("binding", options->binding);
  line.addWhole("steps", options->steps, 1, INT64_MAX);
  line.addDevice(options->device);
  line.addWhole("threads", options->threads, 1, 256);
  if (run == engine::evaluateData) {
    line.addValue("metric", [options](const std::string &text) {
      options->metrics.push_back(text);
      return engine::MetricSet().add(text);
    });
    line.setVocabulary("metric", describeMetrics());
    line.addFlag("json", options->json);
  }
  line.addFlag("quiet", options->quiet);
  line.setAction([options, run] {
    int refused = checkDevice(options->device, options->threads, false);
    return refused ? refused : finish(run(*options));
  });
}

void addEvalCommand(Tool &tool) { addApply(tool, "eval", engine::evaluateData); }
void addPredictCommand(Tool &tool) { addApply(tool, "predict", engine::predictData); }
void addGradientsCommand(Tool &tool) { addApply(tool, "gradients", engine::computeGradients); }

} // namespace ortc::tool
