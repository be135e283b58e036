// The commands that run an artifact: run, eval, predict, gradients, report.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/flags/Flags.h"

namespace ortc::tool {

static const ArgumentRow kArtifact = {.name = "DIR", .type = FlagType::Folder, .sentence = "the artifact"};

static const FlagRow kData = {
    .name = "data",
    .value = "FILE",
    .type = FlagType::File,
    .isNeeded = true,
    .sentence = "Read the data from this file, or these files",
    .text =
        R"(npz, safetensors, npy, CSV, tar of npy, or MNIST-style IDX (`IMAGES,LABELS`). Several files, or a pattern such as
`'shard-*.npz'`, are shards; `tokens:FILES?seq=N` are files of tokens ([Data](run.md#data)).)"};

static const FlagRow kDevice = {
    .name = "device",
    .value = "NAME",
    .type = FlagType::Choice,
    .words = "cpu cuda hip",
    .sentence = "Run on cpu, cuda or hip; cuda:N is one of several GPUs",
    .text =
        R"(`cpu` (default), `cuda` (an NVIDIA GPU, [GPUs](../gpu.md)), `hip` (an AMD GPU), or `cuda:N` and `hip:N` for one of
several, counted from 0.)"};

static const FlagRow kThreads = {
    .name = "threads",
    .value = "N",
    .type = FlagType::Whole,
    .sentence = "Run on N threads",
    .text =
        R"(Default: what the artifact allows and the machine has. Above 1 it is only for `--device cpu`, as `--profile` is.)"};

static const FlagRow kMetric = {
    .name = "metric",
    .value = "NAME",
    .type = FlagType::Spec,
    .repeats = true,
    .sentence = "Compute this metric in evaluations; repeatable",
    .text =
        R"(`accuracy`, `topk:k=5`, `f1`, `auc`, `iou`, `perplexity`, ...: a metric of the [table](eval.md#metrics).)"};

static FlagRow makeBinding(const char *sentence, const char *text = "") {
  return {.name = "binding", .value = "NAME", .type = FlagType::Text, .sentence = sentence, .text = text};
}

static FlagRow makeOutput(const char *value, const char *sentence, const char *text = "") {
  return {.name = "output",
          .letter = 'o',
          .value = value,
          .type = FlagType::File,
          .isNeeded = true,
          .writes = true,
          .sentence = sentence,
          .text = text};
}

CommandRow describeRun() {
  const FlagGroup data = {
      "Data",
      {
          kData,
          {.name = "epochs",
           .value = "N",
           .type = FlagType::Whole,
           .sentence = "Pass over the data N times; default: 1",
           .text = "Passes of this run: with `--load`, N more."},
          {.name = "steps",
           .value = "N",
           .type = FlagType::Whole,
           .sentence = "Run N steps instead of epochs",
           .text = R"(Steps of this run, at most 2^53; past the end of the data the next epoch begins.)"},
          {.name = "no-shuffle",
           .sentence = "Take the data in the order of the file",
           .text = "Otherwise samples are shuffled, or whole slices ([Data](#data))."},
          {.name = "seed",
           .value = "N",
           .type = FlagType::Whole,
           .sentence = "Seed the shuffling; default: 0",
           .text = "With `--load`, the default is the checkpoint's."},
          {.name = "binding",
           .value = "NAME",
           .type = FlagType::Text,
           .sentence = "Train this binding; default: the first"},
          {.name = "buckets",
           .value = "length=ARRAY",
           .type = FlagType::Assignment,
           .sentence = "Take the smallest binding that holds a step's samples",
           .text =
               R"(For an artifact of several bindings that differ in one dimension, a length. ARRAY of the data has a length
or a mask for each sample; every step takes the smallest binding that holds its longest sample.)"},
          {.name = "rank",
           .value = "R",
           .type = FlagType::Whole,
           .sentence = "Take share R, from 0 on, of --world processes",
           .text = "The processes share the data of one training."},
          {.name = "world",
           .value = "N",
           .type = FlagType::Whole,
           .sentence = "Share the data between N processes; default: 1"},
      }};
  const FlagGroup training = {
      "Training",
      {
          {.name = "lr",
           .value = "X",
           .type = FlagType::Number,
           .sentence = "Set the learning rate",
           .text =
               R"(Default: the artifact's, or the checkpoint's. Without `--lr-schedule` it stays there.)"},
          {.name = "lr-schedule",
           .value = "SPEC",
           .type = FlagType::Spec,
           .sentence = "Change the learning rate over time",
           .text =
               R"(`KIND[:key=value,...]` of the table in [Learning rates](#learning-rates), or `plateau`, which follows
evaluations. Not for an artifact with a schedule of its own (`--schedule` of `ortc train`).)"},
          {.name = "stop-on-nan",
           .sentence = "Fail at a loss or an update that is not finite",
           .text =
               R"(Fails at the first loss that is not finite, before its update, and at the first update that leaves a
parameter or a running statistic so, which it names; that takes one look at all of them a step, and a copy of them from a
GPU.)"},
          kDevice,
          kThreads,
      }};
  const FlagGroup evaluation = {
      "Evaluation",
      {
          {.name = "eval-data",
           .value = "FILE",
           .type = FlagType::File,
           .sentence = "Evaluate on this data after every epoch",
           .text = "Also at the end, as `ortc eval` does."},
          {.name = "eval-weights",
           .value = "ema|swa",
           .type = FlagType::Choice,
           .words = "ema swa",
           .sentence = "Evaluate the averages in place of the parameters",
           .text =
               R"(Averages of `--ema` or `--swa`, where some updates are in them already; it takes memory for a copy of the
parameters, which stay as they are.)"},
          {.name = "eval-every",
           .value = "N",
           .type = FlagType::Whole,
           .sentence = "Evaluate after every N steps, not after epochs"},
          kMetric,
          {.name = "best",
           .value = "METRIC:max|min",
           .type = FlagType::Text,
           .sentence = "Choose the measure of the best evaluation",
           .text =
               R"(`loss`, `accuracy` where it is shown, of several losses also `loss.NAME` and `accuracy.NAME`, or any
`--metric`, which this flag computes, too; default: `loss:min`, or the checkpoint's.)"},
          {.name = "patience",
           .value = "N",
           .type = FlagType::Whole,
           .sentence = "End after N evaluations in a row without a new best"},
          {.name = "save-best",
           .value = "FILE.safetensors",
           .type = FlagType::File,
           .writes = true,
           .sentence = "Save a checkpoint of the best evaluation",
           .text = "Written whenever there is a better one."},
      }};
  const FlagGroup checkpoints = {
      "Checkpoints and reports",
      {
          {.name = "load",
           .value = "FILE.safetensors|DIR",
           .type = FlagType::File,
           .sentence = "Go on from a checkpoint, or from PEFT adapters",
           .text =
               R"(The checkpoint wins over the artifact. An artifact with adapters also takes a folder of PEFT's, with
`adapter_model.safetensors` in it; where it has `adapter_config.json`, ranks and scales must be the artifact's, and only
adapters may be trained (no DoRA, biases, `modules_to_save`). Tensors of no adapter are not loaded; a note says so.)"},
          {.name = "save",
           .value = "FILE.safetensors",
           .type = FlagType::File,
           .writes = true,
           .sentence = "Save a checkpoint at the end, and when interrupted"},
          {.name = "save-every",
           .value = "N",
           .type = FlagType::Whole,
           .sentence = "Save after every N steps, too"},
          {.name = "keep",
           .value = "N",
           .type = FlagType::Whole,
           .sentence = "Keep the last N checkpoints, with the step in their names",
           .text =
               R"(They stay beside FILE, which is the newest: `run.safetensors` of step 200 is `run.step-200.safetensors`,
too. Older ones of such names are removed, except the one of `--load` and those of later steps; other files of the run
with such names are refused.)"},
          {.name = "metrics",
           .value = "FILE.jsonl",
           .type = FlagType::File,
           .writes = true,
           .sentence = "Write one JSON object a step",
           .text = "With `--load`, the file is continued."},
          {.name = "watch",
           .value = "REGEX",
           .type = FlagType::Text,
           .sentence = "Write statistics of these tensors into --metrics",
           .text =
               R"(Tensors whose whole names match (ECMAScript): trained ones, running statistics, state of the optimizer.
`--metrics` gets their smallest, largest and mean value and how many are NaN, and with an artifact of `--gradients` the
same of gradients.)"},
          {.name = "watch-every",
           .value = "N",
           .type = FlagType::Whole,
           .sentence = "Watch every N steps; default: 100",
           .text = "A look takes about as long as copies of these tensors."},
          {.name = "profile",
           .sentence = "Print a table of the kernels by time at the end",
           .text = "Each beside what the machine could do."},
          {.name = "quiet", .sentence = "Print nothing but errors and the table of --profile"},
      }};
  return {
      .name = "run",
      .sentence = "Train an artifact on this machine",
      .arguments = {kArtifact},
      .groups = {data, training, evaluation, checkpoints},
      .example =
          "ortc run model --data train.npz --epochs 10 --eval-data test.npz --save-best best.safetensors"};
}

static const FlagRow kLoad = {.name = "load",
                              .value = "FILE.safetensors",
                              .type = FlagType::File,
                              .sentence = "Take the weights of this checkpoint",
                              .text = "Default: the weights in the artifact."};

static const FlagRow kWeights = {
    .name = "weights",
    .value = "ema|swa",
    .type = FlagType::Choice,
    .words = "ema swa",
    .sentence = "Take the averages in place of the parameters",
    .text =
        R"(Averages of `--ema` or `--swa`; default: the parameters. They are copied one after the other, which takes memory for
one of them; where nothing was averaged yet, they are refused (status 2).)"};

static const FlagRow kSteps = {.name = "steps",
                               .value = "N",
                               .type = FlagType::Whole,
                               .sentence = "Take N slices of the data; default: all"};

/// Rows of `run` in other commands.
static FlagGroup shareRunFlags() { return FlagGroup{"Machine", {kDevice, kThreads}}.share("run"); }

CommandRow describeEval() {
  FlagRow data = kData;
  data.text =
      R"(As for `run`. Samples are never dropped: the last slice is filled by repeating some, with a note. The result leaves
the repeated ones out, but where the model lets samples of a slice depend on each other (a softmax over them, statistics
of a batch) they change the results of the others: take data that fill their slices, or a binding of one sample a step.)";
  FlagRow metric = kMetric;
  metric.sentence = "Compute this metric, too; repeatable";
  return {
      .name = "eval",
      .sentence = "Print the mean loss, and the accuracy of classes",
      .arguments = {kArtifact},
      .groups = {
          {"Data and weights",
           {data, kLoad, kWeights, makeBinding("Evaluate this binding; default: the first"), kSteps}},
          shareRunFlags(),
          {"Result",
           {metric,
            {.name = "json",
             .sentence = "Print the result as one line of JSON",
             .text =
                 R"(`loss` (null when it is not finite), `accuracy`, `right`, `counted` and `not_numbers` (predictions
that are NaN) where the loss has classes, every `--metric` under its name as it was given (null where it is not defined),
and `samples`, or `slices` where inputs have no batch. With several losses, `loss` is the weighted sum of the means, and the
keys from `loss` to `not_numbers` have an ending `.NAME` for each.)"},
            {.name = "quiet", .sentence = "Print nothing but the result and errors"}}}}};
}

CommandRow describePredict() {
  FlagRow data = kData;
  data.text =
      R"(As for `eval`; no label is needed. An output that has the batch along no dimension keeps the repeated samples.)";
  return {
      .name = "predict",
      .sentence = "Write every graph output in eval mode",
      .arguments = {kArtifact},
      .groups = {
          {"Data and weights",
           {data, kLoad, kWeights, makeBinding("Predict with this binding; default: the first"), kSteps}},
          shareRunFlags(),
          {"Result",
           {makeOutput("OUT.npz", "Write the outputs into this file",
                       R"(Arrays named as the outputs, slices concatenated along the dimension that the model
declares as the batch ([Data](run.md#data)), or else along the first.)"),
            quietFlag()}}}};
}

CommandRow describeGradients() {
  FlagRow data = kData, steps = kSteps;
  data.text = "As for `eval`.";
  steps.sentence = "Average over N slices of the data; default: 1";
  steps.text = R"(A last slice that is not full is left out, with a note; data that fill none are refused.)";
  return {.name = "gradients",
          .sentence = "Write the mean loss and gradients under their ONNX names",
          .arguments = {kArtifact},
          .groups = {{"Data and weights",
                      {data, kLoad, makeBinding("Use this binding", "Default: the first that has the entry."),
                       steps}},
                     shareRunFlags(),
                     {"Result",
                      {makeOutput("OUT.safetensors", "Write the loss and gradients into this file",
                                  R"(`loss` and the gradients, in the layouts of the ONNX file.)"),
                       quietFlag()}}}};
}

CommandRow describeReport() {
  return {
      .name = "report",
      .sentence = "Draw the curves of runs on one page",
      .arguments = {{.name = "METRICS",
                     .type = FlagType::File,
                     .sentence = "files that ortc run --metrics has written",
                     .repeats = true}},
      .groups = {
          {"Output",
           {makeOutput(
                "PAGE.html|CHARTS.svg", "Write the page, or only its charts",
                R"(The page has an end of `.html` or `.htm`, or none. The charts are an SVG file, which browsers,
office programs and `rsvg-convert` read; other ends, such as `.png`, are refused.)"),
            {.name = "plan",
             .value = "FILE.json",
             .type = FlagType::File,
             .repeats = true,
             .sentence = "Show this memory plan, too; repeatable",
             .text =
                 R"(The page then has what entries take, with their bounds, and the largest tensors of the training step. FILE is a
`manifest.json`, or written by `--report` of [ortc plan](plan.md).)"},
            quietFlag()}}}};
}

} // namespace ortc::tool
