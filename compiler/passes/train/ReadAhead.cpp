// Optimizers whose training reads another point than the parameter.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/ReadAhead.h"

#include "compiler/passes/train/Channels.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

/// The argument of a function that is the value of this tensor, added where there is none.
static Value takeTensor(func::FuncOp function, Attribute tensor, Type type, Location loc) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (function.getArgAttr(i, kTensor) == tensor)
      return function.getArgument(i);
  MLIRContext *context = function.getContext();
  unsigned end = function.getNumArguments();
  (void)function.insertArgument(
      end, type, DictionaryAttr::get(context, NamedAttribute(StringAttr::get(context, kTensor), tensor)),
      loc);
  return function.getArgument(end);
}

/// In one function, for its argument `whole`.
static void readAheadOf(func::FuncOp backward, BlockArgument whole, TensorOp parameter,
                        const ParameterGroup &group, const UpdateStep &step,
                        ArrayRef<DictionaryAttr> arguments) {
  TensorBuilder inside(parameter.getLoc(), backward.getContext());
  inside.setInsertionPointToStart(&backward.front());
  SmallVector<Operation *> readers(whole.getUsers());
  auto take = [&](Value value) {
    Attribute tensor = arguments[cast<BlockArgument>(value).getArgNumber()].get(kTensor);
    return takeTensor(backward, tensor, value.getType(), parameter.getLoc());
  };
  Value stored = takeTrained(inside, parameter, whole);
  UpdateStep there{
      {inside, group.getSettings()}, inside.cast(stored, TensorBuilder::elementOf(step.parameter)), {}};
  for (const auto &scalar : step.scalars)
    if (isa<BlockArgument>(scalar.getValue()))
      there.scalars[scalar.getKey()] = take(scalar.getValue());
  for (const auto &state : step.states)
    there.states[state.getKey()] = take(state.getValue());
  Value ahead = inside.cast(group.getDefinition().ahead(there), TensorBuilder::elementOf(whole));
  ahead = putTrained(inside, parameter, ahead, whole);
  whole.replaceUsesWithIf(ahead, [&](OpOperand &use) { return llvm::is_contained(readers, use.getOwner()); });
}

void readAhead(ModuleOp module, TensorOp parameter, const ParameterGroup &group, const UpdateStep &step,
               ArrayRef<DictionaryAttr> arguments) {
  Attribute symbol = symbolAttribute(parameter, kTensor).getValue();
  for (int64_t binding : findBindings(module))
    if (func::FuncOp backward = findPart(module, "backward", binding))
      for (unsigned i = 0; i < backward.getNumArguments(); ++i)
        if (backward.getArgAttr(i, kTensor) == symbol) {
          readAheadOf(backward, backward.getArgument(i), parameter, group, step, arguments);
          break; // an argument for each tensor
        }
}

} // namespace ortc::train
