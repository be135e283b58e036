// Store trained parameters of f32 as bf16.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs on differentiated functions: gradients are those of what was extended, and stay f32.
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/ProgramParts.h"
#include "compiler/passes/train/TrainingProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace ortc::train {

#define GEN_PASS_DEF_NARROWPARAMETERSPASS
#include "compiler/passes/train/Passes.h.inc"

static uint16_t roundToNearest(float value) {
  llvm::APFloat number(value);
  bool isInexact = false;
  number.convert(llvm::APFloat::BFloat(), llvm::APFloat::rmNearestTiesToEven, &isInexact);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

/// The elements as bf16; null where they cannot be read.
static ElementsAttr roundInitial(ElementsAttr initial, RankedTensorType type, StringRef name) {
  if (auto dense = dyn_cast<DenseFPElementsAttr>(initial))
    return dense.mapValues(type.getElementType(), [](const llvm::APFloat &value) {
      return llvm::APInt(16, roundToNearest(value.convertToFloat()));
    });
  auto resource = dyn_cast<DenseResourceElementsAttr>(initial);
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  auto count = static_cast<size_t>(type.getNumElements());
  if (!blob || blob->getData().size() != count * sizeof(float))
    return nullptr;
  AsmResourceBlob rounded = HeapAsmResourceBlob::allocate(count * sizeof(uint16_t), alignof(uint64_t));
  auto *to = reinterpret_cast<uint16_t *>(rounded.getMutableData().data());
  for (size_t i = 0; i < count; ++i) {
    float value = 0; // the bytes of a file lie anywhere
    std::memcpy(&value, blob->getData().data() + i * sizeof(float), sizeof(float));
    to[i] = roundToNearest(value);
  }
  return DenseResourceElementsAttr::get(type, name, std::move(rounded));
}

static LogicalResult narrowTensor(TensorOp parameter) {
  auto type = cast<RankedTensorType>(parameter.getType());
  if (!type.getElementType().isF32())
    return parameter.emitError()
           << "parameter '" << parameter.getName() << "' is of type " << type.getElementType()
           << ", but those that are stored as bf16 are of f32 before; freeze it, or train "
              "without --parameters bf16";
  RankedTensorType narrow = type.clone(BFloat16Type::get(parameter.getContext()));
  parameter.setType(narrow);
  ElementsAttr initial = parameter.getInitialAttr();
  if (!initial)
    return success();
  ElementsAttr rounded = roundInitial(initial, narrow, parameter.getName());
  if (!rounded)
    return parameter.emitError() << "the initial value of '" << parameter.getName() << "' cannot be read";
  parameter.setInitialAttr(rounded);
  return success();
}

/// The function takes parameters as they are stored, and extends them first.
static void extendArguments(func::FuncOp function, const llvm::StringMap<RankedTensorType> &stored) {
  OpBuilder builder(&function.front(), function.front().begin());
  for (BlockArgument argument : function.getArguments()) {
    auto symbol = function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), kTensor);
    if (!symbol || !stored.contains(symbol.getValue()))
      continue;
    Type wide = argument.getType();
    argument.setType(stored.lookup(symbol.getValue()));
    auto extended = arith::ExtFOp::create(builder, argument.getLoc(), wide, argument);
    argument.replaceAllUsesExcept(extended, extended);
  }
  function.setType(FunctionType::get(function.getContext(), function.front().getArgumentTypes(),
                                     function.getResultTypes()));
}

LogicalResult narrowParameters(ModuleOp module) {
  llvm::StringMap<RankedTensorType> stored;
  for (TensorOp parameter : findParameters(module)) {
    if (failed(narrowTensor(parameter)))
      return failure();
    stored[parameter.getSymName()] = parameter.getStoredType();
  }
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      extendArguments(function, stored);
  return success();
}

namespace {

struct NarrowParametersPass : impl::NarrowParametersPassBase<NarrowParametersPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(narrowParameters(getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::train
