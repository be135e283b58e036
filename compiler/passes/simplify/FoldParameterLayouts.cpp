// Store parameters as kernels want them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks at all functions before it changes any: a tensor has one layout for all of them. Other layouts than
// permutations (splits, merges) are not tried.
#include "compiler/passes/simplify/Passes.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace ortc::simplify {

#define GEN_PASS_DEF_FOLDPARAMETERLAYOUTSPASS
#include "compiler/passes/simplify/Passes.h.inc"

/// The arguments of all functions that carry a tensor, by symbol.
using TensorArguments = llvm::MapVector<StringAttr, SmallVector<BlockArgument>>;

static TensorArguments collectArguments(ModuleOp module) {
  TensorArguments arguments;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    for (BlockArgument argument : function.getArguments())
      if (auto symbol = function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kTensor))
        arguments[symbol.getAttr()].push_back(argument);
  }
  return arguments;
}

/// The permutation by which every use of every argument transposes, or null.
static nn::TransposeOp commonTranspose(ArrayRef<BlockArgument> arguments) {
  nn::TransposeOp common;
  for (BlockArgument argument : arguments) {
    for (Operation *user : argument.getUsers()) {
      auto transpose = dyn_cast<nn::TransposeOp>(user);
      if (!transpose || (common && common.getPermutation() != transpose.getPermutation()))
        return nullptr;
      common = transpose;
    }
  }
  return common;
}

/// The types of the functions are not yet those of their arguments then.
static void foldLayout(train::TensorOp tensor, ArrayRef<BlockArgument> arguments, nn::TransposeOp transpose) {
  SmallVector<int64_t> permutation(transpose.getPermutation());
  if (auto stored = tensor.getPermutation())
    for (int64_t &dim : permutation)
      dim = (*stored)[dim];
  tensor.setPermutation(permutation);
  for (BlockArgument argument : arguments) {
    argument.setType(tensor.getStoredType());
    for (Operation *user : llvm::make_early_inc_range(argument.getUsers())) {
      user->getResult(0).replaceAllUsesWith(argument);
      user->erase();
    }
  }
}

namespace {

struct FoldParameterLayoutsPass : impl::FoldParameterLayoutsPassBase<FoldParameterLayoutsPass> {
  using Base::Base;
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto &[symbol, arguments] : collectArguments(getOperation())) {
      auto tensor = symbols.lookup<train::TensorOp>(symbol.getValue());
      bool fixed = !tensor || tensor->hasAttr(train::kBound) ||
                   (tensor.getRole() != train::Role::parameter && tensor.getRole() != train::Role::constant);
      if (fixed)
        continue;
      if (nn::TransposeOp transpose = commonTranspose(arguments))
        foldLayout(tensor, arguments, transpose);
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        function.setType(FunctionType::get(function.getContext(), function.getBody().getArgumentTypes(),
                                           function.getResultTypes()));
  }
};

} // namespace
} // namespace ortc::simplify
