//===- Initializers.cpp - which initializers are trained ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Initializers.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/onnx/InitializerOrigin.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <cstring>
#include <regex>

using namespace mlir;

namespace ortc::legalize {

bool isGeneratedName(StringRef name) {
  static const std::regex pattern(
      R"(\d+|onnx::.*|/.*|.*Constant(_\d+)?(_output_\d+)?|_?(val|tmp|const|constant|int64|float32)_?\d*)"
      R"(|scalar_tensor_default.*|.*_(output|cast|to_copy)(_\d+)?|_inlfunc_.*|ortshared_.*)"
      R"(|.*__\d+(:\d+)?|.*/(x|y|Const(_\d+)?)(:\d+)?|unity\d*)"); // of tf2onnx, of TensorFlow and of skl2onnx
  return std::regex_match(name.str(), pattern);
}

/// Operand numbers that an operator takes as weights.
static bool isWeightOperand(StringRef op, unsigned operand) {
  if (op == "PRelu" || op == "RMSNormalization" || op == "SimplifiedLayerNormalization")
    return operand == 1;
  if (op == "MatMul")
    return operand <= 1;
  bool takesWeights =
      llvm::StringSwitch<bool>(op)
          .Cases({"Conv", "ConvTranspose", "Gemm", "BatchNormalization", "InstanceNormalization"}, true)
          .Cases({"LayerNormalization", "GroupNormalization", "RNN", "GRU", "LSTM", "DeformConv"}, true)
          .Default(false);
  return takesWeights &&
         (operand == 1 || operand == 2 || (operand == 3 && (op == "RNN" || op == "GRU" || op == "LSTM")));
}

static bool isView(StringRef op) {
  return llvm::StringSwitch<bool>(op)
      .Cases({"Identity", "Unsqueeze", "Squeeze", "Reshape", "Transpose", "Flatten", "Cast"}, true)
      .Default(false);
}

bool isTakenAsWeight(Value value) {
  SmallVector<Value> todo = {value};
  llvm::DenseSet<Value> seen;
  while (!todo.empty()) {
    Value next = todo.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (OpOperand &use : next.getUses()) {
      auto node = dyn_cast<onnx::NodeOp>(use.getOwner());
      if (!node)
        continue;
      if (isWeightOperand(node.getOpType(), use.getOperandNumber()))
        return true;
      if (isView(node.getOpType()) && use.getOperandNumber() == 0)
        todo.push_back(node.getResult(0));
    }
  }
  return false;
}

/// Whether every use is a bound of Clip. Learned ones are rare, and named by --train.
static bool isBound(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUses(), [](OpOperand &use) {
    auto node = dyn_cast<onnx::NodeOp>(use.getOwner());
    return node && node.getOpType() == "Clip" && use.getOperandNumber() >= 1;
  });
}

/// The elements where they are stored as they are.
static ArrayRef<char> rawElements(ElementsAttr value) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    return resource.getRawHandle().getBlob() ? resource.getRawHandle().getBlob()->getData()
                                             : ArrayRef<char>();
  auto dense = dyn_cast<DenseElementsAttr>(value);
  return dense ? dense.getRawData() : ArrayRef<char>();
}

/// Whether the elements are 0, and 1 or something hugely negative, both at least once.
template <typename Float> static bool isMask(ArrayRef<char> bytes) {
  bool hasZero = false, hasOther = false;
  for (size_t at = 0; at + sizeof(Float) <= bytes.size(); at += sizeof(Float)) {
    Float element;
    std::memcpy(&element, bytes.data() + at, sizeof element);
    if (element != 0 && element != 1 && !(element <= Float(-1e4)))
      return false;
    (element == 0 ? hasZero : hasOther) = true;
  }
  return hasZero && hasOther;
}

bool looksLikeTable(const Initializer &entry) {
  static const std::regex pattern(
      R"((.*[./_])?(mask|masks|cos|sin|cos_cached|sin_cached|inv_freq|freqs|freqs_cis|pe|alibi|anchors|pixel_mean|pixel_std))",
      std::regex::icase);
  ElementsAttr value = onnx::InitializerOp(entry.op).getValue();
  return std::regex_match(entry.name, pattern) ||
         (value.getElementType().isF32() && isMask<float>(rawElements(value))) ||
         (value.getElementType().isF64() && isMask<double>(rawElements(value)));
}

bool isRunningStatistic(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUses(), [](OpOperand &use) {
    auto node = dyn_cast<onnx::NodeOp>(use.getOwner());
    return node && node.getOpType() == "BatchNormalization" && use.getOperandNumber() >= 3;
  });
}

std::vector<Initializer> classifyInitializers(onnx::GraphOp graph, const LegalizeOptions &options) {
  std::vector<Initializer> result;
  for (auto op : graph.getBlock().getOps<onnx::InitializerOp>()) {
    Initializer entry;
    entry.op = op;
    entry.name = op.getName().str();
    auto type = dyn_cast<RankedTensorType>(op.getOutput().getType());
    entry.elements = type ? type.getNumElements() : 0;
    entry.isFloat = type && (type.getElementType().isF32() || type.getElementType().isF64() ||
                             type.getElementType().isF16() || type.getElementType().isBF16());
    auto firstMatch = [&](const std::vector<NamePattern> &patterns) -> const NamePattern * {
      for (const NamePattern &pattern : patterns)
        if (pattern.matches(entry.name))
          return &pattern;
      return nullptr;
    };
    const NamePattern *frozen = firstMatch(options.freeze);
    entry.requested = firstMatch(options.train);
    if (auto origin = op->getAttrOfType<StringAttr>(onnx::kOrigin))
      entry.origin = origin.str();
    if (!entry.isFloat)
      entry.reason = "not floating-point";
    else if (!options.trains)
      entry.reason = "there is no loss";
    else if (frozen)
      entry.reason = "frozen by --freeze " + frozen->getText();
    else if (!options.train.empty() && !entry.requested)
      entry.reason = "not named by --train";
    else if (entry.requested)
      entry.trained = true;
    else if (op.getOutput().use_empty())
      entry.reason = "used by no node";
    else if (isRunningStatistic(op.getOutput()))
      entry.reason = "running statistic of a batch normalisation";
    else if (entry.origin == "buffer" || entry.origin == "constant")
      entry.reason = "a " + entry.origin + " of the exported program";
    else if (entry.origin == "parameter")
      entry.trained = true;
    else if (entry.elements == 1 && isGeneratedName(entry.name) && !isTakenAsWeight(op.getOutput()))
      entry.reason = "a constant lifted by the exporter: one element and a generated name";
    else if (isBound(op.getOutput()))
      entry.reason = "a bound of Clip";
    else
      entry.trained = true;
    result.push_back(std::move(entry));
  }
  return result;
}

/// Whether the results of `op` move with its floating-point operands.
static bool passesGradients(Operation *op) {
  return !isa<arith::CmpFOp, arith::FPToSIOp, arith::FPToUIOp, math::FloorOp, math::CeilOp, math::RoundOp,
              math::RoundEvenOp, math::TruncOp, math::IsNaNOp, math::IsInfOp, math::IsFiniteOp,
              nn::ArgReduceOp, nn::ArgSortOp, nn::DetachOp, nn::IotaOp>(op);
}

llvm::DenseSet<Value> reachableArguments(Block &block, ArrayRef<Value> outputs) {
  llvm::DenseSet<Value> seen;
  auto isFloat = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && isa<FloatType>(type.getElementType());
  };
  SmallVector<Value> todo(llvm::make_filter_range(outputs, isFloat));
  while (!todo.empty()) {
    Value next = todo.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    Operation *op = next.getDefiningOp();
    if (auto straight = dyn_cast_or_null<nn::StraightThroughOp>(op))
      todo.push_back(straight.getThrough());
    else if (op && passesGradients(op))
      llvm::append_range(todo, llvm::make_filter_range(op->getOperands(), isFloat));
  }
  return seen;
}

} // namespace ortc::legalize
