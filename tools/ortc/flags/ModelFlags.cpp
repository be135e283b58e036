// Flags that say what is compiled and what of it is trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/flags/Flags.h"

namespace ortc::tool {

const FlagGroup &modelFlags() {
  static const FlagGroup group = {
      "Model and loss",
      {
          {.name = "shape",
           .value = "NAME=N",
           .type = FlagType::Text,
           .repeats = true,
           .sentence = "Bind symbolic dimensions, or a whole input",
           .text =
               R"(Separate several dimensions by commas. One error lists all dimensions that are not bound.)",
           .syntax = "NAME=N[,NAME=N]|INPUT=AxBxC"},
          {.name = "binding",
           .value = "NAME",
           .type = FlagType::Text,
           .repeats = true,
           .sentence = "Begin another binding, of the --shape flags after it",
           .text = R"(All bindings share their parameters: train at batch 32, predict at batch 1.)"},
          {.name = "loss",
           .value = "SPEC",
           .type = FlagType::Losses,
           .repeats = true,
           .sentence = "Choose the loss; several losses are added",
           .text =
               R"(SPEC is `LOSS[:key=value,...]` of a loss in the [table](#losses), `onnx:FILE[:key=value,...]`
([an ONNX function](#onnx-functions)), `output:NAME` (the graph computes its loss), or `none`; default: `cross_entropy`.
PyTorch's definitions, means over elements, samples or labels that are not ignored. Labels of `cross_entropy` are class
indices; with `probabilities=1` they are one-hot or probabilities, floating-point and of the logits' shape. A graph that
has an input `label` of that type and shape needs no flag. `label_smoothing` and `axis` go with both. Repeatable: the
weighted sum of several losses is trained.)",
           .syntax = "[NAME=]SPEC[@OUTPUT][:weight=W]"},
          {.name = "loss-input",
           .value = "NAME",
           .type = FlagType::Text,
           .sentence = "Choose the value that feeds the loss",
           .text =
               R"(Default: the only output, or the first floating-point one. Any other value of the graph will do, such as
the logits of a model that ends with a softmax, which gets a warning that names them. Other outputs that cannot be
compiled are left out, with a note.)"},
      }};
  return group;
}

const FlagGroup &trainedFlags() {
  static const FlagGroup group = {
      "Trained tensors",
      {
          {.name = "train",
           .value = "REGEX|@FILE",
           .type = FlagType::Pattern,
           .repeats = true,
           .sentence = "Train these float initializers; default: all weights",
           .text =
               R"(The expression (ECMAScript) must match whole names; a file has one name a line. Repeatable. `channels`,
above 0 and at most 1, is the share of the output channels that is trained, the first ones, rounded up. Default: the
tensors that the model's metadata names, else all that a gradient can reach, except running statistics, constants that
exporters lift, constants of formulas, and tensors that the exporter calls buffers ([exporters](../exporters.md)).)",
           .syntax = "REGEX:channels=1|@FILE"},
          {.name = "freeze",
           .value = "REGEX|@FILE",
           .type = FlagType::Pattern,
           .repeats = true,
           .sentence = "Do not train these float initializers",
           .text = "Wins over `--train`. Repeatable."},
          {.name = "materialize-gradients",
           .isRare = true,
           .value = "REGEX|@FILE",
           .type = FlagType::Pattern,
           .repeats = true,
           .sentence = "Give unreached tensors of --train a gradient of zeros",
           .text =
               R"(For tensors that no gradient reaches (after Sign, Round, a slice of nothing): weight decay and momentum go
on, as in PyTorch, where such gradients are zeros and not None. Without the flag they become constants. Repeatable.)"},
          {.name = "untie",
           .value = "NAME",
           .type = FlagType::Text,
           .repeats = true,
           .sentence = "Give each user of this initializer its own copy",
           .text =
               R"(Exporters merge equal tensors, and fresh norms are equal. The first node keeps NAME, other copies are
NODE.NAME. The flag also keeps copies apart that are tied because they are equal, by the name of the copy or of its
original. Repeatable.)"},
          {.name = "tie",
           .value = "COPY=ORIGINAL",
           .type = FlagType::Text,
           .repeats = true,
           .sentence = "Train COPY and ORIGINAL as one initializer again",
           .text =
               R"(COPY must equal ORIGINAL, or a transpose or reshape of it: exporters that fold write a tied embedding
twice. Repeatable.)"},
          {.name = "lora",
           .value = "REGEX[:KEY=VALUE,...]",
           .type = FlagType::Pattern,
           .repeats = true,
           .sentence = "Train low-rank adapters beside these weights",
           .text = R"(Nothing else is trained except tensors that `--train` names. A layer of weight W gives
`W x + alpha / rank * B (A x)`, with `rs=1` divided by the root of the rank, as in the PEFT library. Weights whose whole
names match get adapters: of MatMul and Gemm (weight on the right), Gather (an embedding; no dropout, with a note) and
Conv of one group. A begins with random numbers, B with zeros (of an embedding, the other way round): the first step
computes what the model does. Checkpoints hold only `NAME.lora_A.weight` and `NAME.lora_B.weight`
(`NAME.lora_embedding_A`, `_B`); the base is constant. Repeatable, the first match wins.)",
           .syntax = "REGEX:rank=8,alpha=16,dropout=0,rs=0"},
          {.name = "base",
           .value = "int8|int4[:block=64]",
           .type = FlagType::Choice,
           .words = "int8 int4",
           .sentence = "Store the weights beside adapters as small integers",
           .text =
               R"(Needs `--lora`. Integers of 8 or 4 bits share a float32 scale in each block of a row, and products unpack
a part of them at a time. A row is the numbers that one output of a layer sums over, or a vector of an embedding; `block`
is a power of two from 32 to 4096. `scale = max abs(w) / 127` of a block (`/ 7` of `int4`),
`w = round(w / scale) * scale`, halves to even. Constants take 0.27 (`int8`) or 0.14 (`int4`) of float32, where rows are
whole blocks. Rounding moves the results; adapters are trained beside the rounded weights, and `ortc export` merges them
into those. For MatMul, Gemm and Gather with rows of at least a block and 64 numbers, not for filters of convolutions
([decision 0031](../decisions/0031-quantised-base.md)).)",
           .syntax = "int8|int4:block=64"},
          {.name = "qat",
           .value = "REGEX[:KEY=VALUE,...]",
           .type = FlagType::Pattern,
           .repeats = true,
           .sentence = "Train the layers of these weights to compute with integers",
           .text =
               R"(Weights whose whole names match are rounded to integers of `bits` bits (2 to 8) around zero, and the other
operands of their layers to integers from zero on, with a zero point. Layers are MatMul, Gemm, Conv and ConvTranspose of
the main graph, also through Transpose and Identity; other readers get a weight as it is. Names that match and are no such
weights get a note. `per`: a range for each output channel of a weight, or one for a `tensor`. Ranges are those of
`torch.ao.quantization`: moving averages in which a step has the weight `averaging`, or with `observer=minmax` all values
seen; they are the states `NAME.min` and `NAME.max`, move only in training, by values that are all finite, and stay after
`observe` steps (0: never). Gradients pass where nothing is cut off. `learned=1`: after the steps that observe (0: after
the first) scales are trained with LSQ's gradient, as `NAME.scale_offset`, which is added to the scale of the range; they
do well with a smaller rate (`--group '.*scale_offset:lr_scale=0.1'`). Before the first step nothing is rounded. Per
channel needs opset 13, per tensor 10, below 8 bits 11. Not with `--lora`. Repeatable, the first match wins
([decision 0032](../decisions/0032-quantisation-aware-training.md)).)",
           .syntax = "REGEX:bits=8,per=channel,observer=moving_average,averaging=0.01,observe=0,learned=0"},
      }};
  return group;
}

const FlagGroup &trainModeFlags() {
  static const FlagGroup group = {
      "Training mode",
      {
          {.name = "batch-norm",
           .value = "MODE",
           .type = FlagType::Choice,
           .words = "as-exported train frozen",
           .sentence = "Set batch norms to as-exported, train or frozen",
           .text =
               R"(Default: `as-exported`. `unbiased=1`: running variances are those of samples, as PyTorch computes them (a
factor n / (n - 1)), not those of the batch, as ONNX defines them.)",
           .syntax = "MODE:unbiased=0"},
          {.name = "dropout",
           .value = "MODE",
           .type = FlagType::Choice,
           .words = "as-exported train off",
           .sentence = "Set dropout to as-exported, train or off",
           .text =
               R"(`as-exported` (default): Dropout nodes with a constant `training_mode` of true drop in training steps;
`train`: all Dropout nodes do, also those exported for inference, with their ratio; `off`: none. Exporters in evaluation
mode often leave the nodes out; a note says so. Evaluation and prediction never drop. Masks that the graph draws itself
count as dropout where they compute it ([exporters](../exporters.md#batch-normalisation-and-dropout)): they drop in
training steps unless the mode is `off`. `masks=0` lets them be drawn, in evaluation, prediction and exported models,
too.)",
           .syntax = "MODE:masks=1"},
          {.name = "attention",
           .value = "MODE",
           .type = FlagType::Choice,
           .words = "auto whole tiled",
           .sentence = "Compute attention whole or in tiles; default: auto",
           .text =
               R"(`auto`: attention of 512 x 512 scores a head and more is computed a head and some queries at a time, and
again for its gradient, so that no table of all scores exists. Keys that the only mask hides are left out where it is
known when compiling: one that is computed from positions, or a constant of at most 4 KiB. `tiled[:rows=N]`: all
attention, N queries a tile (0: by their size, 2 MiB of scores, in at most 32 tiles a head; an N that makes more than 256
is refused). GPUs compute many heads at a time ([decision 0058](../decisions/0058-decisions-of-families.md)); with
`--numerics fast`, their kernels that store no scores compute heads of up to 64 elements (128 in bf16 and f16), also below
512 x 512 ([decision 0064](../decisions/0064-attention-kernels.md)). `whole`: no tiles. Dropout between draws other
numbers in tiles ([decision 0028](../decisions/0028-attention.md)).)",
           .syntax = "auto|whole|tiled:rows=0"},
          {.name = "head-chunk",
           .value = "N",
           .type = FlagType::Whole,
           .sentence = "Compute at most N rows of logits at a time; 0: all",
           .text =
               R"(Where the loss reads a product with a matrix directly, a loop computes logits, their part of the loss and
its gradients. Rows with a label that is ignored come last, and chunks of only such rows are left out, so that a smaller N
is worth its while where many labels are ignored. Chunks are equal: of a number of rows that N does not divide, the
largest divisor below it. Logits stay whole where the class axis is moved between the product and the loss. Default:
chunks of 64 MiB, where all logits are 1.5 times as large as that and the matrix together
([decision 0029](../decisions/0029-head.md)).)"},
          {.name = "seed",
           .value = "N",
           .type = FlagType::Whole,
           .sentence = "Seed dropout and other random operators; default: 0",
           .text =
               R"(For operators without a `seed` of their own. Their numbers follow from the seed, the names of their
results, the number of the training step (the state `random.step`) and the scalar `random.seed`, a whole number that a
host may set between steps (0 at first), such as a rank, and from nothing else. Dropout within
attention that is cut into tiles, or that a GPU computes in one kernel, is drawn tile by tile: there a GPU draws other
masks than a CPU.)"},
      }};
  return group;
}

} // namespace ortc::tool
