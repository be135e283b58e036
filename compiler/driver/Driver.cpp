// From a model file to a written artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only place that knows the order of the phases.
#include "compiler/driver/Driver.h"

#include "compiler/artifact/ArtifactWriter.h"
#include "compiler/autodiff/Differentiate.h"
#include "compiler/driver/ArtifactBuilder.h"
#include "compiler/driver/CheckNames.h"
#include "compiler/driver/FindTargets.h"
#include "compiler/driver/KernelSurvey.h"
#include "compiler/driver/LossFacts.h"
#include "compiler/driver/Manifest.h"
#include "compiler/driver/MemoryReport.h"
#include "compiler/driver/MemoryText.h"
#include "compiler/driver/OutputFolder.h"
#include "compiler/driver/OutputPaths.h"
#include "compiler/driver/Phases.h"
#include "compiler/driver/Progress.h"
#include "compiler/driver/Reports.h"
#include "compiler/driver/SourceModel.h"
#include "compiler/driver/TrainChoices.h"
#include "compiler/driver/TuneKernels.h"
#include "compiler/frontend/Importer.h"
#include "compiler/frontend/SharedInitializers.h"
#include "compiler/frontend/onnx.pb.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/onnx/OnnxDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/TrainDialect.h"
#include "host/data/output_paths.h"
#include "host/text.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/fusion/Passes.h"
#include "passes/import/Passes.h"
#include "passes/memory/Passes.h"
#include "passes/simplify/Passes.h"
#include "passes/train/TrainingProgram.h"
#include "llvm/Support/raw_os_ostream.h"

#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace mlir;

namespace ortc::driver {

namespace {

/// One run of the compiler. Every phase returns false after it has set `error`, with the exit status in `status`.
class Compilation {
public:
  Compilation(const CompileOptions &options, const TuneOptions &tuning,
              const std::function<int(ModuleOp parts)> &then, const PlanOptions *planning = nullptr)
      : options(options), tuning(tuning), then(then), planning(planning), output(options.output),
        progress(options.quiet || (planning && planning->isTrial)) {
    DialectRegistry registry;
    autodiff::registerGradientRules(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                        nn::NnDialect, onnx::OnnxDialect, plan::PlanDialect, train::TrainDialect>();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && error.empty())
        error = nameModel(describe(diagnostic));
      return success();
    });
  }

  int run() {
    started = std::chrono::steady_clock::now();
    using Phase = bool (Compilation::*)();
    const Phase phases[] = {&Compilation::import,  &Compilation::legalizeAll,   &Compilation::simplify,
                            &Compilation::loss,    &Compilation::differentiate, &Compilation::update,
                            &Compilation::entries, &Compilation::fuse,          &Compilation::place,
                            &Compilation::code};
    if (!checkPhase() || !findTargets() || !check(checkPaths(options, listReports(), output)) || !readTuned())
      return report();
    for (size_t i = 0; kPhaseNames[i]; ++i) {
      auto begun = std::chrono::steady_clock::now();
      progress.begin(kPhaseWork[i]);
      if (!(this->*phases[i])())
        return report();
      phaseTimes.push_back(
          {kPhaseNames[i], std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()});
      if (!checkModelFiles())
        return report();
      if (phases[i] != &Compilation::code && !dump(kPhaseNames[i])) // code() does so where it places anew
        return report();
      if (planning && phases[i] == &Compilation::place)
        return showPlan() ? 0 : report();
      if (options.compileTo == kPhaseNames[i]) {
        if (!writeReports())
          return report();
        warn();
        llvm::raw_os_ostream out(std::cout); // whose failure main() finds
        (program->getBody()->empty() ? *source : *program)->print(out);
        return 0;
      }
    }
    if (!write())
      return report();
    return then ? then(*parts) : 0;
  }

  const TrainChoice &getAsked() const { return asked; }
  const std::vector<TrainChoice> &getChoices() const { return choices; }

private:
  /// The message with the node it belongs to.
  static std::string describe(Diagnostic &diagnostic) {
    std::string text;
    if (auto name = diagnostic.getLocation()->findInstanceOf<NameLoc>())
      text = "node '" + name.getName().str() + "': ";
    return text + diagnostic.str();
  }

  /// The message with the file that it is about.
  std::string nameModel(const std::string &message) const {
    return message.find(options.model) == std::string::npos ? options.model + ": " + message : message;
  }

  int report() {
    progress.end();
    if (error.empty())
      error = options.model + ": the compiler failed without a reason; please report this with the model";
    if (!planning || !planning->isTrial)
      std::cerr << "ortc: error: " << host::makeLinesPrintable(error) << "\n";
    return status;
  }

  bool fail(std::string message, int code = 2) {
    error = std::move(message);
    status = code;
    return false;
  }

  bool runPasses(ModuleOp module, llvm::function_ref<void(PassManager &)> build) {
    PassManager passes(&context);
    passes.enableVerifier(true);
    build(passes);
    return succeeded(passes.run(module));
  }

  bool checkPhase() {
    std::string why;
    return driver::checkPhase(options, tuning.measures, why) || fail(why);
  }

  bool fail(const Status &outcome) { return fail(outcome.getMessage(), static_cast<int>(outcome.getCode())); }

  bool check(const Status &outcome) { return outcome.isOk() || fail(outcome); }

  /// What is written besides the artifact.
  std::vector<host::NamedFile> listReports() const {
    return driver::listReports(options, tuning, planning ? planning->page : "");
  }

  bool findTargets() {
    std::string why;
    return driver::findTargets(options, tuning.measures, targets, why) || fail(why);
  }

  bool import() {
    Status outcome = frontend::Model::load(options.model, model);
    if (!outcome.isOk())
      return fail(nameModel(outcome.getMessage()));
    if (!check(checkFiles(options, tuning, listReports(), *model)))
      return false;
    facts.floatValues = countFloatValues(*model);
    frontend::SharingOptions sharing{options.untie, {}};
    for (const TieSpec &tie : options.ties)
      sharing.ties.push_back({tie.copy, tie.original});
    frontend::SharingReport shared;
    outcome = frontend::resolveSharedInitializers(model, sharing, shared);
    if (!outcome.isOk())
      return fail(nameModel(outcome.getMessage()));
    if (trains()) {
      facts.warnings = shared.warnings;
      notes = shared.notes;
      findNameLists();
    }
    written = model;
    if (!exposeLossInput())
      return false;
    auto imported = frontend::importModel(model, context, outcome);
    if (failed(imported))
      return fail(nameModel(outcome.getMessage()));
    source = std::move(*imported);
    program = ModuleOp::create(UnknownLoc::get(&context));
    const auto &proto = model->getProto();
    facts.modelFile = std::filesystem::path(options.model).filename().string();
    facts.modelName = std::filesystem::path(options.model).stem().string();
    facts.producer =
        proto.producer_name() + (proto.producer_version().empty() ? "" : " " + proto.producer_version());
    facts.irVersion = proto.ir_version();
    facts.opset = frontend::opsetOf(proto.opset_import(), "");
    facts.nodes = proto.graph().node_size();
    return runPasses(*source,
                     [](PassManager &passes) { passes.addPass(import::createInlineFunctionsPass()); });
  }

  /// Whether the files that constants are views of are what they were.
  bool checkModelFiles() {
    Status kept = model->checkFiles();
    return kept.isOk() || fail(kept.getMessage(), 1);
  }

  /// What the model's metadata says about what is trained. Flags win.
  void findNameLists() {
    trainable = findNameList(*model, "ortc.trainable");
    frozen = findNameList(*model, "ortc.frozen");
    for (const auto &[list, effect] :
         {std::pair(&trainable, "to be trained"), std::pair(&frozen, "not to be trained")})
      if (*list)
        notes.push_back((*list)->getText() + " names " + std::to_string((*list)->getNames()->size()) +
                        " tensors " + effect + (options.train.empty() ? "" : "; --train decides instead"));
  }

  /// The output, or the value, that the options say the loss is computed from; empty when they do not say.
  const std::string &namedLossInput() const {
    static const std::string none;
    return !options.lossInput.empty()                              ? options.lossInput
           : trains() && options.loss.source == LossSource::Output ? options.loss.output
                                                                   : none;
  }

  /// A value of the graph that is no output becomes one where the loss takes it. What is exported stays as it was.
  bool exposeLossInput() {
    const std::string &name = namedLossInput();
    Status outcome;
    std::shared_ptr<const frontend::Model> edited = exposeValue(*model, name, outcome);
    if (!outcome.isOk())
      return fail(nameModel(outcome.getMessage()));
    if (!edited)
      return true;
    model = std::move(edited);
    notes.push_back("'" + name +
                    "' is no output of the model; the loss takes it all the same, and it is predicted, too");
    return true;
  }

  bool legalizeAll() {
    for (unsigned binding = 0; binding < options.bindings.size(); ++binding) {
      for (legalize::Mode mode : {legalize::Mode::train, legalize::Mode::eval}) {
        if (!trains() && mode == legalize::Mode::train)
          continue;
        legalize::LegalizeOptions legal;
        legal.mode = mode;
        legal.binding = binding;
        legal.shapes = options.bindings[binding].shapes;
        legal.train = options.train;
        legal.freeze = options.freeze;
        legal.trainable = trainable;
        legal.frozen = frozen;
        legal.batchNorm = options.batchNorm;
        legal.dropout = options.dropout;
        legal.seed = options.seed;
        legal.trains = trains();
        legal.float64 = options.precision == Precision::F64;
        if (!namedLossInput().empty())
          legal.lossOutputs = {namedLossInput()};
        legalize::LegalizeReport result;
        if (failed(legalize::legalize(*source, *program, legal, result)))
          return fail(options.model + ": " + result.message());
        if (binding == 0 && (mode == legalize::Mode::train || !trains())) {
          facts.initializers = result.initializers;
          for (auto &[name, elements] : listInnerInitializers(*model))
            facts.initializers.push_back(
                {name, elements, "constant", "it belongs to a branch or a loop body"});
          facts.warnings.insert(facts.warnings.end(), result.warnings.begin(), result.warnings.end());
          notes.insert(notes.end(), result.notes.begin(), result.notes.end());
        }
      }
    }
    nameChecksAfterInputs(*program);
    return !trains() || checkTrained();
  }

  bool trains() const { return options.loss.source != LossSource::None; }

  /// A loss without anything to train is a mistake in the patterns, or in the file.
  bool checkTrained() {
    const legalize::InitializerReport *frozen = nullptr;
    for (const legalize::InitializerReport &item : facts.initializers) {
      if (item.trained())
        return true;
      frozen = frozen ? frozen : &item;
    }
    std::string why = frozen ? "none of its " + std::to_string(facts.initializers.size()) +
                                   " float initialisers is trained ('" + frozen->name +
                                   "': " + frozen->reason + "); change --train or --freeze"
                             : "it has no float initialiser";
    return fail(options.model + ": there is nothing to train: " + why +
                ", or give --loss none for prediction only");
  }

  /// Cleans up and lets transposes meet.
  static void addSimplification(PassManager &passes) {
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
    passes.addNestedPass<func::FuncOp>(simplify::createSinkTransposesPass());
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
  }

  bool simplify() {
    return runPasses(*program, [](PassManager &passes) {
      addSimplification(passes);
      passes.addNestedPass<func::FuncOp>(simplify::createSinkGathersPass());
      passes.addPass(createCanonicalizerPass());
      passes.addPass(simplify::createFoldParameterLayoutsPass());
    });
  }

  bool loss() {
    if (!trains())
      return true;
    if (failed(train::buildLoss(*program, options.loss, options.lossInput)))
      return false;
    describeLoss(*program, facts);
    if (std::string note = tellClassAxis(options.loss, facts); !note.empty())
      notes.push_back(std::move(note));
    if (std::string warning = warnOfProbabilities(*source, model->getProto(), options.loss, facts.lossOutput);
        !warning.empty())
      facts.warnings.push_back(std::move(warning));
    return true;
  }

  bool differentiate() {
    if (trains() && !differentiateTrained())
      return false;
    if (then)
      parts = cast<ModuleOp>((*program)->clone());
    return true;
  }

  bool differentiateTrained() {
    autodiff::DifferentiateOptions how;
    how.mutation = {options.mutation.operation, options.mutation.operand, options.mutation.factor};
    if (failed(train::differentiateLoss(*program, how)))
      return false;
    llvm::StringMap<train::TensorOp> constants;
    for (auto tensor : program->getOps<train::TensorOp>())
      if (tensor.getRole() == train::Role::constant)
        constants[tensor.getName()] = tensor;
    for (legalize::InitializerReport &item : facts.initializers)
      if (train::TensorOp tensor = constants.lookup(item.name); tensor && item.trained()) {
        item.role = "constant";
        item.reason = tensor.getReason().value_or("no gradient reaches it").str();
      }
    warnOfPatterns();
    return checkTrained();
  }

  /// A pattern that matches nothing does nothing, and would do so in silence.
  void warnOfPatterns() {
    std::set<std::string> all = initializerNames(*model);
    KnownNames known{{all.begin(), all.end()}, {}, listSources(*model)};
    for (const legalize::InitializerReport &item : facts.initializers)
      if (item.trained())
        known.trained.push_back(item.name);
    std::vector<NamePattern> lists;
    for (const std::optional<NamePattern> *list : {&trainable, &frozen})
      if (*list)
        lists.push_back(**list);
    for (std::string &sentence : findUnmatchedPatterns(options, lists, known))
      facts.warnings.push_back(std::move(sentence));
  }

  bool update() {
    if (!trains())
      return true;
    train::UpdateOptions update{options.optimizer, options.groups, options.clipNorm, options.clipValue,
                                options.accumulate};
    return succeeded(train::buildUpdate(*program, update));
  }

  bool entries() {
    if (failed(train::composeEntries(*program, {options.gradients})))
      return false;
    return runPasses(*program, [](PassManager &passes) {
      passes.addPass(simplify::createHoistAccumulationsPass());
      addSimplification(passes);
      passes.addPass(createSymbolDCEPass());
    });
  }

  bool fuse() {
    return runPasses(*program, [](PassManager &passes) {
      passes.addPass(simplify::createHoistConstantsPass({/*limit=*/0}));
      passes.addPass(simplify::createContractConvolutionsPass());
      passes.addPass(simplify::createMultiplyByReciprocalsPass());
      passes.addPass(simplify::createFactorSumsPass());
      passes.addPass(simplify::createHoistLayoutsPass());
      passes.addPass(simplify::createGatherInLoopsPass());
      passes.addPass(fusion::createExpandCompositesPass());
      passes.addPass(createCanonicalizerPass());
      passes.addPass(createCSEPass());
      passes.addPass(fusion::createFuseKernelsPass());
    });
  }

  bool place() {
    bool isOutlined = runPasses(*program, [](PassManager &passes) {
      passes.addPass(memory::createAssignRegionsPass());
      passes.addPass(memory::createOutlineKernelsPass());
    });
    if (isOutlined && tuning.measures)
      outlined = cast<ModuleOp>((*program)->clone());
    return isOutlined && placeOutlined();
  }

  bool placeOutlined() {
    const bool isShown = planning && !planning->isTrial;
    if (!survey())
      return false;
    bool isPlaced = runPasses(*program, [&](PassManager &passes) {
      if (isShown || options.memoryBudget)
        passes.addPass(
            memory::createRecomputeStepsPass({options.memoryBudget.value_or(UINT64_MAX), isShown}));
      passes.addPass(memory::createPlaceBuffersPass());
    });
    if (isPlaced)
      kernels = findKernels(*program);
    return isPlaced;
  }

  /// Notes on every kernel what it takes: time on the last target, scratch on the target that needs most.
  bool survey() {
    std::string why;
    for (const cpu::Target &target : targets)
      if (!annotateKernels(*program, target, kernelOptions(target), why))
        return fail(nameModel("code for " + target.name + ": " + why));
    return true;
  }

  /// Known choices, before any work is done.
  bool readTuned() {
    std::string why;
    return tuning.path().empty() || tuned.read(tuning.path(), /*mayBeMissing=*/tuning.measures, why) ||
           fail(why);
  }

  bool code() {
    if (!compileAll())
      return false;
    if (!tuning.measures)
      return true;
    bool isFaster = false;
    std::string why;
    for (const TargetCode &code : codes)
      if (!tuneFor(code, isFaster, why))
        return fail(nameModel("code for " + code.target.name + ": " + why));
    if (!saveTuned()) // now: what was measured is kept, whatever comes of it
      return false;
    if (!isFaster)
      return true;
    // Other kernels take other scratch.
    program = std::move(outlined);
    return placeOutlined() && dump("place") && compileAll();
  }

  bool compileAll() {
    codes.clear();
    for (const cpu::Target &target : targets) {
      std::string why;
      progress.begin("making code for " + target.name +
                     (targets.size() > 1 ? ", " + std::to_string(codes.size() + 1) + " of " +
                                               std::to_string(targets.size()) +
                                               "; --target native makes it for this machine only"
                                         : ""));
      if (!compileKernels(*program, kernels, target, kernelOptions(target), codes.emplace_back(), why))
        return fail(nameModel("code for " + target.name + ": " + why));
    }
    return true;
  }

  KernelOptions kernelOptions(const cpu::Target &target) const {
    KernelOptions how;
    how.numerics = options.numerics == Numerics::Fast ? cpu::Numerics::Fast : cpu::Numerics::Portable;
    how.threads = countProcessors();
    if (!tuning.path().empty())
      how.choices = tuned.choices(describePlace(target, how.numerics));
    return how;
  }

  /// Another run may have written there since it was read.
  bool saveTuned() {
    std::string why;
    return (tuned.read(tuning.path(), /*mayBeMissing=*/true, why) &&
            writeFile(tuning.path(), tuned.write(), why)) ||
           fail(why, 1);
  }

  /// Measures what the cache does not know yet.
  bool tuneFor(const TargetCode &code, bool &isFaster, std::string &why) {
    progress.begin("measuring kernels for " + code.target.name);
    TuneResult result;
    if (!tuneKernels(*program, kernels, code, kernelOptions(code.target), tuned, result, why))
      return false;
    facts.tuned.push_back(code.target.name + ": " + std::to_string(result.faster) + " of " +
                          std::to_string(result.kernels) + " measured kernels are faster cut otherwise (" +
                          std::to_string(result.variants) + " variants)");
    isFaster |= result.faster > 0;
    return true;
  }

  bool dump(StringRef phase) {
    if (options.dumpIr.empty())
      return true;
    size_t number = 0;
    while (phase != kPhaseNames[number])
      ++number;
    std::error_code code;
    std::filesystem::create_directories(options.dumpIr, code);
    std::string path = options.dumpIr + "/" + std::to_string(number) + "-" + phase.str() + ".mlir";
    std::string text, why;
    llvm::raw_string_ostream stream(text);
    OpPrintingFlags flags;
    flags.elideLargeElementsAttrs(64).elideLargeResourceString(64);
    (program->getBody()->empty() ? *source : *program)->print(stream, flags);
    return writeFile(path, text, why) || fail(why, 1);
  }

  /// Figures of the programs, in the order of the artifact's entries. Work is known when there is code.
  void describePrograms() {
    for (auto entry : program->getOps<plan::ProgramOp>()) {
      CompileFacts::EntryFacts fact;
      fact.name = entryName(entry, options);
      fact.memory = describeMemory(entry, options);
      for (auto [number, times] : llvm::enumerate(countCalls(entry, kernels))) {
        fact.steps += times;
        if (codes.empty() || times == 0)
          continue;
        const cpu::KernelInfo &kernel = codes.front().kernels[number];
        fact.flops += times * kernel.flops;
        fact.bytesRead += times * kernel.bytesRead;
        fact.bytesWritten += times * kernel.bytesWritten;
        fact.calls[number] = times;
      }
      facts.entries.push_back(fact);
    }
  }

  /// What --dump-buffers and --report ask for, as far as the phases that ran know it.
  bool writeReports() {
    std::string why;
    if (facts.entries.empty())
      describePrograms();
    if (!options.dumpBuffers.empty() && !writeFile(options.dumpBuffers, makeBufferTable(listPlans()), why))
      return fail(why, 1);
    if (options.report.empty())
      return true;
    if (!codes.empty() && facts.kernels.empty())
      facts.kernels = describeKernels(*program, kernels);
    std::vector<KernelCosts> costs;
    for (const TargetCode &code : codes) {
      costs.emplace_back();
      if (!findCosts(*program, kernels, code, options, costs.back(), why))
        return fail("--report: " + why, 1);
    }
    return writeFile(options.report, makeReport(facts, phaseTimes, codes, costs), why) || fail(why, 1);
  }

  std::vector<MemoryPlan> listPlans() const {
    std::vector<MemoryPlan> plans;
    for (const CompileFacts::EntryFacts &entry : facts.entries)
      plans.push_back(entry.memory);
    return plans;
  }

  /// `ortc plan`: what there is to say without code.
  bool showPlan() {
    describePrograms();
    std::vector<MemoryPlan> plans = listPlans();
    SharedMemory shared = describeShared(*program, options.maxWorkers);
    asked.what = "as asked";
    for (const legalize::InitializerReport &item : facts.initializers)
      if (item.trained())
        asked.tensors.push_back(item.name);
    asked.persistent = shared.persistent;
    asked.constants = shared.constants;
    asked.transient = plans.empty() ? 0 : plans.front().bytes;
    if (planning->isTrial)
      return true;
    if (planning->trainChoices)
      choices = listTrainChoices(model->getProto().graph(), asked.tensors);
    nlohmann::ordered_json report = makePlanReport(facts.modelFile, shared, plans);
    std::string why;
    if ((!options.dumpBuffers.empty() && !writeFile(options.dumpBuffers, makeBufferTable(plans), why)) ||
        (!options.report.empty() && !writeFile(options.report, writePlanReport(report), why)) ||
        (!planning->page.empty() && !writeFile(planning->page, makePlanPage(report), why)))
      return fail(why, 1);
    warn();
    if (!options.quiet)
      std::cout << describePlanReport(report, planning->everyEntry);
    return true;
  }

  void warn() {
    progress.end();
    for (const std::string &note : notes)
      std::cerr << "ortc: note: " << host::makePrintable(note) << "\n";
    for (const std::string &warning : facts.warnings)
      std::cerr << "ortc: warning: " << host::makePrintable(warning) << "\n";
  }

  bool write() {
    progress.begin("writing " + host::makePrintable(options.output));
    artifact::Artifact result;
    std::string why;
    if (!buildArtifact(*program, options, kernels, codes, initializerNames(*model), result, why))
      return fail(nameModel(why));
    describePrograms();
    facts.kernels = describeKernels(*program, kernels);
    describeBatch(*source, options.loss, facts);
    if (options.source && !makeSource(*written, result.tensors, result.source, why))
      return fail(nameModel(why));
    result.manifest = makeManifest(options, facts, result, codes);
    auto bytes = artifact::writeArtifact(result, why);
    if (!bytes)
      return fail(nameModel(why));
    std::string_view contents(reinterpret_cast<const char *>(bytes->data()), bytes->size());
    Status outcome = output.write(contents, result.manifest);
    if (!outcome.isOk())
      return fail(outcome);
    if (!checkModelFiles() || !writeReports())
      return false;
    if (outcome = output.commit(); !outcome.isOk())
      return fail(outcome);
    warn();
    if (!options.quiet) {
      std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
      std::cout << makeSummary(options, facts, result, codes, took.count());
    }
    return true;
  }

  const CompileOptions &options;
  const TuneOptions tuning;
  const std::function<int(ModuleOp parts)> then;
  const PlanOptions *planning; ///< null: an artifact is wanted
  OutputFolder output;
  Progress progress;
  MLIRContext context;
  std::string error;
  int status = 2;
  std::chrono::steady_clock::time_point started;
  std::vector<cpu::Target> targets;
  TuneCache tuned;
  std::shared_ptr<const frontend::Model> model;
  std::shared_ptr<const frontend::Model> written; ///< what `ortc export` gives
  std::optional<NamePattern> trainable, frozen;   ///< of the model's metadata
  OwningOpRef<ModuleOp> source, program;
  OwningOpRef<ModuleOp> outlined; ///< the program before it was placed, where --tune may place it again
  OwningOpRef<ModuleOp> parts;    ///< for `then`
  std::vector<std::string> notes;
  CompileFacts facts;
  TrainChoice asked;                ///< of a plan
  std::vector<TrainChoice> choices; ///< instead of it
  ProgramKernels kernels;
  std::vector<TargetCode> codes;
  std::vector<PhaseTime> phaseTimes;
};

} // namespace

int compile(const CompileOptions &options, const TuneOptions &tuning) {
  return Compilation(options, tuning, nullptr).run();
}

int compile(const CompileOptions &options, const std::function<int(ModuleOp parts)> &then) {
  return Compilation(options, {}, then).run();
}

int plan(const CompileOptions &options, const PlanOptions &planning) {
  CompileOptions placed = options;
  placed.compileTo = "place";
  Compilation compilation(placed, {}, nullptr, &planning);
  int status = compilation.run();
  if (status || !planning.trainChoices)
    return status;
  auto planOne = [](const CompileOptions &changed, TrainChoice &choice) {
    PlanOptions trial;
    trial.isTrial = true;
    Compilation other(changed, {}, nullptr, &trial);
    bool isPlanned = other.run() == 0;
    choice = other.getAsked();
    return isPlanned;
  };
  std::vector<TrainChoice> choices{compilation.getAsked()};
  planChoices(placed, compilation.getChoices(), planOne, choices);
  if (!options.quiet)
    std::cout << describeTrainChoices(choices);
  return 0;
}

} // namespace ortc::driver
