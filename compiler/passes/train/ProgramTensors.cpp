// Declaring scalars and optimizer state.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/ProgramTensors.h"

#include "compiler/passes/train/Channels.h"
#include "dialects/train/ElementTypes.h"

using namespace mlir;

namespace ortc::train {

ProgramTensors::ProgramTensors(ModuleOp module, FunctionComposer *composer)
    : module(module), symbols(module), composer(composer) {
  for (auto tensor : module.getOps<TensorOp>()) {
    taken.insert(tensor.getName());
    last = tensor;
  }
  // Inputs and outputs are found by name as well.
  for (auto function : module.getOps<func::FuncOp>()) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto name = function.getArgAttrOfType<StringAttr>(i, kInput))
        taken.insert(name.getValue());
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (auto name = function.getResultAttrOfType<StringAttr>(i, kOutput))
        taken.insert(name.getValue());
  }
}

FailureOr<TensorOp> ProgramTensors::declare(TensorOp tensor) {
  StringRef name = tensor.getName();
  if (!taken.insert(name).second) {
    emitError(module.getLoc())
        << "the model has a tensor named '" << name
        << "', which is the name of a hyper-parameter or of optimizer state; rename it";
    tensor.erase();
    return failure();
  }
  symbols.insert(tensor, last ? std::next(last->getIterator()) : module.getBody()->begin());
  last = tensor;
  declared[name] = tensor;
  return tensor;
}

static TensorOp create(ModuleOp module, Role role, StringRef symbol, StringRef name, RankedTensorType type,
                       DenseI64ArrayAttr permutation, ElementsAttr initial, FlatSymbolRefAttr owner) {
  OpBuilder builder(module.getContext());
  return TensorOp::create(builder, module.getLoc(), builder.getStringAttr(symbol),
                          RoleAttr::get(module.getContext(), role), builder.getStringAttr(name),
                          TypeAttr::get(type), permutation, initial, owner, StringAttr());
}

FailureOr<Value> ProgramTensors::getScalar(StringRef name, double initial) {
  TensorOp tensor = declared.lookup(name);
  auto type = RankedTensorType::get({}, Float64Type::get(module.getContext()));
  if (!tensor) {
    auto value = DenseElementsAttr::get(type, llvm::APFloat(initial));
    FailureOr<TensorOp> added = declare(create(module, Role::scalar, name, name, type, {}, value, {}));
    if (failed(added))
      return failure();
    tensor = *added;
  }
  return composer->getArgument(symbolAttribute(tensor, kTensor), type);
}

FailureOr<TensorOp> ProgramTensors::declareState(StringRef name, RankedTensorType type,
                                                 ElementsAttr initial) {
  return declare(create(module, Role::state, name, name, type, {}, initial, {}));
}

FailureOr<TensorOp> ProgramTensors::declareState(StringRef name, TensorOp owner, RankedTensorType type,
                                                 DenseI64ArrayAttr permutation, ElementsAttr initial) {
  std::string symbol = (owner.getSymName() + "." + name).str(), full = (owner.getName() + "." + name).str();
  return declare(
      create(module, Role::state, symbol, full, type, permutation, initial, FlatSymbolRefAttr::get(owner)));
}

FailureOr<Port> ProgramTensors::portOf(FailureOr<TensorOp> state) {
  if (failed(state))
    return failure();
  FailureOr<Value> value = composer->getArgument(symbolAttribute(*state, kTensor), state->getStoredType());
  if (failed(value))
    return failure();
  return Port{symbolAttribute(*state, kUpdate), *value};
}

FailureOr<Port> ProgramTensors::getState(StringRef name, RankedTensorType type, ElementsAttr initial) {
  return portOf(declareState(taken.contains(name) ? "optimizer." + name.str() : name.str(), type, initial));
}

FailureOr<Port> ProgramTensors::getState(StringRef name, TensorOp owner, RankedTensorType type,
                                         double initial) {
  ElementsAttr first;
  if (initial != 0)
    first = DenseElementsAttr::get(type, FloatAttr::get(type.getElementType(), initial).getValue());
  return portOf(declareState(name, owner, type, owner.getPermutationAttr(), first));
}

FailureOr<Port> ProgramTensors::getRows(StringRef name, TensorOp owner, RankedTensorType type) {
  FailureOr<TensorOp> tensor = declareState(name, owner, type, {}, {});
  if (auto integer = dyn_cast<IntegerType>(type.getElementType()); integer && succeeded(tensor))
    (*tensor)->setAttr(kDtype, TypeAttr::get(IntegerType::get(module.getContext(), integer.getWidth(),
                                                              IntegerType::Unsigned)));
  return portOf(tensor);
}

} // namespace ortc::train
