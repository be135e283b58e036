// Turn large constants into constant tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code may hold small literals only; everything else lives in the constants region, once per value. Equal values are
// found by attribute identity for dense constants; resources are never compared.
#include "compiler/passes/simplify/Passes.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace ortc::simplify {

#define GEN_PASS_DEF_HOISTCONSTANTSPASS
#include "compiler/passes/simplify/Passes.h.inc"

/// Whether `value` is too large to be a literal.
static bool isLarge(ElementsAttr value, int64_t limit) {
  if (value.isSplat())
    return false;
  unsigned width = value.getElementType().getIntOrFloatBitWidth();
  return value.getNumElements() * ((width + 7) / 8) > limit;
}

namespace {

struct HoistConstantsPass : impl::HoistConstantsPassBase<HoistConstantsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    llvm::DenseMap<Attribute, train::TensorOp> tensors;
    for (auto tensor : module.getOps<train::TensorOp>())
      if (tensor.getRole() == train::Role::constant && tensor.getInitialAttr() && !tensor.getPermutation())
        tensors.try_emplace(tensor.getInitialAttr(), tensor);
    for (auto function : module.getOps<func::FuncOp>()) {
      SmallVector<arith::ConstantOp> large;
      function.walk([&](arith::ConstantOp op) {
        auto value = dyn_cast<ElementsAttr>(op.getValue());
        if (value && isLarge(value, limit))
          large.push_back(op);
      });
      hoist(large, function, symbols, tensors);
    }
  }

  /// Replaces `constants` by arguments of `function` that carry constant tensors of their values.
  void hoist(ArrayRef<arith::ConstantOp> constants, func::FuncOp function, SymbolTable &symbols,
             llvm::DenseMap<Attribute, train::TensorOp> &tensors) {
    unsigned count = function.getNumArguments();
    llvm::DenseMap<Attribute, unsigned> numbers; // of arguments, by tensor; the last one of equal ones
    for (unsigned i = 0; i < count; ++i)
      if (Attribute symbol = function.getArgAttr(i, train::kTensor))
        numbers[symbol] = i;
    SmallVector<unsigned> number; // of each constant's argument
    SmallVector<Type> types;
    SmallVector<DictionaryAttr> attributes;
    SmallVector<Location> locations;
    for (arith::ConstantOp op : constants) {
      auto symbol = FlatSymbolRefAttr::get(declare(op, symbols, tensors).getSymNameAttr());
      auto [known, isNew] = numbers.try_emplace(symbol, count + types.size());
      number.push_back(known->second);
      if (!isNew)
        continue;
      types.push_back(op.getType());
      attributes.push_back(DictionaryAttr::get(
          &getContext(), NamedAttribute(StringAttr::get(&getContext(), train::kTensor), symbol)));
      locations.push_back(op.getLoc());
    }
    SmallVector<unsigned> places(types.size(), count);
    if (failed(function.insertArguments(places, types, attributes, locations)))
      return signalPassFailure();
    for (auto [op, index] : llvm::zip_equal(constants, number)) {
      arith::ConstantOp constant = op;
      constant.replaceAllUsesWith(Value(function.getArgument(index)));
      constant.erase();
    }
  }

  /// The constant tensor that has the value of `op`.
  train::TensorOp declare(arith::ConstantOp op, SymbolTable &symbols,
                          llvm::DenseMap<Attribute, train::TensorOp> &tensors) {
    auto value = cast<ElementsAttr>(op.getValue());
    train::TensorOp &tensor = tensors[value];
    if (!tensor) {
      OpBuilder builder = OpBuilder::atBlockBegin(getOperation().getBody());
      std::string name = "constant_" + std::to_string(next++);
      while (symbols.lookup(name))
        name = "constant_" + std::to_string(next++);
      tensor = train::TensorOp::create(builder, op.getLoc(), StringRef(name), train::Role::constant,
                                       StringRef(name), cast<RankedTensorType>(op.getType()),
                                       /*permutation=*/DenseI64ArrayAttr(), value,
                                       /*owner=*/FlatSymbolRefAttr(), /*reason=*/StringAttr());
      symbols.insert(tensor);
    }
    return tensor;
  }

  int64_t next = 0;
};

} // namespace
} // namespace ortc::simplify
