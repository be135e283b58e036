// Write the optimizer's update of every parameter.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function for all parameters, in the order of UpdateBuilder::run(): the loss scale, state that parameters share,
// penalties and masks of gradients, norms, counts of averages, clipping by value, then by the common norm; and for
// each parameter the formula of its optimizer, limits and averages. Of bf16 parameters everything is computed in f32,
// and the new value is rounded.
#include "compiler/passes/train/Averages.h"
#include "compiler/passes/train/ByteStates.h"
#include "compiler/passes/train/Channels.h"
#include "compiler/passes/train/Constraints.h"
#include "compiler/passes/train/LossScale.h"
#include "compiler/passes/train/OnnxOptimizer.h"
#include "compiler/passes/train/ParameterGroups.h"
#include "compiler/passes/train/ParameterKinds.h"
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/ProgramTensors.h"
#include "compiler/passes/train/ReadAhead.h"
#include "compiler/passes/train/ScheduledRate.h"
#include "compiler/passes/train/StochasticRounding.h"
#include "compiler/passes/train/TrainingProgram.h"
#include "support/Plural.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

#define GEN_PASS_DEF_BUILDUPDATEPASS
#include "compiler/passes/train/Passes.h.inc"

/// Zero where `value` is below the smallest normal number. An average that fades out would stay there for ever.
static Value flush(TensorBuilder &b, Value value) {
  const llvm::fltSemantics &semantics = cast<FloatType>(TensorBuilder::elementOf(value)).getFloatSemantics();
  Value least = b.constantLike(value, APFloat::getSmallestNormalized(semantics).convertToDouble());
  return b.select(b.compare(arith::CmpFPredicate::OLT, b.abs(value), least), b.zerosLike(value), value);
}

static const SparseSpec *findSparse(ArrayRef<SparseSpec> sparse, TensorOp parameter) {
  auto found = llvm::find_if(
      sparse, [&](const SparseSpec &spec) { return spec.pattern.matches(parameter.getName().str()); });
  return found == sparse.end() ? nullptr : &*found;
}

void markSparseTables(ModuleOp module, ArrayRef<SparseSpec> sparse) {
  for (TensorOp parameter : findParameters(module))
    if (findSparse(sparse, parameter))
      parameter->setAttr(kSparse, UnitAttr::get(module.getContext()));
}

/// The stored dimension that is dimension i of the file.
static SmallVector<int64_t> axesOf(TensorOp parameter) {
  SmallVector<int64_t> axes(cast<RankedTensorType>(parameter.getType()).getRank());
  for (int64_t i = 0; i < static_cast<int64_t>(axes.size()); ++i)
    axes[parameter.getPermutation() ? (*parameter.getPermutation())[i] : i] = i;
  return axes;
}

namespace {

/// What a state is read from and written to.
struct KeptState {
  const StateDefinition *definition;
  Port port;                   ///< its values, or their codes
  std::optional<Port> largest; ///< of rows of codes
};

class UpdateBuilder {
public:
  UpdateBuilder(ModuleOp module, const UpdateOptions &options)
      : module(module), options(options), parameters(findParameters(module)), kinds(findKinds(module)),
        composer(module, "update", NameLoc::get(StringAttr::get(module.getContext(), "update"))),
        tensors(module, &composer), b(composer.getBuilder()), constraints(options.specs, tensors, b) {}

  LogicalResult run();

private:
  LogicalResult checkNames();
  LogicalResult takeArguments();
  LogicalResult advanceStep();
  LogicalResult readGroups();
  LogicalResult advanceShared();
  LogicalResult constrainGradients();
  LogicalResult startAverages();
  LogicalResult giveNorms();
  /// f64: of these tensors together.
  Value normOf(ArrayRef<Value> parts);
  LogicalResult clipValues();
  LogicalResult clipNorm();
  LogicalResult checkRanks();
  LogicalResult checkRates();
  ParameterGroup &groupOf(TensorOp parameter);
  bool decays(TensorOp parameter, const ParameterGroup &group) const;
  LogicalResult checkSparse(TensorOp parameter, const ParameterGroup &group, UpdateStep &step);
  /// The rows in which an optimizer sees a parameter whose state is bytes; nothing: its state is whole.
  std::optional<Blocks> findBlocks(TensorOp parameter, const OptimizerDefinition &definition,
                                   const UpdateStep &step);
  LogicalResult checkState(TensorOp parameter, StringRef state, const UpdateStep &step);
  LogicalResult takeStates(TensorOp parameter, const OptimizerDefinition &definition,
                           const std::optional<Blocks> &blocks, UpdateStep &step,
                           SmallVectorImpl<KeptState> &states);
  void giveState(const KeptState &state, Value value);
  LogicalResult updateParameter(TensorOp parameter, Value whole, Value gradient);
  /// The new value of a parameter as it is stored.
  Value store(TensorOp parameter, Value value);
  /// Declares a hyper-parameter under `name` and stores its value.
  LogicalResult scalar(StringRef name, double initial, Value &value);
  LogicalResult checkFinite();
  /// `value` is the new one of what was `old`, unless the step is skipped.
  void give(NamedAttribute attribute, Value value, Value old);

  ModuleOp module;
  const UpdateOptions &options;
  SmallVector<TensorOp> parameters;
  llvm::DenseMap<Attribute, ParameterKind> kinds; ///< by symbol
  std::vector<ParameterGroup> groups;             ///< that of --optimizer, then those of --group
  FunctionComposer composer;
  ProgramTensors tensors;
  TensorBuilder &b;
  SmallVector<Value> values, gradients; ///< as `parameters`
  Value stepsBefore;                    ///< i64: the state `step` before this update
  Value finite;                         ///< i1: whether the step updates anything; null: it does
  llvm::DenseMap<Value, Value> rates;   ///< of a schedule, by their bases
  Value gradientNorm;                   ///< f64: of gradients that are not clipped yet; null: not asked for
  Constraints constraints;
  SmallVector<Averages> averages;
  SmallVector<Port> results;
};

LogicalResult UpdateBuilder::scalar(StringRef name, double initial, Value &value) {
  FailureOr<Value> found = tensors.getScalar(name, initial);
  if (succeeded(found))
    value = *found;
  return found;
}

/// A checkpoint is a safetensors file, and the header of one has an entry that is no tensor.
LogicalResult UpdateBuilder::checkNames() {
  for (auto tensor : module.getOps<TensorOp>())
    if (tensor.getName() == "__metadata__" && tensor.getRole() != Role::constant)
      return tensor.emitError()
             << "the model has a tensor named '__metadata__', which is the name of the metadata in a "
                "checkpoint; rename it, or freeze it";
  return success();
}

LogicalResult UpdateBuilder::takeArguments() {
  for (TensorOp parameter : parameters) {
    RankedTensorType type = parameter.getStoredType();
    if (type.getElementType().isF16())
      return parameter.emitError() << "parameter '" << parameter.getName()
                                   << "' is of type 'f16', but parameters are trained in f32, f64 or bf16; "
                                      "freeze it";
    if (type.getElementType().isBF16() && options.roundingSeed && failed(checkRounding(parameter)))
      return failure();
    FailureOr<Value> value = composer.getArgument(symbolAttribute(parameter, kTensor), type);
    FailureOr<Value> gradient =
        composer.getArgument(symbolAttribute(parameter, kGradient), gradientType(parameter));
    if (failed(value) || failed(gradient))
      return failure();
    values.push_back(*value);
    gradients.push_back(*gradient);
  }
  return success();
}

void UpdateBuilder::give(NamedAttribute attribute, Value value, Value old) {
  if (finite)
    value = b.select(b.broadcast(finite, TensorBuilder::shapeOf(value), {}), value, old);
  results.push_back({attribute, value});
}

/// Before any gradient is clipped; the scale moves whether the step is skipped or not.
LogicalResult UpdateBuilder::checkFinite() {
  Value all = areFinite(b, gradients);
  if (!all)
    return success();
  FailureOr<SmallVector<Port>> scale = updateLossScale(*options.lossScale, all, module, composer, tensors);
  if (failed(scale))
    return failure();
  results.append(*scale);
  finite = all;
  return success();
}

/// The number of updates done, those that the loss scale skips among them: part of a checkpoint. Stochastic rounding
/// draws by it, and schedules and averages count by it.
LogicalResult UpdateBuilder::advanceStep() {
  FailureOr<Port> step = tensors.getState("step", RankedTensorType::get({}, b.getI64Type()));
  if (failed(step))
    return failure();
  results.push_back({step->attribute, b.add(step->value, b.constantLike(step->value, 1))});
  stepsBefore = step->value;
  return success();
}

LogicalResult UpdateBuilder::readGroups() {
  groups.emplace_back(options.optimizer);
  for (auto [number, spec] : llvm::enumerate(options.groups)) {
    Expected<OptimizerGroup> group = readGroup(spec, options.optimizer);
    if (!group)
      return emitError(module.getLoc()) << group.getStatus().getMessage();
    groups.emplace_back(*group, number);
  }
  if (options.specs.schedule)
    for (ParameterGroup &group : groups)
      group.setSchedule([this](Value base) {
        Value &rate = rates[base];
        return rate = rate ? rate : schedule(b, *options.specs.schedule, base, stepsBefore);
      });
  return success();
}

ParameterGroup &UpdateBuilder::groupOf(TensorOp parameter) {
  auto group = llvm::find_if(options.groups, [&](const GroupSpec &candidate) {
    return candidate.pattern.matches(parameter.getName().str());
  });
  return group == options.groups.end() ? groups.front() : groups[1 + (group - options.groups.begin())];
}

/// Optimizers of matrices update nothing else.
LogicalResult UpdateBuilder::checkRanks() {
  std::vector<std::string> names;
  const char *optimizer = nullptr;
  int64_t rank = 0;
  for (TensorOp parameter : parameters)
    if (const OptimizerDefinition &definition = groupOf(parameter).getDefinition();
        definition.rank && definition.rank != trainedType(parameter).getRank()) {
      names.push_back(quote(parameter.getName().str()));
      optimizer = definition.name;
      rank = definition.rank;
    }
  if (names.empty())
    return success();
  constexpr size_t kShown = 3;
  size_t count = names.size();
  std::string first = names.front();
  names.resize(std::min(count, kShown));
  return emitError(module.getLoc()) << "optimizer '" << optimizer << "' updates tensors of "
                                    << formatCount(rank, "dimension") << ", and " << count
                                    << (count == 1 ? " is not: " : " are not: ") << llvm::join(names, ", ")
                                    << (count > kShown ? ", ..." : "")
                                    << "; give them a group with another optimizer: --group "
                                    << StringRef(first).drop_back() << ":optimizer=adamw'";
}

/// Hosts set 'lr', and schedules move it.
LogicalResult UpdateBuilder::checkRates() {
  if (parameters.empty() ||
      !llvm::all_of(parameters, [&](TensorOp parameter) { return groupOf(parameter).hasOwnRate(); }))
    return success();
  return emitError(module.getLoc()) << "every trained tensor is in a --group with a learning rate of its "
                                       "own, and that of --optimizer is of none; "
                                       "give --optimizer what most tensors have and leave them out of "
                                       "groups, or change rates with lr_scale";
}

bool UpdateBuilder::decays(TensorOp parameter, const ParameterGroup &group) const {
  ParameterKind kind = kinds.lookup(symbolAttribute(parameter, kTensor).getValue());
  bool isExempt = (kind == ParameterKind::Bias && options.noDecay.biases) ||
                  (kind == ParameterKind::Norm && options.noDecay.norms);
  return !isExempt || group.owns(kWeightDecay);
}

LogicalResult UpdateBuilder::advanceShared() {
  llvm::DenseSet<const ParameterGroup *> used{&groups.front()};
  for (TensorOp parameter : parameters)
    used.insert(&groupOf(parameter));
  for (ParameterGroup &group : groups) {
    SmallVector<std::pair<Port, Value>> updates;
    const ParameterGroup *base = &group == &groups.front() ? nullptr : &groups.front();
    if (used.contains(&group) && failed(group.advance(tensors, b, base, updates)))
      return failure();
    for (auto &[port, value] : updates)
      give(port.attribute, value, port.value);
  }
  return success();
}

LogicalResult UpdateBuilder::clipValues() {
  Value limit;
  if (failed(scalar("clip_value", *options.clipValue, limit)))
    return failure();
  for (Value &gradient : gradients) {
    Value high = spread(b, limit, gradient), low = b.neg(high);
    gradient = b.minimum(b.maximum(gradient, low), high);
  }
  return success();
}

LogicalResult UpdateBuilder::constrainGradients() {
  if (options.specs.regularizers.empty() && !options.specs.masks)
    return success();
  if (failed(constraints.apply(parameters)))
    return failure();
  for (auto [parameter, stored, gradient] : llvm::zip_equal(parameters, values, gradients)) {
    Value value = b.cast(takeTrained(b, parameter, stored), TensorBuilder::elementOf(gradient));
    FailureOr<Value> constrained = constraints.constrainGradient(parameter, value, gradient);
    if (failed(constrained))
      return failure();
    gradient = *constrained;
  }
  return success();
}

/// Squares are summed in the tensor's type per tensor, in f64 over them.
Value UpdateBuilder::normOf(ArrayRef<Value> parts) {
  Value sum;
  for (Value part : parts) {
    auto axes = llvm::to_vector(llvm::seq<int64_t>(0, TensorBuilder::rankOf(part)));
    Value squares = b.cast(b.sum(b.mul(part, part), axes), b.getF64Type());
    sum = sum ? b.add(sum, squares) : squares;
  }
  return sum ? b.sqrt(sum) : sum;
}

/// Of gradients before they are clipped, and of what is trained before the update.
LogicalResult UpdateBuilder::giveNorms() {
  auto add = [&](StringRef name, ArrayRef<Value> parts) -> LogicalResult {
    if (parts.empty() || tensors.isTaken(name))
      return emitError(module.getLoc())
             << "--step-outputs " << name
             << (parts.empty() ? ": nothing is trained" : ": the model has a tensor of this name; rename it");
    NamedAttribute output = nameAttribute(module.getContext(), kOutput, name);
    NamedAttribute behind = unitAttribute(module.getContext(), kBackward); // the loss does without it
    results.push_back({output, normOf(parts), DictionaryAttr::get(module.getContext(), {output, behind})});
    return success();
  };
  if (options.specs.gradientNorm) {
    if (failed(add("grad_norm", gradients)))
      return failure();
    gradientNorm = results.back().value;
  }
  if (!options.specs.parameterNorm)
    return success();
  SmallVector<Value> trained;
  for (auto [parameter, stored, gradient] : llvm::zip_equal(parameters, values, gradients))
    trained.push_back(b.cast(takeTrained(b, parameter, stored), TensorBuilder::elementOf(gradient)));
  return add("param_norm", trained);
}

LogicalResult UpdateBuilder::startAverages() {
  const UpdateSpecs &specs = options.specs;
  SmallVector<FailureOr<Averages>> kinds;
  if (specs.ema)
    kinds.push_back(Averages::ema(*specs.ema, tensors, b));
  if (specs.swa)
    kinds.push_back(Averages::swa(*specs.swa, stepsBefore, tensors, b));
  for (FailureOr<Averages> &kind : kinds) {
    if (failed(kind))
      return failure();
    give(kind->getCount().attribute, kind->getCount().value, kind->getCountBefore());
    averages.push_back(*kind);
  }
  return success();
}

/// g *= min(1, limit / (norm + 1e-6)).
LogicalResult UpdateBuilder::clipNorm() {
  Value limit;
  if (failed(scalar("clip_norm", *options.clipNorm, limit)))
    return failure();
  Value norm = gradientNorm && !options.clipValue ? gradientNorm : normOf(gradients);
  if (!norm)
    return success();
  Value factor = b.div(limit, b.addScalar(norm, 1e-6));
  Value one = b.constantLike(factor, 1);
  factor = b.select(b.compare(arith::CmpFPredicate::ULT, factor, one), factor, one); // NaN stays NaN
  for (Value &gradient : gradients)
    gradient = b.mul(gradient, spread(b, factor, gradient));
  return success();
}

/// Rows that have no gradient in a step must not move in it.
LogicalResult UpdateBuilder::checkSparse(TensorOp parameter, const ParameterGroup &group, UpdateStep &step) {
  const SparseSpec *spec = findSparse(options.sparse, parameter);
  if (!spec)
    return success();
  if (findChannels(parameter))
    return parameter.emitError() << "--sparse '" << spec->text << "' updates rows of '" << parameter.getName()
                                 << "', and --train trains some of its channels; leave one of both out";
  const OptimizerDefinition &definition = group.getDefinition();
  if (definition.spans)
    return parameter.emitError() << "--sparse '" << spec->text << "' updates rows of '" << parameter.getName()
                                 << "', and '" << definition.name << "' needs " << definition.spans
                                 << "; give it a group with another optimizer";
  const char *mover = step.scalar(kWeightDecay) ? "weight_decay"
                      : definition.movesAlways  ? definition.movesAlways(group.getSettings())
                                                : nullptr;
  if (mover && !spec->isLazy)
    return parameter.emitError() << "--sparse '" << spec->text << "': " << mover << " of '" << definition.name
                                 << "' moves every row of '" << parameter.getName()
                                 << "' in every step; lazy=1 lets it wait for a row's next gradient";
  step.isSparse = true;
  return success();
}

Value UpdateBuilder::store(TensorOp parameter, Value value) {
  if (!parameter.getStoredType().getElementType().isBF16())
    return value;
  return options.roundingSeed ? roundStochastically(b, value, stepsBefore,
                                                    roundingKey(parameter.getName(), *options.roundingSeed))
                              : b.cast(value, b.getBF16Type());
}

std::optional<Blocks> UpdateBuilder::findBlocks(TensorOp parameter, const OptimizerDefinition &definition,
                                                const UpdateStep &step) {
  bool isNorm = kinds.lookup(symbolAttribute(parameter, kTensor).getValue()) == ParameterKind::Norm;
  if (!keepsBytes(definition) || isNorm ||
      TensorBuilder::typeOf(step.parameter).getNumElements() < Blocks::kLeast)
    return std::nullopt;
  return Blocks(b, step.shape, step.axes);
}

/// The states of a file have its names, which the model may use, too.
LogicalResult UpdateBuilder::checkState(TensorOp parameter, StringRef state, const UpdateStep &step) {
  const std::string name = (parameter.getName() + "." + state).str();
  if (!step.file || !tensors.isTaken(name))
    return success();
  return parameter.emitError() << "optimizer '" << step.file->name << "': the state '" << state << "' of '"
                               << parameter.getName() << "' would be the tensor '" << name
                               << "', and the model has one of that name; rename '" << state
                               << "' in the file '" << step.file->file->getPath() << "'";
}

LogicalResult UpdateBuilder::takeStates(TensorOp parameter, const OptimizerDefinition &definition,
                                        const std::optional<Blocks> &blocks, UpdateStep &step,
                                        SmallVectorImpl<KeptState> &states) {
  Type element = TensorBuilder::elementOf(step.parameter);
  for (const StateDefinition &state : definition.states) {
    if (state.isNeeded && !state.isNeeded(step.settings))
      continue;
    if (blocks && state.storage != Storage::Whole) {
      auto codes = RankedTensorType::get({blocks->getCount(), Blocks::kSize}, b.getI8Type());
      FailureOr<Port> port = tensors.getRows(state.name, parameter, codes);
      if (failed(port))
        return failure();
      FailureOr<Port> largest = tensors.getRows(nameLargest(state.name), parameter,
                                                RankedTensorType::get({blocks->getCount()}, b.getF32Type()));
      if (failed(largest))
        return failure();
      step.states[state.name] =
          decode(b, {port->value, largest->value}, state.storage == Storage::Bytes, element);
      states.push_back({&state, *port, *largest});
      continue;
    }
    std::optional<SmallVector<int64_t>> shape(step.shape);
    if (state.shape)
      shape = state.shape(step.shape);
    if (!shape)
      continue;
    if (failed(checkState(parameter, state.name, step)))
      return failure();
    FailureOr<Port> port =
        tensors.getState(state.name, parameter, RankedTensorType::get(*shape, element), state.initial);
    if (failed(port))
      return failure();
    step.states[state.name] = port->value;
    states.push_back({&state, *port, std::nullopt});
  }
  return success();
}

void UpdateBuilder::giveState(const KeptState &state, Value value) {
  Port port = state.port;
  if (state.largest) {
    ByteState next = encode(b, value, state.definition->storage == Storage::Bytes);
    give(port.attribute, next.codes, port.value);
    port = *state.largest;
    value = next.largest;
  }
  give(port.attribute, options.flushesState ? flush(b, value) : value, port.value);
}

LogicalResult UpdateBuilder::updateParameter(TensorOp parameter, Value whole, Value gradient) {
  b.setLoc(parameter.getLoc());
  Value stored = takeTrained(b, parameter, whole);
  const ParameterGroup &group = groupOf(parameter);
  const OptimizerDefinition &definition = group.getDefinition();
  const Settings &settings = group.getSettings();
  Type element = TensorBuilder::elementOf(gradient);
  RankedTensorType type = trainedType(parameter).clone(element);
  bool turns = !group.getFile() && settings.has(kMaximize) && settings.isOn(kMaximize);
  UpdateStep step{{b, settings}, b.cast(stored, element), turns ? b.neg(gradient) : gradient};
  step.shape = type.getShape();
  step.axes = axesOf(parameter);
  step.file = group.getFile();
  if (failed(group.takeScalars(tensors, b, decays(parameter, group), step.scalars)) ||
      failed(checkSparse(parameter, group, step)))
    return failure();
  SmallVector<KeptState> states;
  std::optional<Blocks> blocks = findBlocks(parameter, definition, step);
  if (failed(takeStates(parameter, definition, blocks, step, states)))
    return failure();
  if (definition.ahead)
    readAhead(module, parameter, group, step, composer.getArgumentAttributes());
  if (failed(applyFormula(definition, blocks, step)))
    return failure();
  FailureOr<Value> constrained = constraints.constrainValue(parameter, step.parameter);
  if (failed(constrained))
    return failure();
  Value next = store(parameter, *constrained);
  give(symbolAttribute(parameter, kUpdate), putTrained(b, parameter, next, whole), whole);
  for (const Averages &kind : averages) {
    auto moved = kind.move(parameter, b.cast(next, TensorBuilder::elementOf(gradient)), tensors, b);
    if (failed(moved))
      return failure();
    give(moved->first.attribute, moved->first.value, moved->second);
  }
  for (const KeptState &state : states)
    giveState(state, step.states[state.definition->name]);
  return success();
}

LogicalResult UpdateBuilder::run() {
  if (failed(checkNames()) || failed(readGroups()) || failed(checkRanks()) || failed(checkRates()) ||
      failed(takeArguments()) || failed(advanceStep()) || (options.lossScale && failed(checkFinite())) ||
      failed(advanceShared()))
    return failure();
  if (failed(constrainGradients()) || failed(giveNorms()) || failed(startAverages()))
    return failure();
  if (options.clipValue && failed(clipValues()))
    return failure();
  if (options.clipNorm && failed(clipNorm()))
    return failure();
  for (auto [parameter, stored, gradient] : llvm::zip_equal(parameters, values, gradients))
    if (failed(updateParameter(parameter, stored, gradient)))
      return failure();
  composer.finish(results, /*dropArguments=*/true);
  return success();
}

} // namespace

/// The loss of a step whose labels are all ignored, the mean of nothing: 0, and of the last step, behind others that
/// had none either, NaN. The first port is that of steps before the last.
static LogicalResult giveLosses(FunctionComposer &composer, Type type, Value labels, Value all,
                                SmallVectorImpl<Port> &results) {
  TensorBuilder &b = composer.getBuilder();
  NamedAttribute unit = unitAttribute(b.getContext(), kLoss);
  FailureOr<Value> loss = composer.getArgument(unit, type);
  if (failed(loss))
    return failure();
  Value none = b.zerosLike(labels), isEmpty = b.compare(arith::CmpFPredicate::OEQ, labels, none);
  Value last = b.cast(b.div(none, all), TensorBuilder::elementOf(*loss));
  results.push_back({unit, b.select(isEmpty, b.zerosLike(*loss), *loss)});
  results.push_back({nameAttribute(b.getContext(), kLoss, "last"), b.select(isEmpty, last, *loss)});
  return success();
}

/// acc + g / N for every parameter. Dividing here and not after the sum gives what PyTorch gives for a loss / N. Of
/// labels, acc + g n, which the last step divides by the sum of n: a sum of losses over the number of all labels.
static LogicalResult buildAccumulate(ModuleOp module, int64_t steps, bool isByLabels) {
  FunctionComposer composer(module, "accumulation",
                            NameLoc::get(StringAttr::get(module.getContext(), "accumulate")));
  ProgramTensors tensors(module, &composer);
  TensorBuilder &b = composer.getBuilder();
  FailureOr<Value> count = tensors.getScalar("accumulate", static_cast<double>(steps));
  if (failed(count))
    return failure();
  Value share = b.div(b.constantLike(*count, 1), *count), labels, all;
  SmallVector<Port> sums, updates;
  if (isByLabels) {
    FailureOr<Value> taken =
        composer.getArgument(nameAttribute(module.getContext(), kOutput, kLabelCount), count->getType());
    FailureOr<Port> before = tensors.getState("accumulated.count", TensorBuilder::typeOf(*count));
    if (failed(taken) || failed(before))
      return failure();
    labels = *taken;
    all = b.add(before->value, labels);
    updates.push_back({before->attribute, all});
    func::FuncOp loss = findPart(module, "loss", findBindings(module).front());
    for (unsigned i = 0; i < loss.getNumResults(); ++i)
      if (loss.getResultAttr(i, kLoss) &&
          failed(giveLosses(composer, loss.getResultTypes()[i], labels, all, sums)))
        return failure();
  }
  for (TensorOp parameter : findParameters(module)) {
    RankedTensorType type = gradientType(parameter);
    FailureOr<Value> gradient = composer.getArgument(symbolAttribute(parameter, kGradient), type);
    FailureOr<Port> state =
        tensors.getState("accumulated", parameter, trainedType(parameter).clone(type.getElementType()));
    if (failed(gradient) || failed(state))
      return failure();
    Value added = b.mul(*gradient, spread(b, isByLabels ? labels : share, *gradient));
    if (isByLabels) // the mean of nothing may be NaN
      added = b.select(b.compare(arith::CmpFPredicate::OEQ, spread(b, labels, added), b.zerosLike(added)),
                       b.zerosLike(added), added);
    Value sum = b.add(state->value, added);
    sums.push_back(
        {symbolAttribute(parameter, kGradient), isByLabels ? b.div(sum, spread(b, all, sum)) : sum});
    updates.push_back({state->attribute, sum});
  }
  sums.append(updates);
  composer.finish(sums, /*dropArguments=*/false);
  return success();
}

LogicalResult buildUpdate(ModuleOp module, const UpdateOptions &options) {
  if (failed(UpdateBuilder(module, options).run()))
    return failure();
  return success(options.accumulate == 1 ||
                 succeeded(buildAccumulate(module, options.accumulate, options.accumulatesLabels)));
}

/// Specs with semicolons between them.
template <typename T>
static Status parseEach(StringRef text, Expected<T> (*parse)(std::string_view), std::vector<T> &parsed) {
  SmallVector<StringRef> specs;
  text.split(specs, ';', -1, /*KeepEmpty=*/false);
  for (StringRef spec : specs)
    ORTC_TRY(parse(spec).moveTo(parsed.emplace_back()));
  return Status();
}

/// What may be left out.
template <typename T>
static Status parseGiven(const std::string &text, Expected<T> (*parse)(std::string_view),
                         std::optional<T> &parsed) {
  return text.empty() ? Status() : parse(text).moveTo(parsed.emplace());
}

namespace {

struct BuildUpdatePass : impl::BuildUpdatePassBase<BuildUpdatePass> {
  using Base::Base;

  Status parse(UpdateOptions &parsed) {
    ORTC_TRY(parseOptimizer(std::string(optimizer)).moveTo(parsed.optimizer));
    ORTC_TRY(parseEach(groups.getValue(), parseGroup, parsed.groups));
    if (!noDecay.empty())
      ORTC_TRY(parseNoDecay(std::string(noDecay)).moveTo(parsed.noDecay));
    ORTC_TRY(parseGiven(schedule, parseSchedule, parsed.specs.schedule));
    ORTC_TRY(parseGiven(ema, parseEma, parsed.specs.ema));
    ORTC_TRY(parseGiven(swa, parseSwa, parsed.specs.swa));
    ORTC_TRY(parseEach(regularize.getValue(), parseRegularize, parsed.specs.regularizers));
    return stepOutputs.empty() ? Status() : parseStepOutputs(std::string(stepOutputs), parsed.specs);
  }

  void runOnOperation() override {
    UpdateOptions parsed;
    if (Status status = parse(parsed); !status.isOk()) {
      getOperation().emitError(status.getMessage());
      return signalPassFailure();
    }
    if (clipNorm > 0)
      parsed.clipNorm = clipNorm;
    if (clipValue > 0)
      parsed.clipValue = clipValue;
    parsed.accumulate = accumulate;
    parsed.flushesState = flushState;
    if (roundingSeed >= 0)
      parsed.roundingSeed = roundingSeed;
    if (failed(buildUpdate(getOperation(), parsed)))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::train
