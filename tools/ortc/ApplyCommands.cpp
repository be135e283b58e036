// The commands ortc eval, predict, gradients.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/commands.h"
#include "host/metrics/metric_set.h"
#include "tools/ortc/Commands.h"

namespace ortc::tool {

/// Adds a command of this kind; `output` is the type of its -o, or nullptr.
static void addApply(CLI::App &app, Action &action, const char *name, const char *summary, const char *output,
                     Status (*run)(const host::ApplyOptions &)) {
  auto options = std::make_shared<host::ApplyOptions>();
  CommandLine line(app, name, summary);
  line.addPositional("DIR", "the artifact", options->artifact);
  line.addText("--data", "FILE", kDataHelp, options->data, true);
  if (output)
    line.addText("-o,--output", output, "where the result goes", options->output, true);
  line.addText("--load", "FILE.safetensors", "a checkpoint; default: the weights in the artifact",
               options->load);
  if (run != host::computeGradients)
    line.addWeights("--weights", options->weights);
  line.addText("--binding", "NAME", "default: the first that has the entry", options->binding);
  line.addWhole("--steps",
                std::string("slices to take; default: ") + (run == host::computeGradients ? "1" : "all"),
                options->steps, 1, INT64_MAX);
  line.addDevice(options->device);
  line.addWhole("--threads", "default: what the artifact allows and the machine has", options->threads, 1,
                256);
  if (run == host::evaluateData) {
    line.addValue(
        "--metric", "NAME", "also computes accuracy, topk:k=5, f1, auc, iou, perplexity, ...; repeatable",
        [options](const std::string &text) {
          options->metrics.push_back(text);
          return host::MetricSet().add(text);
        },
        true);
    line.addFlag("--json", "the result as one JSON object", options->json);
  }
  line.addFlag("--quiet", "no output but results and errors", options->quiet);
  line.setAction(action, [options, run] {
    int refused = checkDevice(options->device, options->threads, false);
    return refused ? refused : finish(run(*options));
  });
}

void addEvalCommand(CLI::App &app, Action &action) {
  addApply(app, action, "eval", "mean loss, and accuracy where the loss has classes", nullptr,
           host::evaluateData);
}

void addPredictCommand(CLI::App &app, Action &action) {
  addApply(app, action, "predict", "every graph output in eval mode", "OUT.npz", host::predictData);
}

void addGradientsCommand(CLI::App &app, Action &action) {
  addApply(app, action, "gradients", "mean loss and gradients of some slices", "OUT.safetensors",
           host::computeGradients);
}

} // namespace ortc::tool
