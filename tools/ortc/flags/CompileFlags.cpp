// The commands that compile: train, plan, check, update, ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/flags/Flags.h"

#include <algorithm>

namespace ortc::tool {

const FlagGroup &targetFlags() {
  static const FlagGroup group = {
      "Target and memory",
      {
          {.name = "target",
           .value = "NAME",
           .type = FlagType::Choice,
           .repeats = true,
           .words =
               "host all native x86-64 x86-64-v3 x86-64-v4 aarch64 armv7 riscv64 riscv64-v wasm32 cortex-m4 "
               "cortex-m7 cortex-m33 cortex-m55 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 sm_120 gfx90a gfx942 "
               "gfx1100",
           .sentence = "Make code for host, native, all, or a target by name",
           .text =
               R"(`host` (default): every level of x86-64, so that the code runs on any such machine. `all`: those, `aarch64`, `armv7`,
`riscv64`, `riscv64-v` and `wasm32` ([devices](../devices.md)). `native`: only this machine, with its matrix unit (AMX) for
large products, and its products of pairs of bf16 (AVX512-BF16, on AMD's processors, where they are faster than f32); this
compiles faster. By name: a level; a microcontroller (`cortex-m4`, `cortex-m7`, `cortex-m33`, `cortex-m55`); or a GPU
([GPUs](../gpu.md)), NVIDIA's `sm_80`, `sm_86`, `sm_89`, `sm_90`, `sm_90a`, `sm_100`, `sm_120`, AMD's `gfx90a`, `gfx942`,
`gfx1100`. Repeatable, also mixed.)"},
          {.name = "opt",
           .value = "speed|size",
           .type = FlagType::Choice,
           .words = "speed size",
           .sentence = "Make fast code, or small code",
           .text =
               R"(Both give the same bits ([decision 0039](../decisions/0039-small-code.md)). Default: `speed`, and `size` for
microcontrollers.)"},
          {.name = "numerics",
           .value = "fast|portable",
           .type = FlagType::Choice,
           .words = "fast portable",
           .sentence = "Compute fast, or the same bits on every target",
           .text =
               R"(Default: `fast`. `portable` gives the same bits on every target, except on GPUs for convolutions and which
NaN a NaN is. With `fast` denormal numbers are zero where the processor can do that, with `portable` they are numbers, and
only optimizer state and exponentials below the smallest normal number are zero
([decision 0035](../decisions/0035-portable-denormals.md)).)"},
          {.name = "precision",
           .value = "TYPE",
           .type = FlagType::Choice,
           .words = "f32 bf16 f16 tf32 f64",
           .sentence = "Compute products in f32, bf16, f16 or tf32, or everything in f64",
           .text =
               R"(`f32` (default): the types of the file. `bf16`, `f16`: matrix products and convolutions, forward and
backward, read and give bfloat16 or float16 numbers; sums, norms, softmax, losses, parameters and optimizer state are
float32, and so are checkpoints ([decision 0027](../decisions/0027-bfloat16.md)). A model whose products are all float64
has none to round, and is refused. `tf32`, only for NVIDIA's GPUs: large float32 products multiply numbers that are
rounded to 10 bits after the first one; everything in memory stays float32 ([decision 0061](../decisions/0061-tf32.md)).
Other targets, and `--numerics portable`, are refused with it. `f64`: weights, activations, loss and optimizer state are
all float64, for checking. Data of any float type are taken, outputs and checkpoints are float64, and `ortc export`
converts back.)"},
          {.name = "parameters",
           .value = "TYPE",
           .type = FlagType::Choice,
           .words = "f32 bf16 bf16:stochastic bf16:nearest",
           .sentence = "Store trained parameters in f32 or bf16[:stochastic]",
           .text =
               R"(`f32` (default). `bf16:stochastic`: trained parameters are stored only in bfloat16, half the bytes;
optimizers compute in float32, with float32 state, and round new values up or down by chance, the nearer number being
likelier, so that small steps add up. `bf16` or `bf16:nearest`: to the nearest; most steps of a small learning rate are
lost. `--seed` is also that of this rounding. Checkpoints hold BF16 and fit only artifacts of this type. Not with
`--precision f64`, nor for a file's float64 parameters ([decision 0033](../decisions/0033-parameters-in-bfloat16.md)).)"},
          {.name = "max-workers",
           .value = "N",
           .type = FlagType::Whole,
           .sentence = "Limit the threads of a session; default: 2"},
          {.name = "memory-budget",
           .value = "BYTES",
           .type = FlagType::Bytes,
           .sentence = "Limit the transient memory; recompute values to fit",
           .text =
               R"(The transient region of every entry, scratch of all workers included, takes at most so many bytes (`512MiB`,
`300KiB`, `65536`; a refusal answers in the same unit): values that are cheaper to compute again are not kept. Gradients
are bit for bit the same. A budget that cannot be kept is refused, with the smallest budget that was found to be enough: a
byte less is refused, though some smaller budget may be met by luck. Plans are multiples of 64 bytes.)"},
      }};
  return group;
}

static const FlagRow kKernelCache = {
    .name = "kernel-cache",
    .value = "DIR",
    .type = FlagType::Folder,
    .sentence = "Keep compiled kernels in DIR, and reuse them",
    .text =
        R"(A later compilation takes the code that LLVM has made of a kernel from this folder: the same bytes sooner. Default:
the folder that `ORTC_KERNEL_CACHE` of the environment names, or none. The folder is made for its owner only; a link, one
that others may write, or of another user, is refused, since code from it is run. Entries are found by the LLVM IR, the
target, the options and the build of LLVM that they were made from; damaged ones are made again. Above 2 GiB the entries
that were not used for longest are removed, when a compilation ends, at most every 20 minutes. Where the disk is full, a
note says so, and nothing else changes ([decision 0065](../decisions/0065-kernel-cache.md)).)"};

static const FlagRow kDumpIr = {
    .name = "dump-ir",
    .isRare = true,
    .value = "DIR",
    .type = FlagType::Folder,
    .sentence = "Write the IR after every phase",
    .text = R"(A file for each phase that changes it, as `N-PHASE.mlir`; with targets of several families as
`N-PHASE-FAMILY.mlir` from `simplify` on, where the families differ first.)"};

CommandRow describeTrain() {
  const FlagGroup output = {
      "Output",
      {
          {.name = "output",
           .letter = 'o',
           .value = "DIR",
           .type = FlagType::Folder,
           .sentence = "Write the artifact into this folder, replaced whole",
           .text = "Not needed with `--compile-to`."},
          {.name = "no-source",
           .sentence = "Leave the ONNX graph out of the artifact",
           .text = "`ortc export` needs the graph."},
          {.name = "no-weights",
           .sentence = "Leave the graph and initial trained values out, too",
           .text =
               R"(Initial values include running statistics. A checkpoint, or the host, brings them (`ortc run`, `eval`,
`predict` and `gradients` need `--load`). Weights that are not trained stay. Not with `--emit` or `--loss none`.)"},
          {.name = "emit",
           .value = "static|wasm",
           .type = FlagType::Choice,
           .words = "static wasm",
           .sentence = "Write files to link with, too: a C library or model.wasm",
           .text =
               R"(For one `--target`. `static`, or `static:name=model`: `model.a` (the code), `model_data.c` (the artifact
without it) and `model.h` (sizes and places as macros, and the function that
[ortc/static.h](../runtime-api.md#models-that-are-linked-in) opens), whose names of C begin with `name`
([devices](../devices.md#microcontrollers)). `wasm`, only with `--target wasm32`: `model.wasm`, one module of WebAssembly
with the code, the weights and the runtime, which imports nothing ([devices](../devices.md#one-file)). It needs
`lib/ortc/wasm32/libortc_wasm.a` beside `ortc`'s `bin`, and is refused where that is not installed.)",
           .syntax = "static:name=model|wasm"},
          {.name = "object",
           .isRare = true,
           .value = "elf|macho|coff",
           .type = FlagType::Choice,
           .words = "elf macho coff",
           .sentence = "Choose the format of model.a; default: elf",
           .text = "Programs of macOS and iOS (`aarch64`, `x86-64`) take `macho`, of Windows `coff`."},
          {.name = "ptxas",
           .isRare = true,
           .value = "PROGRAM",
           .type = FlagType::File,
           .sentence = "Assemble code for NVIDIA's GPUs with this program",
           .text =
               R"(NVIDIA's assembler, by its path or by a name that `PATH` has: adds machine code to the PTX of every NVIDIA
target, which opens faster. Without it the driver compiles the PTX when the artifact is opened. An artifact depends only
on its flags, so the program is not searched for.)"},
          {.name = "quiet",
           .sentence = "Print no summary and no progress",
           .text = "Warnings and notes are still printed."},
      }};
  const FlagGroup diagnostics = {
      "Tuning and diagnostics",
      {
          kKernelCache,
          {.name = "tune",
           .sentence = "Measure how kernels are best cut on this machine",
           .text =
               R"(Keeps the results in the file of `--tune-cache`. Needs targets that this machine can run, such as
`native`.)"},
          {.name = "tune-cache",
           .value = "FILE.json",
           .type = FlagType::File,
           .sentence = "Take measurements of --tune from this file",
           .text = R"(Without `--tune`, nothing is measured. Default with `--tune`: `ortc-tune.json`.)"},
          {.name = "compile-to",
           .isRare = true,
           .value = "PHASE",
           .type = FlagType::Choice,
           .words = "import legalize simplify loss differentiate update entries fuse place code",
           .sentence = "Stop after a phase, and print the IR",
           .text =
               R"(Phases: import, legalize, simplify, loss, differentiate, update, entries, fuse, place, code.)"},
          kDumpIr,
          {.name = "dump-buffers",
           .isRare = true,
           .value = "FILE.csv",
           .type = FlagType::File,
           .writes = true,
           .sentence = "Write the buffers of the memory plan",
           .text = R"(As `ortc plan` does. Known from the phase `place` on.)"},
          {.name = "report",
           .value = "FILE.json",
           .type = FlagType::File,
           .writes = true,
           .sentence = "Write the times of phases and the figures of kernels",
           .text =
               R"(Seconds of the phases, figures of the entries, every kernel with its work, its estimated and its measured
time; with `--compile-to`, as far as they are known by then.)"},
      }};
  return {.name = "train",
          .sentence = "Compile MODEL into a training artifact",
          .arguments = {{.name = "MODEL", .type = FlagType::File, .sentence = "the ONNX file"}},
          .groups = {output, modelFlags(), trainedFlags(), trainModeFlags(), updateFlags(), entryFlags(),
                     targetFlags(), diagnostics},
          .example =
              "ortc train model.onnx -o model --shape batch=64 --optimizer adamw:lr=3e-3 --target native\n"
              "ortc run model --data train.npz --epochs 10 --save trained.safetensors"};
}

CommandRow describePlan() {
  const FlagGroup output = {
      "Output",
      {
          {.name = "every-entry",
           .sentence = "Show details of every entry",
           .text = "Without it, only the first entry, the training step, has details."},
          {.name = "fit",
           .value = "BYTES",
           .type = FlagType::Bytes,
           .sentence = "Show which tensors could be trained in this much memory",
           .text =
               R"(The table marks the rows whose persistent and transient memory together fit (`256KiB`): all that is asked
for; the last k layers, for each k (of more than 16 layers, for some); biases and norms; a half, a quarter and an eighth
of the channels of the last k layers. A layer is a node that reads a trained tensor of more than one dimension, with the
vectors after it; tensors without channels are trained whole. `best` is the row that trains most values of those that
fit. Each row is planned by flags that stand below the table, and is what a session of all workers allocates; operations
are those of a training step. Not with `--lora`, which trains every adapter, nor with `--loss none`. Where nothing fits,
the command ends with status 2 and the least that was found. `--report` has the rows as `fit`.)"},
          {.name = "train-choices",
           .sentence = "Show how much memory training fewer tensors saves",
           .text =
               R"(The table has the last half, quarter and one of the layers (nodes that read a trained tensor), and only
biases and norms. Each is planned like the whole; tensors that are not trained are constants.)"},
          {.name = "report",
           .value = "FILE.json",
           .type = FlagType::File,
           .writes = true,
           .sentence = "Write every figure, step and buffer"},
          {.name = "html",
           .value = "FILE.html",
           .type = FlagType::File,
           .writes = true,
           .sentence = "Write a page that shows the arena over time",
           .text = "The page has the tensors of every step. It is one file, which loads nothing."},
          {.name = "dump-buffers",
           .value = "FILE.csv",
           .type = FlagType::File,
           .writes = true,
           .sentence = "Write the buffers in MiniMalloc's format",
           .text =
               R"(The transient region: `id`, `lower` and `upper` (alive in [lower, upper) steps), `size`, `alignment`,
`gaps`, `pool` (the entry's number), `offset`, `entry`, `type`. `ortc-plan` reads it
([memory planning](../memory-planning.md)).)"},
          kDumpIr,
          {.name = "quiet", .sentence = "Print nothing but warnings"},
      }};
  return {.name = "plan",
          .sentence = "Show the memory plan of MODEL, without generating code",
          .arguments = {{.name = "MODEL", .type = FlagType::File, .sentence = "the ONNX file"}},
          .groups = {output, modelFlags().share("train"), trainedFlags().share("train"),
                     trainModeFlags().share("train"), updateFlags().share("train"),
                     entryFlags().share("train"), targetFlags().share("train")}};
}

CommandRow describeCheck() {
  const FlagGroup check = {
      "Check",
      {
          {.name = "data",
           .value = "FILE",
           .type = FlagType::File,
           .sentence = "Take the first slice of this data as the input",
           .text =
               R"(Default: random numbers; integers that index something are in its range, others are 1.)"},
          {.name = "against",
           .value = "differences|evaluator",
           .type = FlagType::Choice,
           .words = "differences evaluator",
           .sentence = "Compare with differences, or with the evaluator",
           .text = "Default: `differences`."},
          {.name = "tolerance",
           .value = "X",
           .type = FlagType::Number,
           .sentence = "Allow this relative error",
           .text = "Default: 1e-5, or 1e-9 against the evaluator."},
          {.name = "load",
           .value = "FILE.safetensors",
           .type = FlagType::File,
           .sentence = "Check an artifact with the weights of this checkpoint"},
          kKernelCache,
      }};
  return {.name = "check",
          .sentence = "Check the gradients or the generated code of a model",
          .arguments = {{.name = "MODEL",
                         .type = FlagType::File,
                         .sentence = "the ONNX file, or the folder of an artifact"}},
          .groups = {
              check, modelFlags().share("train", {{"binding", "The first is checked."}}),
              trainedFlags().share(
                  "train",
                  {{"train", "Fewer tensors take less time. Gradients of all channels are checked."},
                   {"lora", "Both factors begin with random numbers, so that both have a gradient."},
                   {"qat",
                    "Only with `--against evaluator`: differences of losses do not show the gradient that is "
                    "passed through rounding."}}),
              trainModeFlags().share("train",
                                     {{"seed", "Also of inputs and directions; the same seed gives the same "
                                               "table."}})}};
}

/// Some rows of a group that another command has.
static FlagGroup shareSome(const FlagGroup &group, const std::vector<std::string_view> &names,
                           std::map<std::string, const char *> notes = {}) {
  FlagGroup shared = group.share("train", std::move(notes));
  std::erase_if(shared.rows, [&](const FlagRow &row) {
    return std::find(names.begin(), names.end(), row.name) == names.end();
  });
  return shared;
}

CommandRow describeUpdate() {
  const FlagGroup update = {
      "Update",
      {
          {.name = "output",
           .letter = 'o',
           .value = "DIR",
           .type = FlagType::Folder,
           .sentence = "Write the artifact into this folder, replaced whole"},
          {.name = "optimizer",
           .value = "SPEC",
           .type = FlagType::Spec,
           .sentence = "Choose the optimizer; default: sgd",
           .text =
               R"(SPEC is `NAME[:key=value,...]` of an optimizer in the [table](train.md#optimizers). Numbers are inputs of a
step, whatever they are here; only whether one that may be absent is 0 decides something.)"},
          {.name = "shape",
           .value = "AxB",
           .type = FlagType::Text,
           .sentence = "Update a tensor of this shape; default: pieces of any",
           .text =
               R"(Optimizers that look at a whole tensor need it: `lamb`, `lars`, `adafactor` and `muon`. Others have bindings
for pieces of tensors: vectors of 16, 32, 64 and so on to 262,144 elements, or of 256 to 16,384 where states are bytes.)"},
          {.name = "whole-states",
           .sentence = "Keep states in numbers that the optimizer keeps in bytes",
           .text = "For tensors that are too small for bytes, of `adamw8bit` and `lion8bit`."},
          {.name = "quiet", .sentence = "Print nothing but warnings"},
      }};
  FlagGroup target = shareSome(targetFlags(), {"target", "numerics", "precision", "max-workers"},
                               {{"precision", "Only `f32` and `f64`."}});
  target.title = "Target";
  return {.name = "update",
          .sentence = "Compile an optimizer's update for tensors of a host",
          .arguments = {},
          .groups = {update, target, {"Diagnostics", {kKernelCache, kDumpIr}}},
          .example = "ortc update --optimizer adamw:weight_decay=0.01 -o adamw --target native"};
}

CommandRow describeOps() {
  return {.name = "ops",
          .sentence = "List the supported operators, their opsets, gradients and types",
          .arguments = {},
          .groups = {{"Output",
                      {{.name = "json", .sentence = "Print JSON"},
                       {.name = "markdown", .sentence = "Print the tables of docs/status.md"}}}}};
}

} // namespace ortc::tool
