// Where a batch normalisation has its mean and variance from.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/NormStatistics.h"

#include "compiler/legalize/FormulaConstants.h"
#include "compiler/legalize/Node.h"
#include "dialects/onnx/InitializerOrigin.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace ortc::legalize {

static bool isNorm(onnx::NodeOp node) {
  return node.getOpType() == "BatchNormalization" && node.getDomainName().empty();
}

/// Whether the node gives its first operand, or repeats it when that is a vector.
static bool repeats(onnx::NodeOp node) {
  return node.getDomainName().empty() && node.getInputs().size() > 0 &&
         (node.getOpType() == "Identity" || node.getOpType() == "Tile" || node.getOpType() == "Expand");
}

onnx::InitializerOp findStatistic(Value value, std::string *name) {
  bool isRepeated = false;
  while (auto node = value ? value.getDefiningOp<onnx::NodeOp>() : onnx::NodeOp()) {
    if (!repeats(node))
      return {};
    bool isIdentity = node.getOpType() == "Identity";
    isRepeated |= !isIdentity;
    if (name && name->empty() && isIdentity)
      *name = node.getOutputName(0).str();
    value = node.getInput(0);
  }
  auto initializer = value ? value.getDefiningOp<onnx::InitializerOp>() : onnx::InitializerOp();
  auto type =
      initializer ? dyn_cast<RankedTensorType>(initializer.getOutput().getType()) : RankedTensorType();
  bool fits = type && isa<FloatType>(type.getElementType()) && (!isRepeated || type.getRank() == 1);
  return fits ? initializer : onnx::InitializerOp();
}

bool isOnlyStatistic(Value value) {
  SmallVector<Value> todo = {value};
  llvm::DenseSet<Value> seen;
  bool isAny = false;
  while (!todo.empty()) {
    Value next = todo.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (OpOperand &use : next.getUses()) {
      auto node = dyn_cast<onnx::NodeOp>(use.getOwner());
      bool isRead = node && isNorm(node) && use.getOperandNumber() >= 3;
      isAny |= isRead;
      if (isRead)
        continue;
      if (!node || !repeats(node) || use.getOperandNumber() != 0)
        return false;
      todo.push_back(node.getResult(0));
    }
  }
  return isAny;
}

/// Whether a statistic is computed from the norm's input, or from constants alone.
static bool isOfBatch(Value statistic, Value input) {
  while (auto node = input.getDefiningOp<onnx::NodeOp>()) {
    if (!isView(node) || node.getInputs().empty() || !node.getInput(0))
      break;
    input = node.getInput(0);
  }
  SmallVector<Value> todo = {statistic};
  llvm::DenseSet<Value> seen;
  bool readsOthers = false;
  while (!todo.empty()) {
    Value next = todo.pop_back_val();
    if (next == input)
      return true;
    if (!next || !seen.insert(next).second)
      continue;
    Operation *op = next.getDefiningOp();
    readsOthers |= !op || isa<onnx::InitializerOp>(op);
    if (auto node = dyn_cast_or_null<onnx::NodeOp>(op))
      llvm::append_range(todo, node->getOperands());
  }
  return !readsOthers;
}

NormStatistics statisticsOf(onnx::NodeOp norm) {
  auto traced = norm->getAttrOfType<StringAttr>(onnx::kTracedNorm);
  if (traced && traced == onnx::kBatchOnly)
    return NormStatistics::batch;
  if (norm.getInputs().size() < 5)
    return NormStatistics::given;
  Value mean = norm.getInput(3), variance = norm.getInput(4);
  if (findStatistic(mean) && findStatistic(variance))
    return NormStatistics::running;
  bool isBatch =
      normalizesByBatch(norm) && isOfBatch(mean, norm.getInput(0)) && isOfBatch(variance, norm.getInput(0));
  return isBatch ? NormStatistics::batch : NormStatistics::given;
}

} // namespace ortc::legalize
