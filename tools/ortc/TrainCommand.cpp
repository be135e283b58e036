// The command ortc train.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/text.h"
#include "passes/train/Losses.h"
#include "passes/train/Optimizers.h"
#include "passes/train/Teacher.h"
#include "tools/ortc/Commands.h"
#include "tools/ortc/Compiling.h"
#include "tools/ortc/Masks.h"
#include "tools/ortc/WasmRuntime.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"

#include <cfloat>
#include <cstdlib>

namespace ortc::tool {
namespace {

template <typename Value> using Parser = Expected<Value> (*)(std::string_view text);

/// Lets a parser of the driver fill a field.
template <typename Value, typename Field> CommandLine::Handler fill(Parser<Value> parse, Field &field) {
  return [parse, &field](const std::string &value) { return parse(value).moveTo(field); };
}

/// The same, for one more element of a list.
template <typename Value> CommandLine::Handler append(Parser<Value> parse, std::vector<Value> &list) {
  return [parse, &list](const std::string &value) { return parse(value).moveTo(list.emplace_back()); };
}

Expected<double> parseLimit(std::string_view text) {
  double limit = 0;
  if (!parseNumber(text, limit) || !(limit > 0 && limit <= double(FLT_MAX) && static_cast<float>(limit) > 0))
    return Status::refusal(quote(text) + " must be a number above 0 that float32 has: 1.4e-45 to 3.4e38");
  return limit;
}

/// `--accumulate N[:by=steps|tokens]`.
Status parseAccumulate(std::string_view text, CompileOptions &options) {
  const std::string steps = "steps";
  const std::vector<Key> keys = {{"by", steps, kWord, "what the mean is over", false, {steps, "tokens"}}};
  std::string_view number, rest;
  bool hasKeys = false;
  splitSpec(text, number, rest, hasKeys);
  uint64_t count = 0;
  if (!parseUnsigned(number, count) || count < 1 || count > 1 << 20)
    return Status::refusal(quote(number) + " must be a whole number from 1 to 1048576");
  KeyValues given;
  ORTC_TRY(parseSettings(hasKeys, rest, quote(number), keys, nullptr).moveTo(given));
  options.accumulate = static_cast<uint32_t>(count);
  options.accumulatesLabels = Settings(keys, given).getWord("by") != steps;
  return Status();
}

/// One more name, which must be new.
Status addName(const std::string &name, std::vector<std::string> &names) {
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end())
    return Status::refusal(quote(name) + (name.empty() ? " is no name" : " is given twice"));
  names.push_back(name);
  return Status();
}

} // namespace

void addModelFlags(CommandLine &line, CompileOptions &options) {
  line.addValue(
      "--shape", "NAME=N|INPUT=AxBxC",
      "binds symbolic dimensions (a comma between more), or a whole input; all must be bound",
      [&options](const std::string &value) { return addShapes(value, options); }, true);
  line.addValue(
      "--binding", "NAME", "the --shape flags after it make another binding of the same parameters",
      [&options](const std::string &value) { return addBinding(value, options); }, true);
  line.addValue(
      "--loss", "[NAME=]SPEC[@OUTPUT][:weight=W]", train::describeLosses(),
      [&options](const std::string &value) { return train::addLoss(value, options.losses); }, true);
  line.addText("--loss-input", "NAME",
               "the value that feeds the loss; default: the only output, or the first of floats",
               options.lossInput);
}

void addGradientFlags(CommandLine &line, CompileOptions &options) {
  line.addValue(
      "--train", "REGEX:channels=1|@FILE",
      "float initializers to train: whole names, or a file with a name a line; default: all that are "
      "weights. "
      "channels: the share of their output channels, the first ones; default: 1",
      [&options](const std::string &value) {
        TrainSpec spec;
        ORTC_TRY(parseTrain(value).moveTo(spec));
        options.train.push_back(std::move(spec.pattern));
        options.channels.push_back(spec.channels);
        return Status();
      },
      true);
  line.addValue("--freeze", "REGEX|@FILE",
                "float initializers not to train; wins over --train; default: none",
                append(NamePattern::read, options.freeze), true);
  line.addValue("--materialize-gradients", "REGEX|@FILE",
                "tensors of --train that have a gradient of zeros where none reaches them, so that decay and "
                "momentum go on; "
                "default: they become constants",
                append(NamePattern::read, options.materialized), true);
  line.addValue(
      "--untie", "NAME",
      "every reader of this initializer gets its own, as before an exporter merged equal ones",
      [&options](const std::string &value) {
        options.untie.push_back(value);
        return value.empty() ? Status::refusal("needs a name") : Status();
      },
      true);
  line.addValue("--tie", "COPY=ORIGINAL",
                "an initializer that is a copy or the transpose of another becomes that one again",
                append(parseTie, options.ties), true);
  line.addValue(
      "--batch-norm", "MODE:unbiased=0",
      "as-exported, train or frozen; unbiased: running variances as PyTorch has them; default: as-exported",
      fill(parseBatchNorm, options.batchNorm));
  line.addValue("--dropout", "MODE:masks=1", "as-exported, train or off; default: as-exported",
                fill(parseDropout, options.dropout));
  line.addValue(
      "--lora", "REGEX:rank=8,alpha=16,dropout=0,rs=0",
      "low-rank adapters beside the weights with such names; nothing else is trained but what --train "
      "names; repeatable; the first match wins",
      append(parseLora, options.lora), true);
  line.addValue("--qat",
                "REGEX:bits=8,per=channel,observer=moving_average,averaging=0.01,observe=0,learned=0",
                "trains the layers of the weights with such names to compute with integers: rounds these "
                "weights and what the "
                "layers read; repeatable; the first match wins",
                append(parseQat, options.qat), true);
  line.addValue(
      "--base", "int8|int4:block=64",
      "stores the weights beside adapters as integers with a scale for each block of a row; default: "
      "as the file has them",
      fill(parseBase, options.base));
  line.addValue(
      "--head-chunk", "N",
      "rows of logits that exist at a time, a divisor of their number at most N; 0: all; default: 64 MiB "
      "of them, where all are 1.5 times as large as that and the matrix",
      [&options](const std::string &value) {
        uint64_t rows = 0;
        if (!parseUnsigned(value, rows) || rows > INT32_MAX)
          return Status::refusal(quote(value) + " must be a whole number from 0 to 2147483647");
        options.headChunk = static_cast<int64_t>(rows);
        return Status();
      });
  line.addValue(
      "--attention", "auto|whole|tiled:rows=0",
      "tiled: scores of one head and some queries at a time (rows; 0: by their size), computed again for the "
      "gradient; whole: all of them at once; auto: tiled from 512 x 512 scores a head on; default: auto",
      fill(parseAttention, options.attention));
  line.addValue(
      "--seed", "N",
      "of dropout and other random ops; default: 0; in large attention GPUs draw other masks than CPUs",
      [&options](const std::string &value) {
        return parseUnsigned(value, options.seed)
                   ? Status()
                   : Status::refusal(quote(value) + " must be a whole number from 0 to 18446744073709551615");
      });
}

void addTrainingFlags(CommandLine &line, CompileOptions &options) {
  line.addValue("--optimizer", "SPEC", train::describeOptimizers(),
                fill(train::parseOptimizer, options.optimizer));
  line.addValue("--group", "REGEX:KEY=VALUE,...",
                "a parameter group with keys of its own, lr_scale or optimizer=NAME; the first match wins",
                append(parseGroup, options.groups), true);
  line.addValue(
      "--no-decay", "biases,norms",
      "no weight decay of vectors that are added, that are multiplied by element, or of both, unless "
      "their group gives it",
      fill(parseNoDecay, options.noDecay));
  line.addValue("--sparse", "REGEX:lazy=0",
                "tables that only Gather reads: a step updates the rows that it has read; repeatable; the "
                "first match wins",
                append(parseSparse, options.sparse), true);
  line.addValue("--clip-norm", "X", "limits the norm of all gradients together; default: no limit",
                fill(parseLimit, options.clipNorm));
  line.addValue("--clip-value", "X", "limits every element of a gradient; default: no limit",
                fill(parseLimit, options.clipValue));
  line.addValue(
      "--schedule", "lr=SPEC",
      "the rate in every step, computed by the step from the number of updates: " + host::listSchedules() +
          ", with keys as --lr-schedule of ortc run has them; default: the scalar lr as it is",
      fill(parseSchedule, options.updateSpecs.schedule));
  line.addValue(
      "--step-outputs", "grad_norm,param_norm",
      "outputs of the training step: the norm of all gradients before clipping, of all parameters before "
      "the update",
      [&options](const std::string &value) { return parseStepOutputs(value, options.updateSpecs); });
  line.addValue("--ema", "decay=0.999,warmup=0,gamma=1,power=0.6667",
                "averages of the parameters in which new values fade in; default: none",
                fill(parseEma, options.updateSpecs.ema));
  line.addValue("--swa", "start=0,every=1",
                "the mean of the parameters after the updates behind the first `start`; default: none",
                fill(parseSwa, options.updateSpecs.swa));
  line.addValue("--regularize", "REGEX:l1=0,l2=0,max_norm=0,axis=0",
                "penalties on weights, and a limit of their norms; repeatable, the first match wins",
                append(parseRegularize, options.updateSpecs.regularizers), true);
  line.addValue(
      "--mask", "FILE", "npz or safetensors of zeros and ones by parameter: weights that stay zero",
      [&options](const std::string &value) { return readMasks(value).moveTo(options.updateSpecs.masks); });
  line.addValue("--loss-scale", "dynamic:init=65536,growth=2,backoff=0.5,interval=2000|N",
                "multiplies the loss before differentiation, so that float16 has numbers for small "
                "gradients, and skips steps whose gradients are not finite; default: none",
                fill(parseLossScale, options.lossScale));
  line.addValue(
      "--accumulate", "N:by=steps",
      "gradient steps before an update, which takes their mean; by=tokens: over all labels that count; "
      "default: 1",
      [&options](const std::string &value) { return parseAccumulate(value, options); });
  line.addValue("--teacher", "FILE.onnx:output=NAME,temperature=1,weight=0.5",
                "a frozen model with the same inputs, whose logits NAME the output of the loss learns, too; "
                "default: none",
                [&options](const std::string &value) {
                  return train::parseTeacher(value).moveTo(options.teacher.emplace());
                });
  line.addValue(
      "--train-outputs", "OUTPUT", "the training step gives this output of the model, too; repeatable",
      [&options](const std::string &value) { return addName(value, options.trainOutputs); }, true);
  line.addFlag("--gradients", "adds the entry that leaves gradients readable", options.gradients);
  line.addValue(
      "--cotangents", "OUTPUT",
      "instead of a loss: adds the entries forward and backward, which takes the gradient of this output "
      "from "
      "the host; repeatable",
      [&options](const std::string &value) {
        if (LossSpec &loss = options.losses.front(); !loss.isGiven)
          loss = *train::parseLoss("none"), loss.isGiven = false;
        return addName(value, options.cotangents);
      },
      true);
  line.addValue("--bind", "parameters,gradients,strided",
                "parameters and running statistics, gradients, or both lie in memory of the host: dense, or "
                "strided as the "
                "artifact asks for; default: in memory of the session",
                fill(parseBind, options.bind));
  line.addValue(
      "--input-gradients", "INPUT", "backward gives the gradient of this input, too; repeatable",
      [&options](const std::string &value) { return addName(value, options.inputGradients); }, true);
}

void addTargetFlags(CommandLine &line, CompileOptions &options, TargetFlags flags) {
  line.addWhole("--max-workers", "the most threads a session may use; default: 2", options.maxWorkers, 1,
                256);
  line.addValue("--memory-budget", "BYTES",
                "most bytes of the transient region, such as 512MiB: what is cheaper to compute again is not "
                "kept; default: no limit",
                [&options, &unit = flags.memoryUnit](const std::string &text) {
                  unit = host::findByteUnit(text).name;
                  return parseBytes(text).moveTo(options.memoryBudget.emplace());
                });
  line.addValue(
      "--target", "NAME",
      "host (three levels of x86-64: runs everywhere), all (those, aarch64, armv7, riscv64, riscv64-v and "
      "wasm32), "
      "native (this machine only, compiles in a third of the time), a level such as x86-64-v3, or a GPU such "
      "as sm_90 "
      "or gfx942, or a microcontroller: cortex-m4, -m7, -m33, -m55; repeatable; default: host",
      [&options, &isFirst = flags.isFirstTarget](const std::string &value) {
        return addTarget(value, options, isFirst);
      },
      true);
  line.addValue("--opt", "speed|size",
                "fast code, or small code; default: speed, and size for microcontrollers",
                fill(parseOptimization, options.forSize));
  line.addValue("--numerics", "MODE", "fast, or portable: the same bits on every target; default: fast",
                fill(parseNumerics, options.numerics));
  line.addValue("--precision", "TYPE",
                "f32: the types of the file; bf16 or f16: products of such numbers, sums in float32; tf32: "
                "products of float32 numbers that are rounded to 10 bits, on NVIDIA's GPUs; f64: everything "
                "in float64, for checking; default: f32",
                fill(parsePrecision, options.precision));
  line.addValue(
      "--parameters", "TYPE",
      "f32; bf16:stochastic: trained parameters are stored in bfloat16 alone, and new values rounded up "
      "or down by chance, right on average; bf16: rounded to the nearest; default: f32",
      fill(parseParameters, options.parameters));
}

void addKernelCacheFlag(CommandLine &line, CompileOptions &options) {
  if (const char *folder = std::getenv("ORTC_KERNEL_CACHE"))
    options.kernelCache = folder;
  line.addText("--kernel-cache", "DIR",
               "Keep compiled kernels in DIR and reuse them; default: ORTC_KERNEL_CACHE of the "
               "environment, or none",
               options.kernelCache);
}

/// A program by its path, or by a name that PATH has.
static Expected<std::string> findProgram(std::string_view name) {
  if (auto found = llvm::sys::findProgramByName(name); found && llvm::sys::fs::can_execute(*found))
    return *found;
  return Status::refusal(quote(name) + " is no program, neither as a path nor in PATH");
}

static void addReportFlags(CommandLine &line, CompileOptions &options, TuneOptions &tuning) {
  line.addFlag("--tune", "measures on this machine how kernels are best cut, and keeps it in --tune-cache",
               tuning.measures);
  line.addText("--tune-cache", "FILE.json",
               std::string("what was measured; taken without --tune, too. Default with --tune: ") +
                   kTuneCache,
               tuning.file);
  line.addText("--compile-to", "PHASE", "stops after a phase", options.compileTo);
  line.addText("--dump-ir", "DIR", "writes the IR after every phase", options.dumpIr);
  line.addText("--dump-buffers", "FILE.csv", "writes the memory plan", options.dumpBuffers);
  line.addText("--report", "FILE.json", "writes what the phases did", options.report);
  line.addFlag("--quiet", "no summary", options.quiet);
}

void addTrainCommand(CLI::App &app, Action &action) {
  struct State {
    CompileOptions options;
    TuneOptions tuning;
    bool isFirstTarget = true;
    std::string memoryUnit;
  };
  auto state = std::make_shared<State>();
  CommandLine line(app, "train", "compiles MODEL into a training artifact");
  line.addPositional("MODEL", "the ONNX file", state->options.model);
  line.addText("-o,--output", "DIR", "folder of the artifact: created, or replaced whole",
               state->options.output);
  addModelFlags(line, state->options);
  line.addFlag("--no-source", "leaves the ONNX graph out of the artifact", state->options.source, false);
  line.addFlag("--no-weights",
               "leaves the ONNX graph and initial values of what is trained out of the artifact",
               state->options.weights, false);
  addGradientFlags(line, state->options);
  addTrainingFlags(line, state->options);
  addTargetFlags(line, state->options, {state->isFirstTarget, state->memoryUnit});
  line.addValue(
      "--emit", "static:name=model|wasm",
      "also writes what programs are linked with: model.a, model.h and model_data.c; for one --target. Names "
      "of C begin with `name`. Or model.wasm: model and runtime as one module, with --target wasm32",
      fill(parseEmit, state->options.emit));
  line.addValue("--object", "elf|macho|coff", "the format of model.a; default: elf",
                fill(parseObjectFormat, state->options.objectFormat));
  line.addValue("--ptxas", "PROGRAM",
                "NVIDIA's assembler: adds machine code for the NVIDIA GPUs that --target names; default: the "
                "driver assembles when an artifact is opened",
                fill(findProgram, state->options.ptxas));
  addKernelCacheFlag(line, state->options);
  addReportFlags(line, state->options, state->tuning);
  line.setExample("ortc train model.onnx -o model --shape batch=64 --loss cross_entropy --optimizer "
                  "adamw:lr=3e-3 --target native\n"
                  "  ortc run model --data train.npz --epochs 10 --save trained.safetensors");
  line.setAction(action, [state] {
    Status status = checkOptions(state->options);
    if (status.isOk() && state->options.emit && state->options.emit->kind == EmitSpec::Wasm)
      status = findWasmRuntime().moveTo(state->options.wasmRuntime);
    return finishCompiling(status.isOk() ? train(state->options, state->tuning, state->memoryUnit) : status,
                           state->options.model);
  });
}

} // namespace ortc::tool
