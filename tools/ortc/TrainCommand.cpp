// The command ortc train.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/Optimizers.h"
#include "compiler/passes/train/Teacher.h"
#include "support/Text.h"
#include "tools/ortc/Commands.h"
#include "tools/ortc/Compiling.h"
#include "tools/ortc/Masks.h"
#include "tools/ortc/Vocabularies.h"
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
  line.addValue("shape", [&options](const std::string &value) { return addShapes(value, options); });
  line.addValue("binding", [&options](const std::string &value) { return addBinding(value, options); });
  line.addValue("loss",
                [&options](const std::string &value) { return train::addLoss(value, options.losses); });
  line.setVocabulary("loss", describeLosses());
  line.addText("loss-input", options.lossInput);
}

void addGradientFlags(CommandLine &line, CompileOptions &options) {
  line.addValue("train", [&options](const std::string &value) {
    TrainSpec spec;
    ORTC_TRY(parseTrain(value).moveTo(spec));
    options.train.push_back(std::move(spec.pattern));
    options.channels.push_back(spec.channels);
    return Status();
  });
  line.addValue("freeze", append(NamePattern::read, options.freeze));
  line.addValue("materialize-gradients", append(NamePattern::read, options.materialized));
  line.addValue("untie", [&options](const std::string &value) {
    options.untie.push_back(value);
    return value.empty() ? Status::refusal("needs a name") : Status();
  });
  line.addValue("tie", append(parseTie, options.ties));
  line.addValue("batch-norm", fill(parseBatchNorm, options.batchNorm));
  line.addValue("dropout", fill(parseDropout, options.dropout));
  line.addValue("lora", append(parseLora, options.lora));
  line.addValue("qat", append(parseQat, options.qat));
  line.addValue("base", fill(parseBase, options.base));
  line.addValue("head-chunk", [&options](const std::string &value) {
    uint64_t rows = 0;
    if (!parseUnsigned(value, rows) || rows > INT32_MAX)
      return Status::refusal(quote(value) + " must be a whole number from 0 to 2147483647");
    options.headChunk = static_cast<int64_t>(rows);
    return Status();
  });
  line.addValue("attention", fill(parseAttention, options.attention));
  line.addValue("seed", [&options](const std::string &value) {
    return parseUnsigned(value, options.seed)
               ? Status()
               : Status::refusal(quote(value) + " must be a whole number from 0 to 18446744073709551615");
  });
}

void addTrainingFlags(CommandLine &line, CompileOptions &options) {
  line.addValue("optimizer", fill(train::parseOptimizer, options.optimizer));
  line.setVocabulary("optimizer", describeOptimizers());
  line.addValue("group", append(parseGroup, options.groups));
  line.addValue("no-decay", fill(parseNoDecay, options.noDecay));
  line.addValue("sparse", append(parseSparse, options.sparse));
  line.addValue("clip-norm", fill(parseLimit, options.clipNorm));
  line.addValue("clip-value", fill(parseLimit, options.clipValue));
  line.addValue("schedule", fill(parseSchedule, options.updateSpecs.schedule));
  line.setVocabulary("schedule", describeSchedules(/*hasPlateau=*/false));
  line.addValue("step-outputs", [&options](const std::string &value) {
    return parseStepOutputs(value, options.updateSpecs);
  });
  line.addValue("ema", fill(parseEma, options.updateSpecs.ema));
  line.addValue("swa", fill(parseSwa, options.updateSpecs.swa));
  line.addValue("regularize", append(parseRegularize, options.updateSpecs.regularizers));
  line.addValue("mask", [&options](const std::string &value) {
    return readMasks(value).moveTo(options.updateSpecs.masks);
  });
  line.addValue("loss-scale", fill(parseLossScale, options.lossScale));
  line.addValue("accumulate",
                [&options](const std::string &value) { return parseAccumulate(value, options); });
  line.addValue("teacher", [&options](const std::string &value) {
    return train::parseTeacher(value).moveTo(options.teacher.emplace());
  });
  line.addValue("train-outputs",
                [&options](const std::string &value) { return addName(value, options.trainOutputs); });
  line.addFlag("gradients", options.gradients);
  line.addValue("cotangents", [&options](const std::string &value) {
    if (LossSpec &loss = options.losses.front(); !loss.isGiven)
      loss = *train::parseLoss("none"), loss.isGiven = false;
    return addName(value, options.cotangents);
  });
  line.addValue("bind", fill(parseBind, options.bind));
  line.addValue("input-gradients",
                [&options](const std::string &value) { return addName(value, options.inputGradients); });
}

void addTargetFlags(CommandLine &line, CompileOptions &options, TargetFlags flags) {
  line.addWhole("max-workers", options.maxWorkers, 1, 256);
  line.addValue("memory-budget", [&options, &unit = flags.memoryUnit](const std::string &text) {
    unit = findByteUnit(text).name;
    return parseBytes(text).moveTo(options.memoryBudget.emplace());
  });
  line.addValue("target", [&options, &isFirst = flags.isFirstTarget](const std::string &value) {
    return addTarget(value, options, isFirst);
  });
  line.addValue("opt", fill(parseOptimization, options.forSize));
  line.addValue("numerics", fill(parseNumerics, options.numerics));
  line.addValue("precision", fill(parsePrecision, options.precision));
  line.addValue("parameters", fill(parseParameters, options.parameters));
}

void addKernelCacheFlag(CommandLine &line, CompileOptions &options) {
  if (const char *folder = std::getenv("ORTC_KERNEL_CACHE"))
    options.kernelCache = folder;
  line.addText("kernel-cache", options.kernelCache);
}

/// A program by its path, or by a name that PATH has.
static Expected<std::string> findProgram(std::string_view name) {
  if (auto found = llvm::sys::findProgramByName(name); found && llvm::sys::fs::can_execute(*found))
    return *found;
  return Status::refusal(quote(name) + " is no program, neither as a path nor in PATH");
}

static void addReportFlags(CommandLine &line, CompileOptions &options, TuneOptions &tuning) {
  line.addFlag("tune", tuning.measures);
  line.addText("tune-cache", tuning.file);
  line.addText("compile-to", options.compileTo);
  line.addText("dump-ir", options.dumpIr);
  line.addText("dump-buffers", options.dumpBuffers);
  line.addText("report", options.report);
  line.addFlag("quiet", options.quiet);
}

void addTrainCommand(Tool &tool) {
  struct State {
    CompileOptions options;
    TuneOptions tuning;
    bool isFirstTarget = true;
    std::string memoryUnit;
    RecipeFile recipe;
  };
  auto state = std::make_shared<State>();
  CommandLine line(tool, "train");
  line.addPositional("MODEL", state->options.model);
  line.addText("output", state->options.output);
  addModelFlags(line, state->options);
  line.addFlag("no-source", state->options.source, false);
  line.addFlag("no-weights", state->options.weights, false);
  addGradientFlags(line, state->options);
  addTrainingFlags(line, state->options);
  addTargetFlags(line, state->options, {state->isFirstTarget, state->memoryUnit});
  line.addValue("emit", fill(parseEmit, state->options.emit));
  line.addValue("object", fill(parseObjectFormat, state->options.objectFormat));
  line.addValue("ptxas", fill(findProgram, state->options.ptxas));
  addKernelCacheFlag(line, state->options);
  addReportFlags(line, state->options, state->tuning);
  line.addText("write-config", state->recipe.path);
  line.setAction([state, getRecipe = line.getRecipe()] {
    state->recipe.text = getRecipe();
    Status status = checkOptions(state->options);
    if (status.isOk() && state->options.emit && state->options.emit->kind == EmitSpec::Wasm)
      status = findWasmRuntime().moveTo(state->options.wasmRuntime);
    return finishCompiling(
        status.isOk() ? train(state->options, state->tuning, state->memoryUnit, state->recipe) : status,
        state->options.model);
  });
}

} // namespace ortc::tool
