// Which initializers are trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Initializers.h"

#include "compiler/frontend/FakeQuantizers.h"
#include "compiler/frontend/GeneratedNames.h"
#include "compiler/legalize/NormStatistics.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/onnx/InitializerOrigin.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <cstring>
#include <regex>

using namespace mlir;

namespace ortc::legalize {

static bool isFakeQuantize(onnx::NodeOp node) {
  return node.getOpType() == frontend::kFakeQuantize && node.getDomainName() == frontend::kOwnDomain;
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
      if (isWeightOperand(node.getOpType(), use.getOperandNumber()) ||
          (isFakeQuantize(node) && use.getOperandNumber() == 3))
        return true;
      if ((isView(node) || isFakeQuantize(node)) && use.getOperandNumber() == 0)
        todo.push_back(node.getResult(0));
    }
  }
  return false;
}

/// Whether every use is a bound of Clip, which has one element.
static bool isClipBound(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUses(), [](OpOperand &use) {
    auto node = dyn_cast<onnx::NodeOp>(use.getOwner());
    return node && node.getOpType() == "Clip" && use.getOperandNumber() >= 1;
  });
}

/// Names in files of a converter from JAX, where nothing has a name of its own.
static bool isCountedName(StringRef name) {
  StringRef head = name.rtrim("0123456789");
  return head.size() < name.size() && head.ends_with("_");
}

/// Whether a converter wrote a number of a formula so: one element, and a name that it made up.
static bool isLiftedConstant(const Initializer &entry, bool isFromJax) {
  onnx::InitializerOp op = entry.op;
  Value value = op.getOutput();
  auto type = cast<RankedTensorType>(value.getType());
  if (entry.elements != 1 || !entry.isMadeUp || isTakenAsWeight(value) || isReparametrized(value))
    return false;
  // Numbers of a program in JAX have no dimensions; arrays of one element have.
  return type.getRank() == 0 || !(isFromJax || isBias(value));
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
         (value.getElementType().isF32() && isMask<float>(storedElements(value))) ||
         (value.getElementType().isF64() && isMask<double>(storedElements(value)));
}

StringRef describeState(Value value) {
  auto areAll = [&](auto isOne) {
    return !value.use_empty() && llvm::all_of(value.getUses(), [&](OpOperand &use) {
      auto node = dyn_cast<onnx::NodeOp>(use.getOwner());
      return node && isOne(node, use.getOperandNumber());
    });
  };
  if (isOnlyStatistic(value))
    return kNormStatistic;
  if (areAll([](onnx::NodeOp node, unsigned operand) {
        return isFakeQuantize(node) && (operand == 1 || operand == 2);
      }))
    return "a range of --qat";
  return "";
}

bool freezeFormulaConstants(std::vector<Initializer> &initializers, const ShapeOf &shapeOf) {
  bool isAny = false;
  for (Initializer &entry : initializers) {
    if (!entry.trained || !entry.requestedBy.empty() || !entry.origin.empty() ||
        isTakenAsWeight(entry.op.getOutput()))
      continue;
    std::string role = findFormulaRole(entry.op, entry.isMadeUp, shapeOf);
    if (role.empty())
      continue;
    entry.trained = false;
    entry.isFormula = true;
    entry.reason = "a constant of a formula: " + role;
    isAny = true;
  }
  return isAny;
}

namespace {

/// The flags, and the lists in the model's metadata, that have a say on one initializer.
class Choice {
public:
  Choice(const Initializer &entry) : name(entry.name) {
    onnx::InitializerOp op = entry.op;
    if (auto list = op->getAttrOfType<ArrayAttr>(onnx::kSources))
      for (Attribute source : list)
        sources.push_back(cast<StringAttr>(source).str());
  }
  /// What was computed from parameters is meant by a list that names any of them, or `all`.
  bool isNamedBy(const NamePattern &pattern, bool all) const {
    auto matches = [&](const std::string &source) { return pattern.matches(source); };
    return pattern.matches(name) || (pattern.getNames() && !sources.empty() &&
                                     (all ? llvm::all_of(sources, matches) : llvm::any_of(sources, matches)));
  }
  const NamePattern *findFirst(const std::vector<NamePattern> &patterns, bool all) const {
    auto found = llvm::find_if(patterns, [&](const NamePattern &each) { return isNamedBy(each, all); });
    return found == patterns.end() ? nullptr : &*found;
  }

private:
  const std::string &name;
  std::vector<std::string> sources;
};

} // namespace

/// Decides where flags or the model's metadata do; false where they leave it open.
static bool decideByChoice(Initializer &entry, const LegalizeOptions &options) {
  Choice choice(entry);
  if (const NamePattern *frozen = choice.findFirst(options.freeze, /*all=*/true)) {
    entry.reason =
        (frozen->getText().starts_with("--") ? "frozen by " : "frozen by --freeze ") + frozen->getText();
  } else if (options.scales && options.scales->matches(entry.name)) {
    entry.trained = true;
    entry.requestedBy = "--qat";
  } else if (!options.train.empty()) {
    entry.trained = choice.findFirst(options.train, /*all=*/false);
    (entry.trained ? entry.requestedBy : entry.reason) = entry.trained ? "--train" : "not named by --train";
  } else if (const NamePattern *list = choice.findFirst(options.frozen, /*all=*/true)) {
    entry.reason = "frozen by " + list->getText();
  } else if (options.trainable) {
    entry.trained = choice.isNamedBy(*options.trainable, /*all=*/false);
    (entry.trained ? entry.requestedBy : entry.reason) =
        (entry.trained ? "" : "not trained by ") + options.trainable->getText();
  } else {
    return false;
  }
  return true;
}

/// The default rule, as far as it needs no shapes.
static void decideByUse(Initializer &entry, bool isFromJax, bool isStatistic) {
  Value value = onnx::InitializerOp(entry.op).getOutput();
  if (value.use_empty())
    entry.reason = "used by no node";
  else if (isState(value))
    entry.reason = describeState(value);
  else if (entry.origin == "buffer" || entry.origin == "constant")
    entry.reason = "a " + entry.origin + " of the exported program";
  else if (entry.origin == "parameter")
    entry.trained = true;
  else if (isLiftedConstant(entry, isFromJax))
    entry.reason = "a constant lifted by the exporter: one element and a generated name";
  else if (isClipBound(value))
    entry.reason = "a bound of Clip";
  else if (isStatistic)
    entry.reason = "running statistic of a batch normalisation that is written as its formula";
  else
    entry.trained = true;
  entry.isFormula = isStatistic && !entry.trained;
}

std::vector<Initializer> classifyInitializers(onnx::GraphOp graph, const LegalizeOptions &options) {
  std::vector<Initializer> result;
  auto producer = graph->getParentOp()->getAttrOfType<StringAttr>("onnx.producer");
  bool isFromJax = producer && producer == "jax2onnx";
  llvm::DenseSet<Operation *> statistics = findNormStatistics(graph);
  for (auto op : graph.getBlock().getOps<onnx::InitializerOp>()) {
    Initializer entry;
    entry.op = op;
    entry.name = op.getName().str();
    auto type = dyn_cast<RankedTensorType>(op.getOutput().getType());
    entry.elements = type ? type.getNumElements() : 0;
    entry.isFloat = type && (type.getElementType().isF32() || type.getElementType().isF64() ||
                             type.getElementType().isF16() || type.getElementType().isBF16());
    entry.isMadeUp = frontend::isGeneratedName(entry.name) || (isFromJax && isCountedName(entry.name));
    if (auto origin = op->getAttrOfType<StringAttr>(onnx::kOrigin))
      entry.origin = origin.str();
    if (!entry.isFloat)
      entry.reason = "not floating-point";
    else if (!options.trains)
      entry.reason = "there is no loss";
    else if (!decideByChoice(entry, options))
      decideByUse(entry, isFromJax, statistics.contains(op));
    result.push_back(std::move(entry));
  }
  freezeFormulaConstants(result, statedShape);
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
