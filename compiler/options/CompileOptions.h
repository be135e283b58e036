// Everything a compilation is told.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One plain struct with every flag of `ortc train`, already parsed and checked as far as that is possible
// without the model, and the parsers of the specs that flags carry. No MLIR: the command line, the driver and
// tests share it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/options/Keys.h"
#include "compiler/options/NamePattern.h"
#include "compiler/options/Numerics.h"
#include "compiler/options/ObjectFormat.h"
#include "compiler/options/UpdateSpecs.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ortc {

struct OnnxLoss;      // compiler/passes/train/OnnxLoss.h
struct OnnxOptimizer; // compiler/passes/train/OnnxOptimizer.h

/// The lines of a text that are not empty, without what ends them.
std::vector<std::string> splitNames(std::string_view text);

/// Where the loss comes from: a formula of this compiler, the graph itself, or nowhere.
enum class LossSource { Formula, Output, None };

/// `--loss`. compiler/passes/train/Losses.h parses it and has the table of formulas.
struct LossSpec {
  LossSource source = LossSource::Formula;
  std::string name = "cross_entropy"; ///< the word before the keys
  KeyValues given;                    ///< keys that were given; the definition has the defaults of the others
  std::string id;                     ///< what it is called among several; may be empty where it is alone
  std::string label = "label";        ///< the input that it compares with; of several "label.ID"
  std::vector<std::string> outputs;   ///< names of the graph outputs that it reads; empty: one that is chosen
  std::optional<double> weight;       ///< not negative; absent: 1
  bool isGiven = false;               ///< whether a flag said so
  std::string text = "cross_entropy"; ///< as given, for the manifest and messages
  std::shared_ptr<const OnnxLoss> file; ///< the formula is an ONNX function; null: one of the table
};

/// `--teacher FILE.onnx:output=X,temperature=1,weight=0.5`: a frozen model whose output the trained one learns, too.
struct TeacherSpec {
  std::string file;
  std::string output;     ///< of the teacher: logits
  double temperature = 1; ///< divides the logits of both
  double weight = 0.5;    ///< of the distillation; the loss of the labels has the rest
  std::string text;       ///< as given
};

/// `--optimizer`. compiler/passes/train/Optimizers.h parses it and has the table of formulas.
struct OptimizerSpec {
  std::string name = "sgd";
  KeyValues given;
  bool isGiven = false;
  std::string text = "sgd";
  std::shared_ptr<const OnnxOptimizer> file; ///< the formula is an ONNX function; null: one of the table
};

/// `--group REGEX:KEY=VALUE,...`. The first group that matches a parameter's name is its group.
/// compiler/passes/train/Optimizers.h reads the keys, which are those of an optimizer.
struct GroupSpec {
  NamePattern pattern;
  std::string keys; ///< what follows the colon
  std::string text;
};

/// `--no-decay biases,norms`: parameters without weight decay, unless their group says how much.
struct NoDecaySpec {
  bool biases = false, norms = false;
};

/// One item of `--shape`: `NAME=N` binds a symbolic dimension (or an input of rank 1), `INPUT=AxBxC` a whole
/// input. Which of both a single number is, only the graph can tell.
struct ShapeSpec {
  std::string name;
  std::vector<int64_t> dims; ///< at least one, each at least 1
};

/// The shapes of one binding. The first is named "default" unless `--binding` comes before every `--shape`.
struct BindingSpec {
  std::string name = "default";
  std::vector<ShapeSpec> shapes;
};

/// Statistics of batch norms in training steps: as the file says, the batch's, or the running ones.
enum class BatchNormMode { AsExported, Train, Frozen };
/// `--batch-norm train:unbiased=1`.
struct BatchNormSpec {
  BatchNormMode mode = BatchNormMode::AsExported;
  bool isUnbiased = false; ///< running variances are of samples, as PyTorch's, not of the batch, as ONNX's
};
/// Dropout in training steps: as the file says, everywhere, or nowhere.
enum class DropoutMode { AsExported, Train, Off };
/// `--dropout train:masks=1`.
struct DropoutSpec {
  DropoutMode mode = DropoutMode::AsExported;
  bool findsMasks = true; ///< what the graph draws itself may be dropout, too
};
/// F32: the types of the file. BF16, F16: those, and products of narrow operands. TF32: those of the file, whose
/// products are of rounded operands.
enum class Precision { F32, F64, BF16, F16, TF32 };
/// `--parameters`: float32, or bfloat16 with new values rounded to the nearest number, or to one of both neighbours
/// with the probability of its nearness.
enum class ParameterStorage { F32, BF16Nearest, BF16Stochastic };

/// `--loss-scale`, torch.amp.GradScaler: gradients are those of the loss times a scale, and are divided by it where
/// they are whole; a step whose gradients are not all finite updates nothing.
struct LossScaleSpec {
  double initial = 65536;
  /// Of a scale that moves: after a step that is skipped it is multiplied by `backoff`, after `interval` others in a
  /// row by `growth`.
  bool isDynamic = true;
  double growth = 2, backoff = 0.5;
  int64_t interval = 2000;
  std::string text; ///< as given
};

/// `--attention`: whether scores of all queries and keys exist at once, or those of a head and of some rows of it,
/// which the backward part computes again.
struct AttentionSpec {
  int64_t least = 512 * 512; ///< scores of a head, queries times keys, from which on they are tiled
  int64_t rows = 0;          ///< queries of a tile; 0: by the size of their scores

  bool isWhole() const { return least == INT64_MAX; }
};

/// `--lora REGEX:rank=8,alpha=16,dropout=0,rs=0`: adapters beside the weights that match, which are not trained.
struct LoraSpec {
  NamePattern pattern;
  std::string text; ///< as given
  int64_t rank = 8;
  double alpha = 16, dropout = 0;
  bool isRankStabilized = false;

  /// What the product of the two factors is multiplied by.
  double getScale() const;
};

/// `--train REGEX:channels=1`: of the output channels of tensors that match, the share that is trained: the first ones.
struct TrainSpec {
  NamePattern pattern;
  double channels = 1; ///< above 0, at most 1
};

/// `--sparse REGEX:lazy=0`: tables whose step updates the rows that it has read, and their state, only.
struct SparseSpec {
  NamePattern pattern;
  bool isLazy = false; ///< also where the optimizer would move other rows
  std::string text;    ///< as given
};

/// `--base int8|int4:block=64`: how weights beside adapters are stored.
struct BaseSpec {
  std::string text;   ///< as given
  int64_t bits = 8;   ///< 8 or 4
  int64_t block = 64; ///< numbers of a row that share a scale: a power of two from 32 to 4096
};

/// `--qat REGEX:bits=8,per=channel,observer=moving_average,averaging=0.01,observe=0,learned=0`: the weights that match,
/// and what the layers of these read, are rounded to integers of `bits` bits in training.
struct QatSpec {
  NamePattern pattern;
  std::string text; ///< as given
  int64_t bits = 8;
  bool isPerChannel = true; ///< weights have a range for each output channel; what layers read has one
  bool isAveraged = true;   ///< ranges are moving averages, else the least and the largest that was seen
  double averaging = 0.01;  ///< the weight of a step in the average
  int64_t observedSteps =
      0;                  ///< after these, ranges stay; 0: never, or where scales are learned the first step
  bool isLearned = false; ///< scales are parameters behind the observed steps
};

/// `--emit static:name=model` or `--emit wasm`: what is written beside model.ortc.
struct EmitSpec {
  enum Kind { Static, Wasm };
  Kind kind = Static;         ///< parts that programs are linked with, or one module of WebAssembly
  std::string name = "model"; ///< static: an identifier of C, with which all others begin
  std::string text;           ///< as given
};

/// `--bind parameters,gradients,strided`: what lies in memory of the host.
struct BindSpec {
  bool parameters = false; ///< and running statistics
  bool gradients = false;
  bool strided = false; ///< in the layouts that kernels read; else dense, as the ONNX file has them
};

/// `--tie COPY=ORIGINAL`.
struct TieSpec {
  std::string copy, original;
};

/// For tests: scales one operand's gradient of every operation of one name (autodiff::Mutation).
struct GradientMutation {
  std::string operation; ///< empty: none
  unsigned operand = 0;
  double factor = 1.01;
};

/// All options of a compilation: flags of `ortc train`, and arguments of compile() in Python.
struct CompileOptions {
  std::string model;  ///< path of the ONNX file
  std::string output; ///< folder of the artifact: created, or replaced whole when it holds an artifact
  std::vector<BindingSpec> bindings{1}; ///< never empty, names differ
  std::vector<LossSpec> losses{
      1};                ///< never empty; the sum of all is trained. Of several, each has an id and outputs
  std::string lossInput; ///< empty: the only graph output, or the first floating-point one
  std::vector<std::string> trainOutputs; ///< outputs that the training step gives, too
  std::optional<TeacherSpec> teacher;
  OptimizerSpec optimizer;
  std::vector<GroupSpec> groups;
  NoDecaySpec noDecay;
  std::optional<double> clipNorm, clipValue; ///< > 0
  uint32_t accumulate = 1;                   ///< gradient steps before an update
  bool marksGradients = true;                ///< go where the model says (frontend/GradientMarks.h); no flag
  bool accumulatesLabels = false;            ///< whose mean is over all labels that count, not over steps
  std::vector<NamePattern> train, freeze;    ///< empty `train`: the default rule; freeze wins
  std::vector<double>
      channels; ///< of the tensors that `train` names, in its order: their share; absent: all. The
                ///< first match wins
  std::vector<SparseSpec> sparse; ///< the first match wins
  std::vector<LoraSpec> lora;     ///< the first match wins
  std::optional<BaseSpec> base;   ///< absent: weights beside adapters as the file has them
  bool randomLora = false;        ///< both factors of adapters begin random, so that both have a gradient
  std::vector<QatSpec> qat;       ///< the first match wins
  std::vector<std::string> untie; ///< initializers whose every reader gets its own copy
  std::vector<TieSpec> ties;      ///< initializers that become another one again
  BatchNormSpec batchNorm;
  DropoutSpec dropout;
  AttentionSpec attention;
  std::optional<int64_t> headChunk; ///< rows of logits at a time; 0: all; not given: by their size
  std::optional<LossScaleSpec> lossScale;
  bool gradients = false;                  ///< also the gradients and update entries
  std::vector<std::string> cotangents;     ///< outputs whose gradients the host gives to the entry backward
  std::vector<std::string> inputGradients; ///< inputs whose gradients that entry gives
  std::vector<NamePattern> materialized; ///< trained tensors with gradients of zeros where none reaches them
  BindSpec bind;
  std::optional<uint64_t> memoryBudget; ///< most bytes of the transient region of any entry
  uint32_t maxWorkers = 2;
  std::vector<std::string> targets{"host"}; ///< as given; never empty, no name twice
  std::string ptxas;                        ///< path of NVIDIA's assembler; empty: none
  std::string kernelCache;                  ///< folder of code that LLVM has made before; empty: none
  std::optional<EmitSpec> emit;             ///< absent: the artifact alone
  std::string wasmRuntime;                  ///< path of libortc_wasm.a, for --emit wasm
  ObjectFormat objectFormat = ObjectFormat::Elf;
  std::optional<bool> forSize; ///< small code or fast code; absent: as the target is mostly wanted
  Numerics numerics = Numerics::Fast;
  Precision precision = Precision::F32;
  ParameterStorage parameters = ParameterStorage::F32;
  uint64_t seed = 0;
  bool source = true;      ///< keep the ONNX graph in the artifact
  bool weights = true;     ///< keep initial values of what is trained, and of running statistics
  bool quiet = false;      ///< no summary on stdout
  std::string compileTo;   ///< name of the last phase to run; empty: all
  std::string dumpIr;      ///< folder; empty: none
  std::string dumpBuffers; ///< CSV file; empty: none
  std::string report;      ///< JSON file; empty: none
  GradientMutation mutation;
  UpdateSpecs updateSpecs;
};

/// Whether the artifact computes a loss.
bool hasLoss(const CompileOptions &options);
/// Whether anything is differentiated: the loss, or outputs for cotangents of the host.
bool trains(const CompileOptions &options);
/// Whether the artifact updates parameters: those of a loss, or with an optimizer that was asked for.
bool updates(const CompileOptions &options);

/// The share of a tensor's output channels that is trained, where it is trained: 1 unless `--train` says so.
double channelsOf(const CompileOptions &options, const std::string &tensor);

/// Parsers of the specs. A refusal names the flag's part, the value and what is allowed.
Expected<GroupSpec> parseGroup(std::string_view text);
Expected<NoDecaySpec> parseNoDecay(std::string_view text);
Expected<TieSpec> parseTie(std::string_view text);
Expected<BatchNormSpec> parseBatchNorm(std::string_view text);
std::string describeBatchNorm(const BatchNormSpec &spec);
Expected<DropoutSpec> parseDropout(std::string_view text);
std::string describeDropout(const DropoutSpec &spec);
Expected<Numerics> parseNumerics(std::string_view text);
Expected<Precision> parsePrecision(std::string_view text);
Expected<ParameterStorage> parseParameters(std::string_view text);
Expected<LossScaleSpec> parseLossScale(std::string_view text);
Expected<LoraSpec> parseLora(std::string_view text);
Expected<TrainSpec> parseTrain(std::string_view text);
Expected<SparseSpec> parseSparse(std::string_view text);
Expected<BaseSpec> parseBase(std::string_view text);
Expected<QatSpec> parseQat(std::string_view text);
Expected<EmitSpec> parseEmit(std::string_view text);
Expected<BindSpec> parseBind(std::string_view text);
Expected<ObjectFormat> parseObjectFormat(std::string_view text);
/// `--opt`: true for "size".
Expected<bool> parseOptimization(std::string_view text);
Expected<AttentionSpec> parseAttention(std::string_view text);
/// The type of products' operands: "bf16", "f16", or empty where it is that of the file.
std::string_view narrowType(const CompileOptions &options);
/// "65536", "64KiB", "1.5GB": whole bytes from 1 to 2^60; units of 1000 (kB to PB) and of 1024 (KiB to PiB).
Expected<uint64_t> parseBytes(std::string_view text);

/// Adds the items of one `--shape` flag to the last binding.
Status addShapes(std::string_view text, CompileOptions &options);
/// Handles one `--binding` flag: names the first binding while nothing is bound yet, else starts another one.
Status addBinding(std::string_view name, CompileOptions &options);
/// Handles one `--target` flag; the first one replaces the default.
Status addTarget(std::string_view name, CompileOptions &options, bool &first);

/// What depends on several flags together; called once after all of them.
Status checkOptions(const CompileOptions &options);

/// What names in flags can refer to.
struct KnownNames {
  std::vector<std::string> initializers; ///< what --train and --freeze choose from
  std::vector<std::string> trained;      ///< what --group chooses from
  std::vector<std::string>
      sources; ///< what lists may name, too: parameters that an initializer was computed from
};

/// "'a', 'b', 'c', ...": up to three names, those closest to the text of a pattern first.
std::string listClosest(std::string_view pattern, const std::vector<std::string> &names);

/// A sentence for every --train, --freeze, --group, --sparse and --regularize pattern that matches no name, with the
/// names closest to it: it most likely has a typo. And one for every list, of flags and of `more`, that has names which
/// are not known.
std::vector<std::string> findUnmatchedPatterns(const CompileOptions &options,
                                               const std::vector<NamePattern> &more, const KnownNames &known);

/// Whole-string number parsers that refuse blanks, signs where there are none, and values that do not fit.
bool parseInteger(std::string_view text, int64_t &value);
bool parseUnsigned(std::string_view text, uint64_t &value);
/// Finite numbers only.
bool parseNumber(std::string_view text, double &value);

} // namespace ortc
