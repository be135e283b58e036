// The description of an artifact for tools.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/report/Manifest.h"

#include "compiler/artifact/ArtifactReader.h"
#include "compiler/artifact/ArtifactWriter.h"
#include "compiler/passes/train/OnnxLoss.h"
#include "compiler/passes/train/OnnxOptimizer.h"
#include "compiler/report/MemoryReport.h"
#include "support/FormatNames.h"
#include "support/Json.h"

namespace ortc::report {

using Json = nlohmann::ordered_json;

using artifact::dtypeName;

std::optional<int64_t> findClassAxis(const LossSpec &loss, const LossFacts &facts) {
  int64_t rank = facts.shape.size();
  if (!train::hasClasses(loss) || rank == 0)
    return std::nullopt;
  int64_t axis = train::settingsOf(loss).getInteger(train::kAxis);
  return rank == 1 ? 0 : axis < 0 ? axis + rank : axis;
}

static Json toJson(const KeyValue &value) {
  return std::visit([](auto each) { return Json(each); }, value);
}

/// Labels say whether they are probabilities; other keys are told where they are given.
static bool isToldInOtherWords(std::string_view key, bool hasClasses) {
  return (hasClasses && (key == train::kAxis || key == train::kProbabilities)) || key == train::kReduction ||
         key == train::kClassWeight || key == train::kPosWeight;
}

/// Of the bytes of a file.
static std::string sha256Of(const frontend::FunctionFile &file) {
  return artifact::sha256Hex(file.getBytes().data(), file.getBytes().size());
}

static Json describeLoss(const LossSpec &spec, const LossFacts &facts) {
  Json loss{{"kind", spec.name}};
  loss["output"] = facts.output;
  if (spec.outputs.size() > 1)
    loss["outputs"] = spec.outputs;
  if (spec.file)
    loss["sha256"] = sha256Of(*spec.file->file);
  if (spec.source == LossSource::Output)
    return loss;
  const bool hasClasses = train::hasClasses(spec);
  if (std::optional<int64_t> axis = findClassAxis(spec, facts)) {
    loss["axis"] = *axis;
    loss["classes"] = facts.shape[*axis];
  }
  const Settings settings = train::settingsOf(spec);
  const train::LossDefinition &definition = *train::findLoss(spec);
  for (const Key &key : definition.keys)
    if (spec.file)
      loss["keys"][key.name] = toJson(settings.get(key.name)); // they may be called as anything
    else if (!isToldInOtherWords(key.name, hasClasses))
      loss[key.name] = toJson(settings.get(key.name));
  if (spec.given.count(train::kReduction))
    loss[train::kReduction] = toJson(settings.get(train::kReduction));
  if (!facts.classWeight.empty())
    loss[train::kClassWeight] = facts.classWeight;
  if (settings.has(train::kPosWeight) && settings.getWord(train::kPosWeight) != train::kNoFile)
    loss[train::kPosWeight] = true;
  if (!facts.inputs.empty())
    loss["inputs"] = facts.inputs;
  if (definition.comparesSamples)
    loss["compares_samples"] = true;
  if (train::needsLabel(spec))
    loss["label"] = definition.label == train::LabelKind::Sequences ? "sequences"
                    : !hasClasses                                   ? "values"
                    : facts.labelIsIndices                          ? "indices"
                                                                    : "probabilities";
  if (definition.comparands != train::Comparands::None)
    loss["compares"] = definition.comparands == train::Comparands::Values ? "values" : "decisions";
  return loss;
}

/// One loss as it is, and several as their sum.
static Json describeLosses(const std::vector<LossSpec> &losses, const CompileFacts &facts) {
  if (losses.front().source == LossSource::None)
    return {{"kind", losses.front().name}};
  Json parts = Json::array();
  for (auto [spec, fact] : llvm::zip(losses, facts.losses)) {
    Json part = describeLoss(spec, fact);
    if (losses.size() > 1) {
      part["name"] = spec.id;
      part["value"] = train::valueName(spec);
      if (train::needsLabel(spec))
        part["input"] = spec.label;
    }
    if (losses.size() > 1 || spec.weight)
      part["weight"] = train::weightName(spec);
    parts.push_back(part);
  }
  return losses.size() > 1 ? Json{{"kind", "sum"}, {"parts", parts}} : parts.front();
}

static void describeUpdate(const UpdateSpecs &specs, Json &optimizer) {
  for (auto [name, isGiven] :
       {std::pair("grad_norm", specs.gradientNorm), {"param_norm", specs.parameterNorm}})
    if (isGiven)
      optimizer["step_outputs"].push_back(name);
  if (specs.ema) {
    optimizer["ema"] = {{"decay", specs.ema->decay}};
    if (specs.ema->warmsUp)
      optimizer["ema"].update({{"gamma", specs.ema->gamma}, {"power", specs.ema->power}});
  }
  if (specs.swa)
    optimizer["swa"] = {{"start", specs.swa->start}, {"every", specs.swa->every}};
  for (const RegularizeSpec &each : specs.regularizers)
    optimizer["regularize"].push_back(each.text);
  if (specs.masks)
    for (const auto &[name, mask] : *specs.masks)
      optimizer["masks"].push_back(name);
}

static Json describeOptimizer(const CompileOptions &options) {
  const Settings settings = train::settingsOf(options.optimizer);
  Json optimizer{{"kind", options.optimizer.name}};
  if (options.optimizer.file)
    optimizer["sha256"] = sha256Of(*options.optimizer.file->file);
  for (const Key &key : train::orderKeys(train::definitionOf(options.optimizer)))
    if (!key.isRare || settings.get(key.name) != key.initial)
      (options.optimizer.file ? optimizer["keys"] : optimizer)[key.name] = toJson(settings.get(key.name));
  if (!options.groups.empty()) {
    Json groups = Json::array();
    for (const GroupSpec &group : options.groups) {
      Expected<train::OptimizerGroup> read = train::readGroup(group, options.optimizer);
      assert(read && "groups were checked");
      Json item{{"regex", group.pattern.getText()}, {"lr_scale", read->lrScale}};
      if (read->isOther)
        item["kind"] = read->optimizer.name;
      if (read->isOther && read->optimizer.file)
        item["sha256"] = sha256Of(*read->optimizer.file->file);
      for (const Key &key : train::orderKeys(train::definitionOf(read->optimizer)))
        if (auto given = read->own.find(key.name); given != read->own.end())
          (read->optimizer.file ? item["keys"] : item)[key.name] = toJson(given->second);
      groups.push_back(item);
    }
    optimizer["groups"] = groups;
  }
  for (auto [isOn, what] : {std::pair(options.noDecay.biases, "biases"), {options.noDecay.norms, "norms"}})
    if (isOn)
      optimizer["no_decay"].push_back(what);
  for (const SparseSpec &sparse : options.sparse)
    optimizer["sparse"].push_back({{"regex", sparse.pattern.getText()}, {"lazy", sparse.isLazy}});
  if (options.accumulate > 1)
    optimizer["accumulate"] = options.accumulate;
  if (options.accumulatesLabels)
    optimizer["accumulate_by"] = "tokens";
  if (options.lossScale)
    optimizer["loss_scale"] = options.lossScale->text;
  if (options.updateSpecs.schedule)
    optimizer["schedule"] = {{"lr", options.updateSpecs.schedule->format()}};
  describeUpdate(options.updateSpecs, optimizer);
  if (options.clipNorm)
    optimizer["clip_norm"] = *options.clipNorm;
  if (options.clipValue)
    optimizer["clip_value"] = *options.clipValue;
  return optimizer;
}

static Json describeFlags(const CompileOptions &options) {
  const char *precision[] = {"f32", "f64", "bf16", "f16", "tf32"};
  Json loss = options.losses.front().text;
  if (options.losses.size() > 1) {
    loss = Json::array();
    for (const LossSpec &each : options.losses)
      loss.push_back(each.text);
  }
  Json flags{{"loss", loss},
             {"optimizer", options.optimizer.text},
             {"numerics", options.numerics == Numerics::Fast ? "fast" : "portable"},
             {"precision", precision[static_cast<int>(options.precision)]},
             {"batch_norm", describeBatchNorm(options.batchNorm)},
             {"dropout", describeDropout(options.dropout)},
             {"seed", options.seed},
             {"max_workers", options.maxWorkers}};
  if (!options.weights)
    flags["no_weights"] = true;
  if (const std::optional<TeacherSpec> &teacher = options.teacher)
    flags["teacher"] = {
        {"output", teacher->output}, {"temperature", teacher->temperature}, {"weight", teacher->weight}};
  if (!options.trainOutputs.empty())
    flags["train_outputs"] = options.trainOutputs;
  if (!options.cotangents.empty())
    flags["cotangents"] = options.cotangents;
  if (!options.inputGradients.empty())
    flags["input_gradients"] = options.inputGradients;
  if (options.bind.parameters || options.bind.gradients)
    flags["bind"] = !options.bind.gradients    ? "parameters"
                    : !options.bind.parameters ? "gradients"
                                               : "parameters,gradients";
  if (options.bind.strided)
    flags["bind"] = flags["bind"].get<std::string>() + ",strided";
  if (options.parameters != ParameterStorage::F32)
    flags["parameters"] =
        options.parameters == ParameterStorage::BF16Stochastic ? "bf16:stochastic" : "bf16:nearest";
  return flags;
}

static Json describeAdapters(const CompileOptions &options, const CompileFacts &facts) {
  const char *kinds[] = {"linear", "embedding", "conv"};
  Json adapters = Json::array();
  for (const frontend::LoraAdapter &adapter : facts.adapters) {
    const LoraSpec &spec = options.lora[adapter.setting];
    adapters.push_back({{"weight", adapter.weight},
                        {"a", adapter.a},
                        {"b", adapter.b},
                        {"kind", kinds[static_cast<int>(adapter.kind)]},
                        {"transposed", adapter.isTransposed},
                        {"rank", spec.rank},
                        {"alpha", spec.alpha},
                        {"dropout", spec.dropout},
                        {"rank_stabilized", spec.isRankStabilized},
                        {"scale", spec.getScale()}});
    if (!adapter.quantized.empty())
      adapters.back().update({{"quantized", adapter.quantized}, {"quantized_scale", adapter.quantizedScale}});
  }
  return adapters;
}

static Json describeQuantizers(const CompileOptions &options, const CompileFacts &facts) {
  Json quantizers = Json::array();
  for (const frontend::FakeQuantizer &quantizer : facts.quantizers) {
    const QatSpec &spec = options.qat[quantizer.setting];
    Json item{{"tensor", quantizer.tensor},
              {"kind", quantizer.isWeight ? "weight" : "activation"},
              {"bits", spec.bits},
              {"symmetric", quantizer.isWeight}};
    if (quantizer.axis >= 0)
      item["axis"] = quantizer.axis;
    item["minimum"] = quantizer.minimum;
    item["maximum"] = quantizer.maximum;
    if (!quantizer.scaleOffset.empty())
      item["scale_offset"] = quantizer.scaleOffset;
    item["layers"] = quantizer.layers;
    quantizers.push_back(std::move(item));
  }
  return quantizers;
}

/// What is known of an output of the graph.
template <typename Map> static auto findOutput(const Map &known, const artifact::Tensor &tensor) {
  const std::string prefix = "output:"; // of what has the name of a tensor or an input
  auto found = known.find(tensor.name);
  return found == known.end() && tensor.name.starts_with(prefix)
             ? known.find(tensor.name.substr(prefix.size()))
             : found;
}

/// Whether the leading dimension of an input or output is the batch; nullopt where the model does not say.
static std::optional<bool> isBatch(const BatchFacts &facts, const artifact::Tensor &tensor) {
  if (tensor.role == ORTC_ROLE_INPUT) {
    for (const auto *known : {&facts.inputs, &facts.labels})
      if (auto found = known->find(tensor.name); found != known->end())
        return found->second;
    return std::nullopt;
  }
  auto found = findOutput(facts.outputs, tensor);
  return found == facts.outputs.end() ? std::nullopt : found->second;
}

/// The dimension of an output that is the batch, where that is another one; 0: none is.
static size_t findBatchAxis(const BatchFacts &facts, const artifact::Tensor &tensor) {
  auto found = tensor.role == ORTC_ROLE_OUTPUT ? findOutput(facts.axes, tensor) : facts.axes.end();
  return found == facts.axes.end() ? 0 : found->second;
}

/// Inputs and outputs of a binding, from the first of its entries that has most of them.
static Json describeBindings(const CompileOptions &options, const CompileFacts &facts,
                             const artifact::Artifact &artifact) {
  Json bindings = Json::array();
  for (size_t b = 0; b < artifact.bindings.size(); ++b) {
    Json inputs = Json::array(), outputs = Json::array(), dimensions = Json::object();
    std::map<uint32_t, const artifact::Value *> values;
    std::vector<uint32_t> order;
    for (const artifact::Entry &entry : artifact.entries)
      for (const artifact::Value &value : entry.external)
        if (entry.binding == b && values.try_emplace(value.tensor, &value).second)
          order.push_back(value.tensor);
    std::optional<int64_t> batch; // samples of a step
    for (const auto &[index, value] : values)
      if (artifact.tensors[index].role == ORTC_ROLE_INPUT &&
          artifact.tensors[index].name == facts.batch.input)
        batch = value->dims.front();
    for (uint32_t index : order) {
      const artifact::Tensor &tensor = artifact.tensors[index];
      const std::vector<int64_t> &dims = values[index]->dims;
      Json item{{"name", tensor.name}, {"dtype", dtypeName(tensor.dtype)}, {"shape", dims}};
      if (std::optional<bool> known = isBatch(facts.batch, tensor))
        item["batch"] = *known && (!batch || (!dims.empty() && dims.front() == *batch));
      if (size_t axis = findBatchAxis(facts.batch, tensor);
          axis > 0 && axis < dims.size() && dims[axis] == batch)
        item["batch_axis"] = axis;
      (tensor.role == ORTC_ROLE_INPUT ? inputs : outputs).push_back(item);
    }
    for (const ShapeSpec &shape : options.bindings[b].shapes)
      if (shape.dims.size() == 1)
        dimensions[shape.name] = shape.dims[0];
      else
        dimensions[shape.name] = shape.dims;
    Json binding{{"name", artifact.bindings[b]}};
    if (!dimensions.empty())
      binding["dimensions"] = dimensions;
    binding["inputs"] = inputs;
    binding["outputs"] = outputs;
    bindings.push_back(binding);
  }
  return bindings;
}

/// Names what is of one family where there are several.
static void addFamily(Json &item, const FamilyFacts &family) {
  if (!family.name.empty())
    item["family"] = family.name;
}

/// One for each entry of a family: those of its targets are the same.
static void describeEntries(const FamilyFacts &family, const artifact::Artifact &artifact, Json &entries) {
  for (const EntryFacts &fact : family.entries) {
    const artifact::Entry &entry =
        *llvm::find_if(artifact.entries, [&](const artifact::Entry &each) { return each.name == fact.name; });
    Json item{{"name", entry.name},
              {"role", getEntryRoleName(entry.role)},
              {"binding", artifact.bindings[entry.binding]},
              {"steps", fact.steps},
              {"flops", fact.flops},
              {"memory", summarizeMemory(fact.memory)}};
    addFamily(item, family);
    entries.push_back(item);
  }
}

static Json describeTensors(const artifact::Artifact &artifact) {
  Json tensors = Json::array();
  for (const artifact::Tensor &tensor : artifact.tensors) {
    if (tensor.role > ORTC_ROLE_SCALAR)
      continue;
    Json item{{"name", tensor.name}, {"role", getTensorRoleName(tensor.role)}};
    if (tensor.owner != ORTC_NONE)
      item["owner"] = artifact.tensors[tensor.owner].name;
    item["dtype"] = dtypeName(tensor.dtype);
    item["shape"] = tensor.dims;
    item["layout"] = {{"region", tensor.role == ORTC_ROLE_CONSTANT ? "constants" : "persistent"},
                      {"offset", tensor.offset},
                      {"strides", tensor.strides}};
    tensors.push_back(item);
  }
  return tensors;
}

/// Whether it is parallel is told of the first target.
static void describeKernels(const FamilyFacts &family, Json &kernels) {
  for (size_t i = 0; i < family.kernels.size(); ++i) {
    const KernelFacts &kernel = family.kernels[i];
    const backends::KernelInfo &info = family.codes.front()->kernels[i];
    Json item{{"name", kernel.name}, {"kind", kernel.kind}, {"work", kernel.work}, {"shape", kernel.shape}};
    addOrigins(item, kernel);
    item["flops"] = kernel.counts.flops;
    item["bytes"] = kernel.counts.bytesRead + kernel.counts.bytesWritten;
    item["parallel"] = info.isParallel;
    addFamily(item, family);
    kernels.push_back(item);
  }
}

void addStack(Json &item, const backends::StackUse &use) {
  if (use.caller)
    item["caller"] = *use.caller;
  if (use.worker)
    item["worker"] = *use.worker;
}

static Json describeTarget(const FamilyFacts &family, const backends::TargetCode &code) {
  Json target{{"name", code.section.name},
              {"code_bytes", code.section.bytes.size()},
              {"kernels", code.kernels.size()}};
  for (size_t i = 0; i < code.stack.size(); ++i) {
    Json item{{"name", family.entries[i].name}};
    addStack(item, code.stack[i]);
    target["stack"].push_back(item);
  }
  for (const backends::KernelInfo &kernel : code.kernels)
    for (const auto &[symbol, steps] : kernel.steps)
      target["steps"][symbol] = steps;
  addFamily(target, family);
  return target;
}

std::string makeManifest(const CompileOptions &options, const CompileFacts &facts,
                         const artifact::Artifact &artifact) {
  Json manifest{{"format", 1}, {"generator", "ortc " ORTC_VERSION}, {"name", facts.modelName}};
  manifest["model"] = {{"file", facts.modelFile},
                       {"ir_version", facts.irVersion},
                       {"opset", facts.opset},
                       {"producer", facts.producer},
                       {"nodes", facts.nodes}};
  manifest["flags"] = describeFlags(options);
  manifest["loss"] = describeLosses(options.losses, facts);
  if (updates(options))
    manifest["optimizer"] = describeOptimizer(options);
  if (!facts.adapters.empty())
    manifest["adapters"] = describeAdapters(options, facts);
  if (!facts.quantizers.empty())
    manifest["quantizers"] = describeQuantizers(options, facts);
  Json marks = Json::object();
  if (!facts.detached.empty())
    marks["detached"] = facts.detached;
  if (!facts.paddingRows.empty())
    marks["padding"] = facts.paddingRows;
  if (!facts.straightThrough.empty())
    marks["straight_through"] = facts.straightThrough;
  if (!marks.empty())
    manifest["marks"] = marks;
  if (!facts.wideMasks.empty())
    manifest["wide_masks"] = facts.wideMasks;
  manifest["bindings"] = describeBindings(options, facts, artifact);
  Json entries = Json::array(), targets = Json::array(), kernels = Json::array();
  for (const FamilyFacts &family : facts.families) {
    describeEntries(family, artifact, entries);
    describeKernels(family, kernels);
    for (const backends::TargetCode *code : family.codes)
      targets.push_back(describeTarget(family, *code));
  }
  manifest["entries"] = entries;
  manifest["memory"] = {{"constants", artifact.constants.size()}, {"persistent", artifact.persistentBytes}};
  manifest["targets"] = targets;
  manifest["kernels"] = kernels;
  manifest["tensors"] = describeTensors(artifact);
  Json trained = Json::array(), frozen = Json::array();
  for (const legalize::InitializerReport &item : facts.initializers) {
    if (item.trained())
      trained.push_back(item.name);
    else
      frozen.push_back({{"name", item.name}, {"reason", item.reason}});
  }
  manifest["trained"] = trained;
  manifest["frozen"] = frozen;
  if (!facts.trainedInPart.empty())
    manifest["trained_in_part"] = facts.trainedInPart;
  manifest["warnings"] = facts.warnings;
  return formatJson(manifest);
}

} // namespace ortc::report
