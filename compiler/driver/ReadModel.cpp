// The phase `import`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/ReadModel.h"

#include "compiler/driver/SourceModel.h"
#include "compiler/frontend/FakeQuantizers.h"
#include "compiler/frontend/GradientMarks.h"
#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/Importer.h"
#include "compiler/frontend/InferenceForm.h"
#include "compiler/frontend/LoraAdapters.h"
#include "compiler/frontend/SharedInitializers.h"
#include "compiler/frontend/TeacherModel.h"
#include "compiler/frontend/TracedMarks.h"
#include "compiler/frontend/onnx.pb.h"
#include "compiler/passes/train/Teacher.h"
#include "compiler/pipeline/Pipelines.h"
#include "support/Lists.h"
#include "support/Plural.h"

#include <algorithm>
#include <filesystem>

using namespace mlir;

namespace ortc::driver {

std::vector<std::string> namedLossInputs(const CompileOptions &options) {
  std::vector<std::string> names;
  auto add = [&](const std::string &name) {
    if (!name.empty() && !llvm::is_contained(names, name))
      names.push_back(name);
  };
  add(options.lossInput);
  for (const LossSpec &loss : options.losses)
    llvm::for_each(loss.outputs, add);
  return names;
}

/// What the model's metadata says about what is trained. Flags win.
static void findNameLists(const CompileOptions &options, Compiled &compiled, ModelFacts &facts) {
  facts.trainable = findNameList(*compiled.model, "ortc.trainable");
  facts.frozen = findNameList(*compiled.model, "ortc.frozen");
  for (const auto &[list, effect] :
       {std::pair(&facts.trainable, "to be trained"), std::pair(&facts.frozen, "not to be trained")})
    if (*list)
      compiled.notes.push_back((*list)->getText() + " names " +
                               formatCount(int64_t((*list)->getNames()->size()), "tensor") + " " + effect +
                               (options.train.empty() ? "" : "; --train decides instead"));
}

/// Where the model's metadata, and the exporter's notes, say that gradients go otherwise than operators say.
static Status findMarks(const frontend::Model &model, bool marksGradients, Compiled &compiled,
                        ModelFacts &facts, frontend::GradientMarks &marks) {
  frontend::MarkReport report;
  std::vector<std::string> named, traced;
  ORTC_TRY(frontend::readGradientMarks(model, marks, named, report));
  frontend::readTracedMarks(model, marks, traced, report);
  if (!marksGradients) {
    if (!marks.isEmpty() || !named.empty() || !traced.empty())
      compiled.notes.push_back(
          "detached values, padding rows and straight-through gradients of the model are left "
          "out: differences of losses do not show them");
    marks = {};
    return Status();
  }
  if (!named.empty())
    facts.detached.push_back(NamePattern::list(std::move(named), "ortc.detached of the model"));
  if (!traced.empty())
    facts.detached.push_back(NamePattern::list(std::move(traced), "detach() in the exported program"));
  compiled.facts.detached = std::move(report.detached);
  compiled.facts.paddingRows = marks.padding;
  compiled.facts.straightThrough = marks.straightThrough;
  compiled.notes.insert(compiled.notes.end(), report.notes.begin(), report.notes.end());
  auto &warnings = compiled.facts.warnings;
  warnings.insert(warnings.end(), report.warnings.begin(), report.warnings.end());
  return Status();
}

/// A value of the graph that is no output becomes one where a loss takes it. What is exported stays as it was.
static Status exposeLossInputs(const CompileOptions &options, Compiled &compiled) {
  for (const std::string &name : namedLossInputs(options)) {
    auto edited = exposeValue(*compiled.model, name);
    if (!edited)
      return edited.getStatus();
    if (!*edited)
      continue;
    compiled.model = std::move(*edited);
    compiled.notes.push_back(
        "'" + name + "' is no output of the model; the loss takes it all the same, and it is predicted, too");
  }
  return Status();
}

/// Puts the adapters of --lora in. What is exported stays the model without them: they are merged into its weights.
static Status addAdapters(const CompileOptions &options, Compiled &compiled, ModelFacts &facts) {
  if (options.lora.empty())
    return Status();
  std::vector<frontend::LoraSettings> settings;
  for (const LoraSpec &spec : options.lora)
    settings.push_back({spec.rank, spec.getScale(), spec.dropout, "--lora " + spec.text, options.randomLora});
  auto choose = [&](const std::string &name) {
    auto found =
        llvm::find_if(options.lora, [&](const LoraSpec &spec) { return spec.pattern.matches(name); });
    return found == options.lora.end() ? -1 : static_cast<int>(found - options.lora.begin());
  };
  auto &adapters = compiled.facts.adapters;
  ORTC_TRY(frontend::addLoraAdapters(compiled.model, settings, choose, options.seed, adapters));
  std::vector<std::string> factors;
  for (const frontend::LoraAdapter &adapter : adapters)
    factors.insert(factors.end(), {adapter.a, adapter.b});
  for (const std::string &name : factors)
    for (const NamePattern &pattern : options.freeze)
      if (pattern.matches(name))
        return Status::refusal("--freeze " + pattern.getText() + ": '" + name +
                               "' is a factor of --lora, and adapters are trained whole");
  facts.adapters = NamePattern::list(factors, "--lora");
  compiled.facts.floatValues = countFloatValues(*compiled.model);
  auto names = [](const std::vector<NamePattern> &patterns, const std::string &name) {
    return llvm::any_of(patterns, [&](const NamePattern &pattern) { return pattern.matches(name); });
  };
  std::vector<std::string> trained, withoutDropout;
  for (const frontend::LoraAdapter &adapter : adapters) {
    if (names(options.train, adapter.weight) && !names(options.freeze, adapter.weight))
      trained.push_back(adapter.weight);
    if (adapter.kind == frontend::LoraKind::embedding && settings[adapter.setting].dropout > 0)
      withoutDropout.push_back(adapter.weight);
  }
  compiled.notes.push_back(
      std::to_string(adapters.size()) + (adapters.size() == 1 ? " adapter is" : " adapters are") +
      " trained; the weights beside them stay as they are" +
      (trained.empty() ? "" : ", but for " + quoteSome(trained, 4) + ", as --train says"));
  if (!withoutDropout.empty())
    compiled.notes.push_back("the dropout of --lora is not for embeddings: " + quoteSome(withoutDropout, 4) +
                             (withoutDropout.size() == 1 ? " has" : " have") + " none");
  return Status();
}

/// Stores the weights beside adapters as integers.
static Status quantizeBase(const CompileOptions &options, Compiled &compiled, ModelFacts &facts) {
  if (!options.base)
    return Status();
  std::string flag = "--base " + options.base->text;
  for (const frontend::LoraAdapter &adapter : compiled.facts.adapters)
    for (const NamePattern &pattern : options.train)
      if (pattern.matches(adapter.weight))
        return Status::refusal(flag + ": '" + adapter.weight + "' is trained, as --train " +
                               pattern.getText() +
                               " names it, and integers are not; leave it out of --train or of --lora");
  ORTC_TRY(frontend::packBase(*compiled.model, compiled.facts.adapters,
                              {options.base->bits, options.base->block}, flag, facts.packed));
  for (frontend::LoraAdapter &adapter : compiled.facts.adapters) {
    const frontend::PackedWeight &packed = *facts.packed.at(adapter.weight);
    adapter.quantized = packed.quantized;
    adapter.quantizedScale = packed.scale;
  }
  compiled.notes.push_back("weights beside adapters are stored as integers of " +
                           formatCount(options.base->bits, "bit") + " with a scale for " +
                           formatCount(options.base->block, "number"));
  return Status();
}

/// Nothing that --qat names is a weight of a layer.
static Status refuseUnusedQat(const QatSpec &spec, const frontend::Model &model,
                              const std::vector<std::string> &others) {
  std::set<std::string> names = initializerNames(model);
  std::vector<std::string> all(names.begin(), names.end()), matched;
  for (const std::string &name : others)
    if (spec.pattern.matches(name))
      matched.push_back(name);
  std::string begin = "--qat " + spec.text + ": ";
  if (!matched.empty())
    return Status::refusal(begin + quoteSome(matched, 4) +
                           ": no MatMul, Gemm, Conv or ConvTranspose of the main graph computes with it");
  return Status::refusal(
      begin +
      "no initializer has a name that it matches whole; an earlier --qat may take those that do, "
      "or they are tied to equal ones (--untie NAME)" +
      (all.empty() ? "" : "; closest: " + listClosest(spec.pattern.getText(), all)));
}

/// Puts the quantisers of --qat in. The artifact keeps them: `ortc export` turns them into those of the standard.
static Status addQuantizers(const CompileOptions &options, Compiled &compiled, ModelFacts &facts) {
  if (options.qat.empty())
    return Status();
  std::vector<frontend::QuantizerSettings> settings;
  for (const QatSpec &spec : options.qat)
    settings.push_back({spec.bits, spec.isPerChannel, spec.isAveraged, spec.averaging,
                        spec.isLearned ? std::max<int64_t>(spec.observedSteps, 1) : spec.observedSteps,
                        spec.isLearned, "--qat " + spec.text});
  auto choose = [&](const std::string &name) {
    auto found = llvm::find_if(options.qat, [&](const QatSpec &spec) { return spec.pattern.matches(name); });
    return found == options.qat.end() ? -1 : static_cast<int>(found - options.qat.begin());
  };
  std::shared_ptr<const frontend::Model> plain = compiled.model;
  frontend::QuantizerReport report;
  ORTC_TRY(frontend::addFakeQuantizers(compiled.model, settings, choose, report));
  std::vector<size_t> uses(settings.size());
  std::vector<std::string> scales;
  size_t weights = 0;
  for (const frontend::FakeQuantizer &quantizer : report.quantizers) {
    ++uses[quantizer.setting];
    weights += quantizer.isWeight;
    if (!quantizer.scaleOffset.empty())
      scales.push_back(quantizer.scaleOffset);
  }
  for (size_t i = 0; i < uses.size(); ++i)
    if (!uses[i])
      return refuseUnusedQat(options.qat[i], *plain, report.others);
  if (!scales.empty())
    facts.scales = NamePattern::list(scales, "--qat");
  size_t values = report.quantizers.size() - weights;
  compiled.notes.push_back(formatCount(weights, "weight") + " and " + formatCount(values, "value") +
                           " that " + (weights == 1 ? "its layer reads" : "their layers read") +
                           " are quantised");
  if (!report.others.empty())
    compiled.notes.push_back(
        quoteSome(report.others, 4) + (report.others.size() == 1 ? " is" : " are") +
        " named by --qat but not quantised, as no MatMul, Gemm, Conv or ConvTranspose of the "
        "main graph computes with " +
        (report.others.size() == 1 ? "it" : "them"));
  compiled.facts.quantizers = std::move(report.quantizers);
  return Status();
}

/// Finds the masks that the graph draws itself, and says what becomes of what it draws. The exported model stays the
/// model without a trace of it: `ortc export` finds them again.
static Status findMasks(const CompileOptions &options, Compiled &compiled) {
  if (!options.dropout.findsMasks)
    return Status();
  frontend::InferenceReport found;
  ORTC_TRY(frontend::separateMasks(compiled.model, found));
  if (size_t count = found.masks.size())
    compiled.notes.push_back(
        (count == 1 ? "a mask that the graph draws itself is dropout: "
                    : std::to_string(count) + " masks that the graph draws itself are dropout: ") +
        quoteSome(found.masks, 4) + "; evaluation, prediction and `ortc export` are without");
  if (size_t count = found.unscaled.size())
    compiled.notes.push_back(quoteSome(found.unscaled, 4) +
                             (count == 1 ? " is taken for dropout although its mask has"
                                         : " are taken for dropout although their masks have") +
                             " no scale, as stochastic depth may have none; --dropout " +
                             describeDropout({options.dropout.mode, false}) +
                             " draws them in evaluation, too");
  if (size_t count = found.random.size())
    compiled.facts.warnings.push_back(joinSome(found.random, 4) + (count == 1 ? " draws" : " draw") +
                                      " random numbers in evaluation, prediction and exported models as in "
                                      "training: what they are for is no dropout, and "
                                      "the file does not say what the model does without them; where it "
                                      "draws none in evaluation mode, compile a file of "
                                      "that mode (--loss none) and load the checkpoint there");
  return Status();
}

/// Puts the teacher beside the model, as constants. What is exported stays the model without it.
static Status addTeacher(const CompileOptions &options, const Diagnostics &diagnostics, Compiled &compiled,
                         ModelFacts &facts) {
  if (!options.teacher)
    return Status();
  std::shared_ptr<const frontend::Model> teacher;
  if (Status loaded = frontend::Model::load(options.teacher->file, teacher); !loaded.isOk())
    return Status::refusal("--teacher " + loaded.getMessage());
  compiled.facts.teacherValues = countFloatValues(*teacher);
  std::vector<std::string> initializers, random;
  ORTC_TRY(diagnostics.check(frontend::addTeacher(compiled.model, *teacher, options.teacher->output,
                                                  train::teacherName, "--teacher " + options.teacher->text,
                                                  initializers, random)));
  if (!random.empty())
    compiled.facts.warnings.push_back("--teacher " + options.teacher->text + ": " + joinSome(random, 4) +
                                      (random.size() == 1 ? " draws" : " draw") +
                                      " random numbers in every step");
  facts.teacher = NamePattern::list(std::move(initializers), "--teacher");
  return Status();
}

static void describeFile(const CompileOptions &options, const proto::ModelProto &proto,
                         report::CompileFacts &facts) {
  facts.modelFile = std::filesystem::path(options.model).filename().string();
  facts.modelName = std::filesystem::path(options.model).stem().string();
  facts.producer =
      proto.producer_name() + (proto.producer_version().empty() ? "" : " " + proto.producer_version());
  facts.irVersion = proto.ir_version();
  facts.opset = frontend::opsetOf(proto.opset_import(), "");
  facts.nodes = proto.graph().node_size();
}

Status readModel(CompileOptions &options, const Diagnostics &diagnostics,
                 const std::function<Status(const frontend::Model &)> &afterReading, Compiled &compiled,
                 ModelFacts &facts) {
  ORTC_TRY(diagnostics.check(frontend::Model::load(options.model, compiled.model)));
  ORTC_TRY(afterReading(*compiled.model));
  ORTC_TRY(train::addDistillation(*compiled.model, options));
  compiled.facts.floatValues = countFloatValues(*compiled.model);
  frontend::SharingOptions sharing{options.untie, {}};
  for (const TieSpec &tie : options.ties)
    sharing.ties.push_back({tie.copy, tie.original});
  frontend::SharingReport shared;
  frontend::GradientMarks marks;
  ORTC_TRY(diagnostics.check(frontend::resolveSharedInitializers(compiled.model, sharing, shared)));
  if (trains(options)) {
    compiled.facts.warnings = shared.warnings;
    compiled.notes = shared.notes;
    findNameLists(options, compiled, facts);
    ORTC_TRY(diagnostics.check(findMarks(*compiled.model, options.marksGradients, compiled, facts, marks)));
  }
  std::shared_ptr<const frontend::Model> plain = compiled.model;
  ORTC_TRY(diagnostics.check(addQuantizers(options, compiled, facts)));
  facts.written = compiled.model;
  ORTC_TRY(diagnostics.check(frontend::applyGradientMarks(compiled.model, marks)));
  if (trains(options))
    ORTC_TRY(diagnostics.check(addAdapters(options, compiled, facts)));
  ORTC_TRY(diagnostics.check(quantizeBase(options, compiled, facts)));
  ORTC_TRY(diagnostics.check(findMasks(options, compiled)));
  ORTC_TRY(addTeacher(options, diagnostics, compiled, facts));
  ORTC_TRY(diagnostics.check(exposeLossInputs(options, compiled)));
  Status outcome;
  auto imported = frontend::importModel(compiled.model, *compiled.context, outcome);
  if (failed(imported))
    return diagnostics.refuse(outcome.getMessage());
  compiled.source = std::move(*imported);
  compiled.program = ModuleOp::create(UnknownLoc::get(compiled.context.get()));
  describeFile(options, plain->getProto(), compiled.facts);
  return diagnostics.run(*compiled.source, pipeline::buildImport);
}

} // namespace ortc::driver
