// From a model file to an artifact in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Compile.h"

#include "compiler/driver/LinkedModel.h"

#include "compiler/artifact/ArtifactBuilder.h"
#include "compiler/artifact/ArtifactWriter.h"
#include "compiler/autodiff/Differentiate.h"
#include "compiler/backends/KernelCache.h"
#include "compiler/driver/CheckFamilies.h"
#include "compiler/driver/CheckNames.h"
#include "compiler/driver/FindTargets.h"
#include "compiler/driver/LegalizeOptions.h"
#include "compiler/driver/MakeCode.h"
#include "compiler/driver/MarkChannels.h"
#include "compiler/driver/Phases.h"
#include "compiler/driver/ReadModel.h"
#include "compiler/driver/ShareConstants.h"
#include "compiler/driver/SourceModel.h"
#include "compiler/kernels/SumOrder.h"
#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/Optimizers.h"
#include "compiler/passes/train/Teacher.h"
#include "compiler/passes/train/TrainingProgram.h"
#include "compiler/pipeline/Pipelines.h"
#include "compiler/report/LossFacts.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/onnx/OnnxDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <chrono>

using namespace mlir;

namespace ortc::driver {

static std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  autodiff::registerGradientRules(registry);
  auto context = std::make_unique<MLIRContext>(registry);
  context->loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                       nn::NnDialect, onnx::OnnxDialect, plan::PlanDialect, train::TrainDialect>();
  return context;
}

static Compiled makeCompiled() {
  Compiled compiled;
  compiled.context = makeContext();
  return compiled;
}

std::vector<ModuleOp> Compiled::getIR() {
  std::vector<ModuleOp> result;
  for (FamilyProgram &family : families)
    if (family.ir)
      result.push_back(*family.ir);
  if (result.empty())
    result.push_back(program && !program->getBody()->empty() ? *program : *source);
  return result;
}

namespace {

/// One run of the compiler.
class Compilation {
public:
  /// `form`: of the update that is compiled in place of a model, or null.
  Compilation(const CompileOptions &options, const CompileExtras &extras,
              const train::UpdateForm *form = nullptr)
      : options(options), extras(extras), form(form), compiled(makeCompiled()),
        diagnostics(*compiled.context, options.model) {}

  Expected<Compiled> run();

  /// The table of the phases, in the order in which they run.
  struct Step {
    const char *name; ///< as `--compile-to` and `--dump-ir` have it
    const char *work; ///< what it does, for people who wait
    Status (Compilation::*run)();
  };
  static const Step kSteps[10];

private:
  /// A program that a phase works on, and the limits of its family.
  struct Program {
    ModuleOp ir;
    kernels::TrainingLimits limits;
  };
  kernels::TrainingLimits limitsOf(const FamilyProgram &family) const;
  std::vector<Program> programs();
  void copyForFamilies();

  Status prepare();
  Status runPhase(const Step &phase);
  Status read();
  Status legalizeAll();
  Status legalize(unsigned binding, legalize::Mode mode);
  Status writeUpdates();
  Status simplify();
  Status narrow(bool differentiated);
  Status loss();
  Status differentiate();
  Status update();
  Status entries();
  Status fuse();
  Status place();
  Status code();
  Status checkTrained() const;
  /// Names of the model's initializers.
  std::set<std::string> listInitializers() const;
  void noteConstants();
  void warnOfPatterns();
  void describePrograms();
  report::FamilyFacts describeFamily(FamilyProgram &family) const;
  Status assemble();

  CompileOptions options;
  const CompileExtras &extras;
  const train::UpdateForm *const form;
  Compiled compiled; ///< its model is null where an update is compiled
  Diagnostics diagnostics;
  ModelFacts model;
  tuning::TuneCache tuned;
  std::unique_ptr<backends::KernelCache> cache; ///< null: none
  std::vector<CodeMaker> codeMakers;            ///< one for each family
};

const Compilation::Step Compilation::kSteps[] = {
    {"import", "reading the model", &Compilation::read},
    {"legalize", "legalizing the graph", &Compilation::legalizeAll},
    {"simplify", "simplifying", &Compilation::simplify},
    {"loss", "adding the loss", &Compilation::loss},
    {"differentiate", "differentiating", &Compilation::differentiate},
    {"update", "adding the optimizer", &Compilation::update},
    {"entries", "composing the entries", &Compilation::entries},
    {"fuse", "fusing kernels", &Compilation::fuse},
    {"place", "ordering the steps and placing their buffers", &Compilation::place},
    {"code", "linking the code", &Compilation::code}};

} // namespace

size_t findPhase(StringRef name) {
  return llvm::find_if(Compilation::kSteps, [&](const auto &step) { return name == step.name; }) -
         std::begin(Compilation::kSteps);
}

const char *describePhase(StringRef name) { return Compilation::kSteps[findPhase(name)].work; }

/// The phase must not end before what else is asked for.
static Status checkPhase(const CompileOptions &options, const TuneOptions &tuning) {
  if (options.compileTo.empty())
    return Status();
  size_t last = findPhase(options.compileTo);
  if (last == std::size(Compilation::kSteps)) {
    std::string known;
    for (const auto &step : Compilation::kSteps)
      known += (known.empty() ? "" : ", ") + std::string(step.name);
    return Status::refusal("--compile-to '" + options.compileTo + "' is not a phase; phases are " + known);
  }
  if (tuning.measures && last < findPhase("code"))
    return Status::refusal("--tune measures code, and --compile-to " + options.compileTo + " ends before it");
  if (!options.dumpBuffers.empty() && last < findPhase("place"))
    return Status::refusal("--dump-buffers shows the memory plan, and --compile-to " + options.compileTo +
                           " ends before it; compile to place or further");
  return Status();
}

Status checkRequest(const CompileOptions &options, const CompileExtras &extras) {
  ORTC_TRY(checkPhase(options, extras.tuning));
  return findTargets(options, extras.tuning.measures, extras.families).getStatus();
}

/// Whether the files that constants are views of are what they were.
static Status checkModelFiles(const Compiled &compiled) {
  if (!compiled.model) // an update has none
    return Status();
  Status kept = compiled.model->checkFiles();
  return kept.isOk() ? kept : Status::failure(kept.getMessage());
}

Status Compilation::runPhase(const Step &phase) {
  auto begun = std::chrono::steady_clock::now();
  extras.progress(phase.work);
  ORTC_TRY((this->*phase.run)());
  compiled.phases.push_back(
      {phase.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()});
  ORTC_TRY(checkModelFiles(compiled));
  if (!compiled.families.front().ir)
    return extras.afterPhase(phase.name, "", compiled.getIR().front());
  for (FamilyProgram &family : compiled.families)
    ORTC_TRY(extras.afterPhase(phase.name, family.name, *family.ir));
  return Status();
}

/// Finds the targets, and reads the choices that are known: before any work is done.
Status Compilation::prepare() {
  ORTC_TRY(checkPhase(options, extras.tuning));
  Expected<std::vector<FamilyTargets>> found = findTargets(options, extras.tuning.measures, extras.families);
  if (!found)
    return found.getStatus();
  for (FamilyTargets &family : *found) {
    if ((options.bind.parameters || options.bind.gradients) && family.backend->getName() != "cpu")
      return Status::refusal("--bind is for processors: a GPU keeps tensors in its own memory; leave it out");
    std::string name = found->size() > 1 ? family.backend->getName().str() : "";
    std::string suffix = compiled.families.empty() ? "" : "@" + name;
    compiled.families.push_back({std::move(family), std::move(name), std::move(suffix), {}, {}, {}});
  }
  if (!options.kernelCache.empty())
    ORTC_TRY(backends::KernelCache::open(options.kernelCache).moveTo(cache));
  const kernels::ProgramKernels *before = nullptr;
  for (FamilyProgram &family : compiled.families) {
    codeMakers.emplace_back(options, extras, diagnostics, family, before, compiled.facts, tuned, cache.get());
    before = &family.kernels;
  }
  std::string path = extras.tuning.path();
  return path.empty() ? Status() : tuned.read(path, /*mayBeMissing=*/extras.tuning.measures);
}

kernels::TrainingLimits Compilation::limitsOf(const FamilyProgram &family) const {
  auto limits = family.family.backend->trainingLimits(options.memoryBudget.has_value());
  int64_t parts = family.family.attentionParts(options);
  limits.attentionDepth = narrowType(options).empty() ? parts / kernels::kWideParts : parts;
  return limits;
}

/// That of each family where families have their own, else the only one.
std::vector<Compilation::Program> Compilation::programs() {
  std::vector<Program> all;
  for (FamilyProgram &family : compiled.families)
    if (family.ir)
      all.push_back({*family.ir, limitsOf(family)});
  if (all.empty())
    all.push_back({*compiled.program, limitsOf(compiled.families.front())});
  return all;
}

/// Every family takes a copy of the program, and the last one the program itself.
void Compilation::copyForFamilies() {
  for (FamilyProgram &family : compiled.families)
    if (&family != &compiled.families.back())
      family.ir = cast<ModuleOp>((*compiled.program)->clone());
  compiled.families.back().ir = std::move(compiled.program);
}

Status Compilation::read() {
  if (!form)
    return readModel(options, diagnostics, extras.afterReading, compiled, model);
  Location loc = UnknownLoc::get(compiled.context.get());
  compiled.source = ModuleOp::create(loc);
  compiled.program = ModuleOp::create(loc);
  compiled.facts.modelName = options.optimizer.name;
  return Status();
}

/// The functions that legalisation makes of a model.
Status Compilation::writeUpdates() {
  for (auto [number, binding] : llvm::enumerate(options.bindings)) {
    const std::vector<int64_t> &shape = binding.shapes.empty() ? form->shape : binding.shapes.front().dims;
    ORTC_TRY(diagnostics.check(train::buildUpdateProgram(*compiled.program, options.optimizer, *form, shape,
                                                         static_cast<int64_t>(number))));
  }
  return Status();
}

Status Compilation::legalizeAll() {
  if (form)
    return writeUpdates();
  for (unsigned binding = 0; binding < options.bindings.size(); ++binding)
    for (legalize::Mode mode : {legalize::Mode::train, legalize::Mode::eval})
      if (trains(options) || mode == legalize::Mode::eval)
        ORTC_TRY(legalize(binding, mode));
  nameChecksAfterInputs(*compiled.program);
  return checkTrained();
}

Status Compilation::legalize(unsigned binding, legalize::Mode mode) {
  legalize::LegalizeReport result;
  if (failed(legalize::legalize(*compiled.source, *compiled.program,
                                makeLegalizeOptions(options, model, binding, mode), result)))
    return Status::refusal(options.model + ": " + result.message());
  for (std::string &name : result.wideMasks)
    if (!llvm::is_contained(compiled.facts.wideMasks, name))
      compiled.facts.wideMasks.push_back(std::move(name));
  if (binding > 0 || (mode == legalize::Mode::eval && trains(options)))
    return Status(); // everything was said the first time
  report::CompileFacts &facts = compiled.facts;
  facts.initializers = result.initializers;
  for (auto &[name, elements] : listInnerInitializers(*compiled.model))
    facts.initializers.push_back({name, elements, "constant", "it belongs to a branch or a loop body"});
  facts.warnings.insert(facts.warnings.end(), result.warnings.begin(), result.warnings.end());
  compiled.notes.insert(compiled.notes.end(), result.notes.begin(), result.notes.end());
  return Status();
}

/// Families whose limits differ have programs of their own from attention on.
Status Compilation::simplify() {
  if (options.bind.parameters && !options.bind.strided) // before layouts are chosen
    train::bindParameters(*compiled.program, initializerNames(*compiled.model));
  train::markSparseTables(*compiled.program, options.sparse);
  Expected<std::map<std::string, int64_t>> channels =
      markChannels(*compiled.source, *compiled.program, options);
  if (!channels)
    return Status::refusal(options.model + ": " + channels.getStatus().getMessage());
  compiled.facts.trainedInPart = std::move(*channels);
  ORTC_TRY(diagnostics.run(*compiled.program, pipeline::buildSimplify));
  if (llvm::any_of(compiled.families, [&](const FamilyProgram &family) {
        return !(limitsOf(family) == limitsOf(compiled.families.front()));
      }))
    copyForFamilies();
  for (const auto &[ir, limits] : programs())
    ORTC_TRY(diagnostics.run(ir, [&](OpPassManager &passes) {
      pipeline::buildAttention(passes, options.attention.least, options.attention.rows, limits);
    }));
  return narrow(/*differentiated=*/false);
}

Status Compilation::narrow(bool differentiated) {
  if (narrowType(options).empty())
    return Status();
  for (const Program &program : programs())
    ORTC_TRY(diagnostics.run(program.ir, [&](OpPassManager &passes) {
      pipeline::buildNarrow(passes, narrowType(options), differentiated);
    }));
  return Status();
}

/// A loss without anything to train is a mistake in the patterns, or in the file; gradients of inputs alone are none.
Status Compilation::checkTrained() const {
  if (!trains(options) || !options.inputGradients.empty())
    return Status();
  const legalize::InitializerReport *frozen = nullptr;
  for (const legalize::InitializerReport &item : compiled.facts.initializers) {
    if (item.trained())
      return Status();
    frozen = frozen ? frozen : &item;
  }
  std::string why = frozen ? "none of its " + std::to_string(compiled.facts.initializers.size()) +
                                 " float initializers is trained ('" + frozen->name + "': " + frozen->reason +
                                 "); change --train or --freeze"
                           : "it has no float initializer";
  return Status::refusal(options.model + ": there is nothing to train: " + why +
                         ", or give --loss none for prediction only");
}

Status Compiled::writeFile(artifact::ByteSink &sink) const {
  const Status written = artifact::writeArtifact(artifact, sink);
  ORTC_TRY(checkModelFiles(*this)); // bytes of a file that was cut cannot be written
  return written.getCode() == ExitCode::Refused
             ? Status::refusal(facts.modelFile + ": " + written.getMessage())
             : written;
}

Status Compiled::writeTo(artifact::OutputFolder &folder) const {
  return folder.write([this](artifact::ByteSink &sink) { return writeFile(sink); }, artifact.manifest,
                      linked);
}

std::set<std::string> Compilation::listInitializers() const {
  return form ? std::set<std::string>() : initializerNames(*compiled.model);
}

Status Compilation::loss() {
  if (!hasLoss(options))
    return Status();
  for (const Program &program : programs())
    ORTC_TRY(diagnostics.check(
        train::buildLoss(program.ir, options.losses, options.lossInput, options.accumulatesLabels)));
  report::CompileFacts &facts = compiled.facts;
  report::describeLosses(programs().front().ir, options.losses, facts);
  for (auto [loss, fact] : llvm::zip_equal(options.losses, facts.losses)) {
    if (std::string note = report::tellClassAxis(loss, fact); !note.empty())
      compiled.notes.push_back(std::move(note));
    if (std::string warning =
            report::warnOfProbabilities(*compiled.source, compiled.model->getProto(), loss, fact.output);
        !warning.empty())
      facts.warnings.push_back(std::move(warning));
  }
  return Status();
}

Status Compilation::differentiate() {
  if (trains(options)) {
    autodiff::DifferentiateOptions how;
    how.mutation = {options.mutation.operation, options.mutation.operand, options.mutation.factor};
    for (const auto &[ir, limits] : programs()) {
      ORTC_TRY(diagnostics.check(
          hasLoss(options)
              ? train::differentiateLoss(ir, how,
                                         {options.lossScale, options.headChunk, options.trainOutputs,
                                          options.materialized, limits.chunkBytes})
              : train::differentiateOutputs(
                    ir, {options.cotangents, options.inputGradients, options.materialized}, how)));
      if (!compiled.facts.trainedInPart.empty())
        ORTC_TRY(diagnostics.run(ir, pipeline::buildRaise));
    }
    noteConstants();
    warnOfPatterns();
    ORTC_TRY(checkTrained());
    if (options.precision == Precision::F16 && !options.lossScale)
      compiled.facts.warnings.push_back("float16 has no numbers below 6e-8, and small gradients become zero; "
                                        "--loss-scale dynamic keeps them");
  }
  ORTC_TRY(narrow(/*differentiated=*/true));
  if (extras.keepsParts)
    compiled.parts = cast<ModuleOp>(programs().front().ir->clone());
  return Status();
}

/// What no gradient reaches is trained no more.
void Compilation::noteConstants() {
  llvm::StringMap<train::TensorOp> constants;
  for (auto tensor : programs().front().ir.getOps<train::TensorOp>())
    if (tensor.getRole() == train::Role::constant)
      constants[tensor.getName()] = tensor;
  for (legalize::InitializerReport &item : compiled.facts.initializers)
    if (train::TensorOp tensor = constants.lookup(item.name); tensor && item.trained()) {
      item.role = "constant";
      item.reason = tensor.getReason().value_or("no gradient reaches it").str();
    }
}

/// A pattern that matches nothing does nothing, and would do so in silence.
void Compilation::warnOfPatterns() {
  std::set<std::string> all = initializerNames(*compiled.model);
  KnownNames known{{all.begin(), all.end()}, {}, listSources(*compiled.model)};
  for (const legalize::InitializerReport &item : compiled.facts.initializers)
    if (item.trained())
      known.trained.push_back(item.name);
  std::vector<NamePattern> lists;
  for (const std::optional<NamePattern> *list : {&model.trainable, &model.frozen})
    if (*list)
      lists.push_back(**list);
  for (std::string &sentence : findUnmatchedPatterns(options, lists, known))
    compiled.facts.warnings.push_back(std::move(sentence));
}

Status Compilation::update() {
  if (!updates(options))
    return Status();
  train::UpdateOptions update{options.optimizer, options.groups,     options.sparse,    options.clipNorm,
                              options.clipValue, options.accumulate, options.lossScale, options.updateSpecs};
  if (options.parameters == ParameterStorage::BF16Stochastic)
    update.roundingSeed = options.seed;
  update.noDecay = options.noDecay;
  update.accumulatesLabels = options.accumulatesLabels;
  update.flushesState = !denormalsAreZero(options.numerics);
  for (const Program &program : programs()) {
    ORTC_TRY(diagnostics.check(train::checkSparseGradients(program.ir)));
    if (options.parameters != ParameterStorage::F32)
      ORTC_TRY(diagnostics.check(train::narrowParameters(program.ir)));
    ORTC_TRY(diagnostics.check(train::buildUpdate(program.ir, update)));
  }
  return Status();
}

Status Compilation::entries() {
  std::vector<ModuleOp> modules;
  for (const Program &program : programs())
    modules.push_back(program.ir);
  for (ModuleOp module : modules) {
    if (!options.weights)
      train::dropWeights(module, initializerNames(*compiled.model));
    if (options.bind.parameters && options.bind.strided)
      train::bindParameters(module, initializerNames(*compiled.model));
    ORTC_TRY(diagnostics.check(
        train::composeEntries(module, {options.gradients, !options.cotangents.empty(), options.bind.gradients,
                                       options.teacher ? train::teacherName(options.teacher->output) : ""})));
    ORTC_TRY(diagnostics.check(train::updateRows(module)));
  }
  const llvm::StringSet<> known = listTensors(modules.front());
  for (ModuleOp module : modules)
    ORTC_TRY(diagnostics.run(module, pipeline::buildEntries));
  shareConstants(modules, known);
  for (ModuleOp module : modules)
    ORTC_TRY(diagnostics.run(module, pipeline::buildRegions));
  return Status();
}

Status Compilation::fuse() {
  if (!compiled.families.front().ir)
    copyForFamilies();
  for (CodeMaker &maker : codeMakers)
    ORTC_TRY(maker.fuse());
  return Status();
}

/// What one family can do with a memory budget, another may not: each that is refused says what it needs.
Status Compilation::place() {
  std::string refused;
  for (auto [maker, family] : llvm::zip_equal(codeMakers, compiled.families)) {
    Status placed = maker.place();
    if (placed.isOk())
      continue;
    if (family.name.empty() || placed.getCode() != ExitCode::Refused)
      return placed;
    llvm::StringRef message = placed.getMessage();
    message.consume_front(options.model + ": ");
    refused += (refused.empty() ? "" : "; ") + family.name + " targets: " + message.str();
  }
  if (!refused.empty())
    return Status::refusal(options.model + ": " + refused);
  const FamilyProgram &first = compiled.families.front();
  for (const FamilyProgram &family : llvm::drop_begin(compiled.families))
    if (Status same = checkFamily(*first.ir, *family.ir, family.name); !same.isOk())
      return Status::failure(options.model + ": " + same.getMessage());
  return Status();
}

Status Compilation::code() {
  for (CodeMaker &maker : codeMakers)
    ORTC_TRY(maker.code());
  if (std::string problem = cache ? cache->getProblem() : ""; !problem.empty())
    compiled.notes.push_back(std::move(problem));
  return Status();
}

/// Figures of the programs.
void Compilation::describePrograms() {
  for (FamilyProgram &family : compiled.families)
    if (family.ir)
      compiled.facts.families.push_back(describeFamily(family));
}

report::FamilyFacts Compilation::describeFamily(FamilyProgram &family) const {
  report::FamilyFacts facts;
  facts.name = family.name;
  for (const auto &code : family.codes)
    facts.codes.push_back(code.get());
  for (auto entry : family.ir->getOps<plan::ProgramOp>()) {
    report::EntryFacts &fact = facts.entries.emplace_back();
    fact.name = report::entryName(entry, options) + family.entrySuffix;
    fact.memory = report::describeMemory(entry, fact.name);
    for (auto [number, times] : llvm::enumerate(kernels::countCalls(entry, family.kernels))) {
      fact.steps += times;
      if (times == 0)
        continue;
      const kernels::KernelWork &work = family.kernels.works[number];
      fact.flops += times * work.flops;
      fact.bytesRead += times * work.bytesRead;
      fact.bytesWritten += times * work.bytesWritten;
      fact.calls[number] = times;
    }
  }
  if (!family.codes.empty())
    facts.kernels = report::describeKernels(*family.ir, family.kernels);
  return facts;
}

/// The artifact as the file has it.
Status Compilation::assemble() {
  artifact::Artifact &result = compiled.artifact;
  std::vector<artifact::PlacedProgram> programs;
  for (FamilyProgram &family : compiled.families) {
    artifact::PlacedProgram &program = programs.emplace_back(*family.ir, family.kernels, family.entrySuffix);
    for (const auto &code : family.codes)
      program.codes.push_back(code->section);
  }
  ORTC_TRY(diagnostics.check(artifact::buildArtifact(programs, options, listInitializers()).moveTo(result)));
  if (!form)
    report::describeBatch(*compiled.source, options.losses, compiled.facts);
  if (options.source && options.weights)
    ORTC_TRY(
        diagnostics.check(makeSource(*model.written, result.tensors, model.packed).moveTo(result.source)));
  result.manifest = report::makeManifest(options, compiled.facts, result);
  if (options.emit)
    ORTC_TRY(diagnostics.check(makeLinked(options, compiled)));
  return checkModelFiles(compiled);
}

Expected<Compiled> Compilation::run() {
  auto runAll = [&]() -> Status {
    ORTC_TRY(prepare());
    for (const Step &phase : kSteps) {
      ORTC_TRY(runPhase(phase));
      if (options.compileTo == phase.name)
        break;
    }
    describePrograms();
    if (!options.compileTo.empty())
      return Status();
    extras.progress("writing the artifact");
    return assemble();
  };
  if (Status outcome = runAll(); !outcome.isOk())
    return outcome;
  return std::move(compiled);
}

Expected<Compiled> compile(const CompileOptions &options, const CompileExtras &extras) {
  ORTC_TRY(train::checkGroups(options));
  return Compilation(options, extras).run();
}

Expected<Compiled> compileUpdate(const CompileOptions &options, const train::UpdateForm &form,
                                 const CompileExtras &extras) {
  ORTC_TRY(train::checkUpdateForm(options.optimizer, form));
  CompileOptions update;
  update.model = "optimizer '" + options.optimizer.name + "'"; // as messages call it
  ORTC_TRY(train::parseLoss("none").moveTo(update.losses.front()));
  update.optimizer = options.optimizer;
  update.maxWorkers = options.maxWorkers;
  update.targets = options.targets;
  update.numerics = options.numerics;
  update.kernelCache = options.kernelCache;
  update.compileTo = options.compileTo;
  update.precision = form.isDouble ? Precision::F64 : Precision::F32;
  update.source = false;
  if (form.shape.empty())
    update.bindings.clear();
  for (int64_t piece :
       form.shape.empty() ? train::listPieces(options.optimizer, form) : std::vector<int64_t>())
    update.bindings.push_back({"n" + std::to_string(piece), {{"elements", {piece}}}});
  return Compilation(update, extras, &form).run();
}

} // namespace ortc::driver
