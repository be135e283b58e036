// Parameters with hyper-parameters, or an optimizer, of their own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/ParameterGroups.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

ParameterGroup::ParameterGroup(const OptimizerSpec &optimizer)
    : file(optimizer.file), definition(&definitionOf(optimizer)), keys(orderKeys(*definition)),
      settings(settingsOf(optimizer)) {}

ParameterGroup::ParameterGroup(const OptimizerGroup &group, size_t number) : ParameterGroup(group.optimizer) {
  prefix = "group" + std::to_string(number) + ".";
  isOther = group.isOther;
  lrScale = group.lrScale;
  own = group.own;
}

/// Whether the state is that of `base`, which has it.
bool ParameterGroup::isShared(const SharedState &state, const ParameterGroup &base) const {
  return !isOther && base.shared.count(state.name) && llvm::none_of(state.keys, [&](const char *key) {
    return owns(key) || (StringRef(key) == kLr && lrScale != 1);
  });
}

LogicalResult ParameterGroup::takeScalar(ProgramTensors &tensors, TensorBuilder &b, const Key &key,
                                         Value &value) const {
  double initial = settings.getNumber(key.name);
  if (key.zeroIsAbsent && initial == 0)
    return success();
  auto take = [&](const std::string &name, double number, Value &scalar) -> LogicalResult {
    FailureOr<Value> found = tensors.getScalar(name, number);
    if (succeeded(found))
      scalar = *found;
    return found;
  };
  if (failed(take((isOther || owns(key.name) ? prefix : "") + key.name, initial, value)))
    return failure();
  if (schedule && StringRef(key.name) == kLr)
    value = schedule(value);
  Value scale;
  if (StringRef(key.name) != kLr || lrScale == 1)
    return success();
  if (failed(take(prefix + "lr_scale", lrScale, scale)))
    return failure();
  value = b.mul(value, scale);
  return success();
}

LogicalResult ParameterGroup::advance(ProgramTensors &tensors, TensorBuilder &b, const ParameterGroup *base,
                                      SmallVectorImpl<std::pair<Port, Value>> &updates) {
  auto type = RankedTensorType::get({}, b.getF64Type());
  for (const SharedState &state : definition->shared) {
    if (state.isNeeded && !state.isNeeded(settings))
      continue;
    if (base && isShared(state, *base)) {
      shared[state.name] = base->shared.lookup(state.name);
      continue;
    }
    ElementsAttr initial =
        state.initial == 0 ? ElementsAttr() : DenseElementsAttr::get(type, APFloat(state.initial));
    FailureOr<Port> port = tensors.getState(prefix + state.name, type, initial);
    if (failed(port))
      return failure();
    ScalarStep step{b, settings, shared};
    for (const char *name : state.keys) {
      auto key = llvm::find_if(keys, [&](const Key &each) { return StringRef(each.name) == name; });
      if (Value value; failed(takeScalar(tensors, b, *key, value)))
        return failure();
      else if (value)
        step.scalars[name] = value;
    }
    Value advanced = state.advance(step, state, port->value);
    shared[state.name] = advanced;
    updates.push_back({*port, advanced});
  }
  return success();
}

LogicalResult ParameterGroup::takeScalars(ProgramTensors &tensors, TensorBuilder &b, bool decays,
                                          llvm::StringMap<Value> &scalars) const {
  for (const auto &each : shared)
    scalars[each.getKey()] = each.getValue();
  for (const Key &key : keys) {
    if (!std::holds_alternative<double>(key.initial) || (!decays && StringRef(key.name) == kWeightDecay))
      continue;
    Value value;
    if (failed(takeScalar(tensors, b, key, value)))
      return failure();
    if (value)
      scalars[key.name] = value;
  }
  return success();
}

} // namespace ortc::train
