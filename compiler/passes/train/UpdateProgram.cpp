// An optimizer's update of tensors that a host owns, as a program without a model.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/UpdateProgram.h"

#include "compiler/passes/train/ByteStates.h"
#include "compiler/passes/train/Optimizers.h"
#include "compiler/passes/train/ProgramParts.h"
#include "dialects/train/ElementTypes.h"
#include "support/Plural.h"
#include "support/Text.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::train {

/// Whole blocks of states in bytes, whose results are copied: they stay in the second-level cache.
static constexpr int64_t kSmallest = 16, kLargest = 262144, kLargestOfBytes = 16384;

/// Whether the formula needs more of a tensor than a piece: `spans` also names blocks, which pieces are whole ones of,
/// and other weights, which the program holds.
static bool needsWhole(const OptimizerDefinition &definition) {
  return definition.spans && !keepsBytes(definition) && !definition.ahead;
}

Status checkUpdateForm(const OptimizerSpec &optimizer, const UpdateForm &form) {
  const std::string what = "optimizer " + quote(optimizer.name);
  if (optimizer.file)
    return Status::refusal(what +
                           " is an ONNX function, and updates are compiled of optimizers of the table");
  const OptimizerDefinition &definition = definitionOf(optimizer);
  if (needsWhole(definition) && form.shape.empty())
    return Status::refusal(what + " needs " + definition.spans + "; give its --shape");
  const auto rank = static_cast<int64_t>(form.shape.size());
  if (definition.rank && definition.rank != rank)
    return Status::refusal(what + " updates tensors of " + formatCount(definition.rank, "dimension") +
                           ", and --shape has " + std::to_string(rank));
  return Status();
}

std::vector<int64_t> listPieces(const OptimizerSpec &optimizer, const UpdateForm &form) {
  const bool hasBytes = form.hasBytes && keepsBytes(definitionOf(optimizer));
  std::vector<int64_t> pieces;
  for (int64_t piece = hasBytes ? kLargestOfBytes : kLargest; piece >= (hasBytes ? Blocks::kSize : kSmallest);
       piece /= 2)
    pieces.push_back(piece);
  return pieces;
}

namespace {

class UpdateProgramBuilder {
public:
  UpdateProgramBuilder(ModuleOp module, const OptimizerSpec &optimizer, const UpdateForm &form,
                       ArrayRef<int64_t> shape, int64_t binding)
      : definition(definitionOf(optimizer)), settings(settingsOf(optimizer)), form(form), shape(shape),
        binding(binding), composer(module, partName("forward_eval", binding),
                                   NameLoc::get(StringAttr::get(module.getContext(), "update"))),
        b(composer.getBuilder()), axes(llvm::to_vector(llvm::seq<int64_t>(0, shape.size()))) {}

  LogicalResult run();

private:
  /// The input of that name. Integers have no sign.
  Value take(StringRef name, ArrayRef<int64_t> dims, Type element);
  Value takeScalar(StringRef name) { return take(name, {}, b.getF64Type()); }
  void give(StringRef name, Value value);
  DictionaryAttr describe(StringRef key, StringRef name, Type element);
  void takeScalars(UpdateStep &step);
  void takeStates(UpdateStep &step);
  void giveStates(UpdateStep &step);
  bool isNeeded(const StateDefinition &state) const {
    return (!state.isNeeded || state.isNeeded(settings)) && (!state.shape || state.shape(shape));
  }
  bool isBytes(const StateDefinition &state) const { return blocks && state.storage != Storage::Whole; }
  static StringRef nameOf(const StateDefinition &state) { return state.ahead ? state.ahead : state.name; }

  const OptimizerDefinition &definition;
  const Settings settings;
  const UpdateForm &form;
  const ArrayRef<int64_t> shape;
  const int64_t binding;
  FunctionComposer composer;
  nn::TensorBuilder &b;
  SmallVector<int64_t> axes;
  std::optional<Blocks> blocks; ///< of states in bytes
  Type computed;                ///< what the formula computes in
  SmallVector<Port> results;
};

} // namespace

DictionaryAttr UpdateProgramBuilder::describe(StringRef key, StringRef name, Type element) {
  NamedAttrList attributes;
  attributes.append(nameAttribute(b.getContext(), key, name));
  if (auto integer = dyn_cast<IntegerType>(element))
    attributes.set(
        kDtype, TypeAttr::get(IntegerType::get(b.getContext(), integer.getWidth(), IntegerType::Unsigned)));
  return attributes.getDictionary(b.getContext());
}

Value UpdateProgramBuilder::take(StringRef name, ArrayRef<int64_t> dims, Type element) {
  // No name is taken twice, so that this cannot fail.
  return *composer.getArgument(nameAttribute(b.getContext(), kInput, name),
                               RankedTensorType::get(dims, element), describe(kInput, name, element));
}

void UpdateProgramBuilder::give(StringRef name, Value value) {
  const std::string result = (name + ".new").str();
  results.push_back({nameAttribute(b.getContext(), kOutput, result), value,
                     describe(kOutput, result, nn::TensorBuilder::elementOf(value))});
}

void UpdateProgramBuilder::takeScalars(UpdateStep &step) {
  for (const Key &key : orderKeys(definition))
    if (const double *number = std::get_if<double>(&key.initial);
        number && !(key.zeroIsAbsent && settings.getNumber(key.name) == 0))
      step.scalars[key.name] = takeScalar(key.name);
  for (const SharedState &state : definition.shared)
    if (!state.isNeeded || state.isNeeded(settings)) {
      Value value = takeScalar(state.name);
      step.scalars[state.name] = state.isAdvancedByUpdates ? state.advance(step, state, value) : value;
    }
}

void UpdateProgramBuilder::takeStates(UpdateStep &step) {
  for (const StateDefinition &state : definition.states) {
    if (!isNeeded(state))
      continue;
    if (!isBytes(state)) {
      SmallVector<int64_t> dims(state.shape ? *state.shape(shape) : SmallVector<int64_t>(shape));
      step.states[state.name] = take(nameOf(state), dims, computed);
      continue;
    }
    Value codes = take(state.name, shape, b.getI8Type());
    Value largest = take(nameLargest(state.name), {blocks->getCount()}, b.getF32Type());
    step.states[state.name] =
        decode(b, {blocks->cut(codes), largest}, state.storage == Storage::Bytes, computed);
  }
}

void UpdateProgramBuilder::giveStates(UpdateStep &step) {
  for (const SharedState &state : definition.shared)
    if (state.isAdvancedByUpdates)
      give(state.name, step.scalar(state.name));
  for (const StateDefinition &state : definition.states) {
    if (!isNeeded(state))
      continue;
    Value value = step.states[state.name];
    if (!isBytes(state)) {
      give(nameOf(state), value);
      continue;
    }
    ByteState next = encode(b, value, state.storage == Storage::Bytes);
    give(state.name, blocks->join(next.codes));
    give(nameLargest(state.name), next.largest);
  }
}

LogicalResult UpdateProgramBuilder::run() {
  Type element = form.isDouble ? Type(b.getF64Type()) : b.getF32Type();
  // States in bytes, or f32 where a tensor is small, are of arithmetic in f32.
  computed = keepsBytes(definition) ? Type(b.getF32Type()) : element;
  if (keepsBytes(definition) && form.hasBytes)
    blocks.emplace(b, shape, axes);
  Value parameter = take("parameter", shape, element), gradient = take("gradient", shape, element);
  UpdateStep step{{b, settings}, b.cast(parameter, computed), b.cast(gradient, computed)};
  step.shape = shape;
  step.axes = axes;
  step.holdsAhead = definition.ahead != nullptr;
  takeStates(step);
  takeScalars(step);
  if (settings.has(kMaximize) && settings.isOn(kMaximize))
    step.gradient = b.neg(step.gradient);
  step.gradient = step.scale(step.gradient, takeScalar("gradient_scale"));
  if (failed(applyFormula(definition, blocks, step)))
    return failure();
  give("parameter", b.cast(step.parameter, element));
  giveStates(step);
  composer.finish(results, /*dropArguments=*/true);
  composer.getFunction()->setAttr(kBinding, b.getI64IntegerAttr(binding));
  return success();
}

LogicalResult buildUpdateProgram(ModuleOp module, const OptimizerSpec &optimizer, const UpdateForm &form,
                                 ArrayRef<int64_t> shape, int64_t binding) {
  return UpdateProgramBuilder(module, optimizer, form, shape, binding).run();
}

} // namespace ortc::train
