// Constants of formulas among initializers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every question is a search along the uses or the operands of a value that stops after a fixed number of
// values and of their uses: formulas are short, graphs are not, and a model may have as many initializers as
// nodes. What lies beyond is not found.
#include "compiler/legalize/FormulaConstants.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace ortc::legalize {

namespace {

/// So many values are looked at for one question, so many operands of a node, and views before a value.
constexpr unsigned kMostValues = 64;
/// And so many uses of all of these values.
constexpr unsigned kMostUses = 1024;

/// Calls `visit` if the use is one by a node of the standard.
template <typename Visit> bool visitUse(OpOperand &use, Visit visit) {
  auto node = dyn_cast<onnx::NodeOp>(use.getOwner());
  return node && node.getDomainName().empty() && node.getNumResults() > 0 &&
         visit(node, use.getOperandNumber());
}

/// Calls `visit` with the standard's nodes that read the value, and with the number of the operand, until it
/// returns true.
template <typename Visit> bool anyUse(Value value, Visit visit) {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) { return visitUse(use, visit); });
}

/// A search over values: each is looked at once, and so many in all.
class Search {
public:
  explicit Search(Value start) { push(start); }
  void push(Value value) {
    if (value && left > 0 && seen.insert(value).second) {
      todo.push_back(value);
      --left;
    }
  }
  void push(ValueRange values) {
    for (Value value : values.take_front(kMostValues))
      push(value);
  }
  Value next() { return todo.empty() ? Value() : todo.pop_back_val(); }

  /// As the function, as far as there are uses left to be looked at.
  template <typename Visit> bool anyUse(Value value, Visit visit) {
    for (OpOperand &use : value.getUses()) {
      if (usesLeft == 0)
        return false;
      --usesLeft;
      if (visitUse(use, visit))
        return true;
    }
    return false;
  }

private:
  unsigned left = kMostValues, usesLeft = kMostUses;
  SmallVector<Value> todo;
  llvm::DenseSet<Value> seen;
};

/// Something that has the elements of an initializer, or their square roots, reciprocals or negatives.
struct Alias {
  Value value;
  double number;
};

} // namespace

static onnx::NodeOp nodeOf(Value value) {
  auto node = value ? value.getDefiningOp<onnx::NodeOp>() : onnx::NodeOp();
  return node && node.getDomainName().empty() ? node : onnx::NodeOp();
}

bool isView(onnx::NodeOp node) {
  return node.getDomainName().empty() && llvm::StringSwitch<bool>(node.getOpType())
                                             .Cases({"Identity", "Unsqueeze", "Squeeze", "Reshape"}, true)
                                             .Cases({"Transpose", "Flatten", "Cast", "CastLike"}, true)
                                             .Default(false);
}

/// Whether the node passes on the elements of operand 0: a view, a cast, a broadcast.
static bool passesElements(onnx::NodeOp node) {
  return isView(node) || (node.getDomainName().empty() && node.getOpType() == "Expand");
}

/// The value before views, casts and broadcasts, of which there may be so many.
static Value strip(Value value) {
  for (unsigned i = 0; i < kMostValues; ++i) {
    onnx::NodeOp node = nodeOf(value);
    if (!node || !passesElements(node))
      break;
    value = node.getInput(0);
  }
  return value;
}

static bool isConstant(Value value) {
  Value source = strip(value);
  onnx::NodeOp node = nodeOf(source);
  return source && (source.getDefiningOp<onnx::InitializerOp>() || (node && node.getOpType() == "Constant"));
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

ArrayRef<char> storedElements(ElementsAttr value) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    return resource.getRawHandle().getBlob() ? resource.getRawHandle().getBlob()->getData()
                                             : ArrayRef<char>();
  auto dense = dyn_cast<DenseElementsAttr>(value);
  return dense ? dense.getRawData() : ArrayRef<char>();
}

/// The element that all elements are equal to, bit for bit.
static std::optional<double> uniformElement(ElementsAttr value) {
  auto type = dyn_cast<FloatType>(value.getElementType());
  ArrayRef<char> bytes = storedElements(value);
  size_t width = type ? type.getWidth() / 8 : 0;
  if (width == 0 || bytes.size() < width ||
      std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) != 0)
    return std::nullopt;
  APInt bits(type.getWidth(), 0);
  llvm::LoadIntFromMemory(bits, reinterpret_cast<const uint8_t *>(bytes.data()),
                          static_cast<unsigned>(width));
  APFloat number(type.getFloatSemantics(), bits);
  bool isRounded = false;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &isRounded);
  return number.convertToDouble();
}

/// Whether `number` is `wanted` but for rounding in its type.
static bool isRounded(double number, double wanted, FloatType type) {
  double unit =
      std::ldexp(1.0, 2 - static_cast<int>(llvm::APFloat::semanticsPrecision(type.getFloatSemantics())));
  return std::fabs(number - wanted) <= unit * std::fabs(wanted);
}

//===----------------------------------------------------------------------===//
// Variances and what they are for
//===----------------------------------------------------------------------===//

/// Whether the value is a sum or a mean of squares or of absolute values, a root of one, or a difference of such means.
static bool isSpread(Value value) {
  Search sums(value);
  SmallVector<Value> summed;
  while (Value next = sums.next()) {
    onnx::NodeOp node = nodeOf(strip(next));
    if (!node)
      continue;
    StringRef type = node.getOpType();
    if (llvm::is_contained({"ReduceSumSquare", "ReduceL1", "ReduceL2"}, type))
      return true;
    if (llvm::is_contained({"ReduceMean", "ReduceSum", "GlobalAveragePool", "AveragePool"}, type))
      summed.push_back(node.getInput(0));
    else if ((type == "MatMul" || type == "Einsum") && node.getInputs().size() == 2 &&
             strip(node.getInput(0)) == strip(node.getInput(1)))
      return true; // x times itself
    else if (llvm::is_contained({"Sqrt", "Abs", "Relu", "Clip", "Sub", "Div"}, type))
      sums.push(node.getInput(0));
    else if (llvm::is_contained({"Max", "Min", "Add", "Sum", "Where"}, type))
      sums.push(node.getInputs());
    else if (type == "Mul")
      for (unsigned i = 0; i < 2; ++i)
        if (isConstant(node.getInput(i)))
          sums.push(node.getInput(1 - i));
  }
  for (Value start : summed) {
    Search squares(start);
    while (Value next = squares.next()) {
      onnx::NodeOp node = nodeOf(strip(next));
      if (!node)
        continue;
      StringRef type = node.getOpType();
      if (type == "Abs" || (type == "Pow" && isConstant(node.getInput(1))))
        return true;
      if (type == "Mul" && strip(node.getInput(0)) == strip(node.getInput(1)))
        return true;
      if (llvm::is_contained({"ReduceMean", "ReduceSum", "Div"}, type))
        squares.push(node.getInput(0));
      else if (type == "Mul")
        for (unsigned i = 0; i < 2; ++i)
          if (isConstant(node.getInput(i)))
            squares.push(node.getInput(1 - i));
    }
  }
  return false;
}

/// Whether a root, a power, a reciprocal or a logarithm of the value is taken, or something divided by it.
static bool isRootedOrDivides(Value value) {
  Search search(value);
  while (Value next = search.next())
    if (search.anyUse(next, [&](onnx::NodeOp node, unsigned operand) {
          StringRef type = node.getOpType();
          if (llvm::is_contained({"Sqrt", "Reciprocal", "Log"}, type) || (type == "Pow" && operand == 0) ||
              (type == "Div" && operand == 1))
            return true;
          bool isPassed = passesElements(node) || type == "Max" || type == "Min" || type == "Clip" ||
                          type == "Div" ||
                          ((type == "Mul" || type == "Add") && isConstant(node.getInput(1 - operand)));
          if (isPassed && (operand == 0 || !passesElements(node)))
            search.push(node.getResult(0));
          return false;
        }))
      return true;
  return false;
}

static std::string roleInSum(onnx::NodeOp node, unsigned operand, double number) {
  bool isGuard = isRootedOrDivides(node.getResult(0)), isTiny = number > 0 && number <= 1e-3;
  if (!isGuard && !isTiny)
    return "";
  bool isAdded = false;
  for (auto [i, other] : llvm::enumerate(node.getInputs().take_front(kMostValues)))
    isAdded |= i != operand && isSpread(other);
  return isAdded             ? "added to a variance or a sum of squares"
         : isGuard && isTiny ? "keeps a root, a logarithm or a divisor from 0"
                             : "";
}

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

static std::optional<double> countElements(std::optional<SmallVector<int64_t>> shape) {
  if (!shape)
    return std::nullopt;
  double count = 1;
  for (int64_t size : *shape)
    count *= static_cast<double>(size);
  return count;
}

/// How many elements each element of `value` is the sum of; nothing where it is no sum, or not known.
static std::optional<double> countSummed(Value value, const ShapeOf &shapeOf) {
  onnx::NodeOp node = nodeOf(strip(value));
  if (!node || !llvm::is_contained({"ReduceSum", "ReduceSumSquare", "ReduceL1"}, node.getOpType()))
    return std::nullopt;
  auto before = countElements(shapeOf(node.getInput(0))), after = countElements(shapeOf(node.getResult(0)));
  return before && after && *after > 0 ? std::optional(*before / *after) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// The elements that a MatMul or an Einsum of two operands adds up for one of its own.
static std::optional<double> countContracted(onnx::NodeOp node, const ShapeOf &shapeOf) {
  auto first = shapeOf(node.getInput(0));
  if (!first || first->empty())
    return std::nullopt;
  if (node.getOpType() == "MatMul")
    return static_cast<double>(first->back());
  StringRef equation = node.getString("equation", "");
  auto [inputs, output] = equation.split("->");
  auto [left, right] = inputs.split(',');
  std::string term = left.trim().str();
  llvm::erase(term, ' ');
  size_t dots = term.find("...");
  double count = 1;
  for (size_t i = 0; i < term.size(); ++i) {
    if (!llvm::isAlpha(term[i]) || output.contains(term[i]) || !right.contains(term[i]))
      continue;
    size_t fromEnd = term.size() - i;
    size_t axis = dots == term.npos || i < dots ? i : first->size() - std::min(fromEnd, first->size());
    if (axis >= first->size())
      return std::nullopt;
    count *= static_cast<double>((*first)[axis]);
  }
  return count;
}

static bool isProduct(onnx::NodeOp node) {
  return (node.getOpType() == "MatMul" || node.getOpType() == "Einsum") && node.getInputs().size() == 2;
}

/// Whether the elements of the node's result are those of operand `operand`, moved, masked, shifted or scaled.
static bool passesScores(onnx::NodeOp node, unsigned operand) {
  StringRef type = node.getOpType();
  return (passesElements(node) && operand == 0) || (type == "Where" && operand >= 1) ||
         ((type == "Div" || type == "Sub" || type == "Clip") && operand == 0) ||
         llvm::is_contained({"Add", "Mul", "Max", "Min", "Tanh", "Sum"}, type);
}

static bool reachesSoftmax(Value value) {
  Search search(value);
  while (Value next = search.next())
    if (search.anyUse(next, [&](onnx::NodeOp node, unsigned operand) {
          if (node.getOpType() == "Softmax" || node.getOpType() == "Exp")
            return true;
          if (passesScores(node, operand))
            search.push(node.getResult(0));
          return false;
        }))
      return true;
  return false;
}

/// The sizes of the heads whose scores, or whose queries or keys, the node scales with one operand; `other`
/// is the other.
static SmallVector<double> findHeadSizes(onnx::NodeOp node, Value other, const ShapeOf &shapeOf) {
  SmallVector<double> sizes;
  auto add = [&](onnx::NodeOp product) {
    if (auto count = countContracted(product, shapeOf); count && *count >= 2)
      sizes.push_back(*count);
  };
  Search before(other);
  while (Value next = before.next()) {
    onnx::NodeOp from = nodeOf(next);
    if (from && isProduct(from))
      reachesSoftmax(node.getResult(0)) ? add(from) : void();
    else if (from)
      for (auto [i, input] : llvm::enumerate(from.getInputs().take_front(kMostValues)))
        if (passesScores(from, static_cast<unsigned>(i)))
          before.push(input);
  }
  Search after(node.getResult(0));
  while (Value next = after.next())
    after.anyUse(next, [&](onnx::NodeOp to, unsigned operand) {
      if (isProduct(to))
        reachesSoftmax(to.getResult(0)) ? add(to) : void();
      else if (passesScores(to, operand))
        after.push(to.getResult(0));
      return false;
    });
  return sizes;
}

/// A factor where `isDivisor` is false.
static std::string roleInScale(onnx::NodeOp node, Value other, double number, bool isDivisor, FloatType type,
                               bool mayScaleScores, const ShapeOf &shapeOf) {
  double factor = isDivisor ? 1 / number : number;
  if (auto count = countSummed(other, shapeOf); count && *count >= 2)
    for (double each : {*count, *count - 1})
      if (each >= 2 && isRounded(factor, 1 / each, type))
        return "divides a sum by a count";
  // Cheap things first: a factor of attention scores is below 1.
  if (mayScaleScores && factor > 0 && factor < 1)
    for (double size : findHeadSizes(node, other, shapeOf))
      if (isRounded(factor, std::pow(size, -0.5), type) || isRounded(factor, std::pow(size, -0.25), type))
        return "scales attention scores by the size of the heads";
  return "";
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// The initializer, and what is computed from it alone, as far as that is no more than so many values.
static SmallVector<Alias> findAliases(onnx::InitializerOp op, double number) {
  SmallVector<Alias> aliases = {{op.getOutput(), number}};
  for (size_t i = 0; i < aliases.size() && aliases.size() < kMostValues; ++i) {
    Alias alias = aliases[i];
    anyUse(alias.value, [&](onnx::NodeOp node, unsigned operand) {
      StringRef type = node.getOpType();
      if (operand == 0 && passesElements(node))
        aliases.push_back({node.getResult(0), alias.number});
      else if (type == "Sqrt")
        aliases.push_back({node.getResult(0), std::sqrt(alias.number)});
      else if (type == "Reciprocal")
        aliases.push_back({node.getResult(0), 1 / alias.number});
      else if (type == "Neg")
        aliases.push_back({node.getResult(0), -alias.number});
      return aliases.size() >= kMostValues;
    });
  }
  return aliases;
}

static bool isBoundOf(onnx::NodeOp node, unsigned operand) {
  return (node.getOpType() == "Clip" && operand >= 1) || node.getOpType() == "Max" ||
         node.getOpType() == "Min";
}

static bool isAlias(ArrayRef<Alias> aliases, Value value) {
  return llvm::any_of(aliases, [&](const Alias &alias) { return alias.value == value; });
}

/// Whether every use, but those that make another alias, is a bound.
static bool isBound(ArrayRef<Alias> aliases) {
  bool isAny = false;
  for (const Alias &alias : aliases)
    for (OpOperand &use : alias.value.getUses()) {
      auto node = dyn_cast<onnx::NodeOp>(use.getOwner());
      if (node && node.getNumResults() && isAlias(aliases, node.getResult(0)))
        continue;
      if (!node || !isBoundOf(node, use.getOperandNumber()))
        return false;
      isAny = true;
    }
  return isAny;
}

std::optional<SmallVector<int64_t>> statedShape(Value value) {
  auto type = value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
  if (!type || !type.hasStaticShape())
    return std::nullopt;
  return SmallVector<int64_t>(type.getShape());
}

std::string findFormulaRole(onnx::InitializerOp op, bool isMadeUp, const ShapeOf &shapeOf) {
  auto type = cast<ShapedType>(op.getOutput().getType());
  auto element = dyn_cast<FloatType>(type.getElementType());
  if (!element || !type.hasStaticShape() || type.getNumElements() == 0 ||
      (type.getNumElements() > 1 && !isMadeUp))
    return "";
  std::optional<double> number = uniformElement(op.getValue());
  if (!number)
    return "";
  if (!std::isfinite(*number) || *number <= -1e4)
    return "fills what a mask leaves out";
  bool isLearned = llvm::any_of(ArrayRef<StringRef>{"temp", "tau", "logit", "learn"},
                                [&](StringRef part) { return op.getName().contains_insensitive(part); });
  bool mayScaleScores = isMadeUp || (type.getRank() == 0 && !isLearned);
  SmallVector<Alias> aliases = findAliases(op, *number);
  if (isBound(aliases))
    return "a bound of Max, Min or Clip";
  std::string role;
  for (const Alias &alias : aliases)
    if (anyUse(alias.value, [&](onnx::NodeOp node, unsigned operand) {
          StringRef kind = node.getOpType();
          if (kind == "Add" || kind == "Sum")
            role = roleInSum(node, operand, alias.number);
          else if (kind == "Mul" || (kind == "Div" && operand == 1))
            role = roleInScale(node, node.getInput(1 - operand), alias.number, kind == "Div", element,
                               mayScaleScores, shapeOf);
          return !role.empty();
        }))
      break;
  return role;
}

//===----------------------------------------------------------------------===//
// Statistics of batch normalisations
//===----------------------------------------------------------------------===//

/// What is known of the numbers that are added to variances: comparing the elements of one takes time.
using Numbers = llvm::DenseMap<Value, std::optional<double>>;

/// Whether the value is an initializer or a constant that may be an epsilon.
static bool isEpsilon(Value value, Numbers &numbers) {
  auto initializer = value ? value.getDefiningOp<onnx::InitializerOp>() : onnx::InitializerOp();
  onnx::NodeOp node = nodeOf(value);
  if (!initializer && !(node && node.getOpType() == "Constant"))
    return false;
  auto [known, isNew] = numbers.try_emplace(value);
  if (isNew)
    if (ElementsAttr elements = initializer ? initializer.getValue() : node.getTensor("value"))
      known->second = uniformElement(elements);
  std::optional<double> number = known->second;
  return number && *number > 0 && *number <= 1e-2;
}

/// Adds to `roots` what is computed from the root of the value alone, if an epsilon is added to the value and
/// its root taken.
static void collectRoots(Value variance, Numbers &numbers, llvm::DenseSet<Value> &roots) {
  auto addResults = [&](Value sum) {
    Search search(sum);
    bool isRooted = false;
    SmallVector<Value> found;
    while (Value next = search.next()) {
      found.push_back(next);
      search.anyUse(next, [&](onnx::NodeOp node, unsigned operand) {
        StringRef type = node.getOpType();
        isRooted |= type == "Sqrt" || (type == "Pow" && operand == 0);
        bool isScale = type == "Mul" && isConstant(node.getInput(1 - operand));
        bool isInverse = type == "Div" && operand == 1 && isConstant(node.getInput(0));
        if (isScale || isInverse || (passesElements(node) && operand == 0) ||
            llvm::is_contained({"Sqrt", "Pow", "Reciprocal"}, type))
          search.push(node.getResult(0));
        return false;
      });
    }
    if (isRooted)
      roots.insert(found.begin(), found.end());
  };
  Search views(variance);
  while (Value next = views.next())
    views.anyUse(next, [&](onnx::NodeOp node, unsigned operand) {
      if (passesElements(node) && operand == 0)
        views.push(node.getResult(0));
      if (node.getOpType() == "Add" && isEpsilon(strip(node.getInput(1 - operand)), numbers))
        addResults(node.getResult(0));
      return false;
    });
}

static bool scalesWith(Value value, const llvm::DenseSet<Value> &roots) {
  return anyUse(value, [&](onnx::NodeOp node, unsigned operand) {
    return (node.getOpType() == "Mul" || (node.getOpType() == "Div" && operand == 0)) &&
           roots.contains(node.getInput(1 - operand));
  });
}

/// Whether the value is subtracted and the difference scaled, or negated and scaled, or scaled and
/// subtracted, by one of `roots`.
static bool isMeanOf(Value mean, const llvm::DenseSet<Value> &roots) {
  Search views(mean);
  while (Value next = views.next())
    if (views.anyUse(next, [&](onnx::NodeOp node, unsigned operand) {
          StringRef type = node.getOpType();
          if (passesElements(node) && operand == 0)
            views.push(node.getResult(0));
          else if (type == "Neg" || (type == "Sub" && operand == 1))
            return scalesWith(node.getResult(0), roots);
          return type == "Mul" && roots.contains(node.getInput(1 - operand)) &&
                 anyUse(node.getResult(0), [](onnx::NodeOp user, unsigned place) {
                   return user.getOpType() == "Sub" && place == 1;
                 });
        }))
      return true;
  return false;
}

llvm::DenseSet<Operation *> findNormStatistics(onnx::GraphOp graph) {
  llvm::DenseSet<Operation *> statistics;
  llvm::DenseMap<Type, llvm::DenseSet<Value>> roots; // of variances, by their type
  Numbers numbers;
  for (auto op : graph.getBlock().getOps<onnx::InitializerOp>()) {
    llvm::DenseSet<Value> found;
    collectRoots(op.getOutput(), numbers, found);
    if (found.empty())
      continue;
    statistics.insert(op);
    roots[op.getOutput().getType()].insert(found.begin(), found.end());
  }
  for (auto op : graph.getBlock().getOps<onnx::InitializerOp>())
    if (auto known = roots.find(op.getOutput().getType()); known != roots.end())
      if (isMeanOf(op.getOutput(), known->second))
        statistics.insert(op);
  return statistics;
}

//===----------------------------------------------------------------------===//
// Signs of a weight
//===----------------------------------------------------------------------===//

bool isReparametrized(Value value) {
  Search views(value);
  while (Value next = views.next())
    if (views.anyUse(next, [&](onnx::NodeOp node, unsigned operand) {
          if (passesElements(node) && operand == 0)
            views.push(node.getResult(0));
          return llvm::is_contained({"Exp", "Softplus", "Sigmoid", "Tanh"}, node.getOpType());
        }))
      return true;
  return false;
}

bool isBias(Value value) {
  Search views(value);
  while (Value next = views.next())
    if (views.anyUse(next, [&](onnx::NodeOp node, unsigned operand) {
          if (passesElements(node) && operand == 0)
            views.push(node.getResult(0));
          if (node.getOpType() != "Add")
            return false;
          onnx::NodeOp other = nodeOf(strip(node.getInput(1 - operand)));
          return other && (isProduct(other) || other.getOpType() == "Gemm" || other.getOpType() == "Conv" ||
                           other.getOpType() == "ConvTranspose");
        }))
      return true;
  return false;
}

} // namespace ortc::legalize
