// Which keys the rows of attention see, where that is known at compile time: causality and windows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every node of the loop program is bounded for a tile of rows and keys. Where nothing is known of a number it is taken
// as finite: where it is not, what is seen of the same row is not, either.
#include "compiler/kernels/attention/SeenKeys.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ortc::kernels {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Scores below this have a weight of zero beside any that is seen.
constexpr double kHidden = -1e30;
/// Scores that are looked at for one that a query sees; with more, finite numbers hide nothing.
constexpr int64_t kMostPoints = int64_t(1) << 22;

/// From `low` to `high`; conditions are 0 or 1. Unknown numbers may be any finite ones.
struct Bounds {
  double low = -kInfinity, high = kInfinity;

  static Bounds of(double value) { return {value, value}; }
  bool is(double value) const { return low == value && high == value; }
};

Bounds hull(Bounds a, Bounds b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

class Analysis {
public:
  explicit Analysis(const AttentionForm &form)
      : form(form), program(form.program), steps(form.program.steps()), rowDim(form.dimOf(form.row)),
        keyDim(form.dimOf(form.key)) {}

  std::vector<SeenKeys> run(int64_t rows, int64_t keys) {
    int64_t rowTiles = llvm::divideCeilSigned(form.row.size, rows),
            keyTiles = llvm::divideCeilSigned(form.key.size, keys);
    std::vector<SeenKeys> all(rowTiles, SeenKeys{0, keyTiles});
    if (rowDim == keyDim) // nothing tells them apart
      return all;
    takesFinite = !hidesOtherwise();
    std::vector<SeenKeys> seen = all;
    for (int64_t tile = 0; tile < rowTiles; ++tile) {
      int64_t firstRow = tile * rows, lastRow = std::min(firstRow + rows, form.row.size) - 1;
      auto isHidden = [&](int64_t key) {
        return hides(firstRow, lastRow, key * keys, std::min((key + 1) * keys, form.key.size) - 1);
      };
      SeenKeys &range = seen[tile];
      while (range.first < range.end && isHidden(range.first))
        ++range.first;
      while (range.first < range.end && isHidden(range.end - 1))
        --range.end;
      if (range.first == range.end)
        return all; // a row that sees nothing has the weights of all
    }
    return wasFinite && !doesEveryQuerySee() ? all : seen;
  }

private:
  /// Whether something that is not known may hide keys, or whole rows. A query of which all keys are hidden one way or
  /// the other, by a finite number, has the same weight for all. What is subtracted from scores in front of an
  /// exponential is their maximum, and hides nothing.
  bool hidesOtherwise() const {
    SmallVector<unsigned> stack;
    for (const LoopNode &node : program.nodes) {
      if (node.kind != LoopNode::operation || !isa<math::ExpOp>(node.op))
        continue;
      const LoopNode &power = program.nodes[node.operands[0]];
      bool isShifted = power.kind == LoopNode::operation && isa<arith::SubFOp>(power.op);
      stack.push_back(isShifted ? power.operands[0] : node.operands[0]);
    }
    llvm::BitVector seen(program.nodes.size());
    while (!stack.empty()) {
      unsigned number = stack.pop_back_val();
      if (seen.test(number))
        continue;
      seen.set(number);
      const LoopNode &node = program.nodes[number];
      bool isOfScores = llvm::any_of(
          form.scores, [&](const AttentionForm::Scores &scores) { return node.buffer == scores.buffer; });
      if ((node.kind == LoopNode::load && !isOfScores) || node.kind == LoopNode::reduction)
        return true;
      stack.append(node.operands.begin(), node.operands.end());
      for (const IndexExpr::Dynamic &term : node.at.dynamic)
        stack.push_back(term.node);
    }
    return false;
  }

  /// Whether every query sees a key. In a gradient, either of the axes may be that of the queries.
  bool doesEveryQuerySee() {
    int64_t looked = 0;
    auto seesAny = [&](int64_t index, int64_t count, bool isRow) {
      for (int64_t other = 0; other < count; ++other) {
        int64_t row = isRow ? index : other, key = isRow ? other : index;
        if (++looked > kMostPoints)
          return false;
        if (!hides(row, row, key, key))
          return true;
      }
      return false;
    };
    for (int64_t row = 0; row < form.row.size; ++row)
      if (!seesAny(row, form.key.size, true))
        return false;
    for (int64_t key = 0; program.reductions.empty() && key < form.key.size; ++key)
      if (!seesAny(key, form.row.size, false))
        return false;
    return true;
  }

  /// Whether scores of these rows and keys add nothing and mix nothing.
  bool hides(int64_t firstRow, int64_t lastRow, int64_t firstKey, int64_t lastKey) {
    first.assign(program.dims.size(), 0);
    last.clear();
    for (const LoopDim &dim : program.dims)
      last.push_back(dim.size - 1);
    auto set = [&](const AttentionForm::Axis &axis, int d, int64_t from, int64_t to) {
      int64_t move = axis.step / steps[d], size = program.dims[d].size;
      if (move * axis.size == size) // else any index of the dim
        first[d] = from * move, last[d] = to * move + move - 1;
    };
    set(form.row, rowDim, firstRow, lastRow);
    set(form.key, keyDim, firstKey, lastKey);
    values.clear();
    for (const LoopNode &node : program.nodes)
      values.push_back(evaluate(node));
    for (const LoopReduction &reduction : program.reductions) {
      Bounds input = values[reduction.input];
      bool isNeutral = reduction.kind == nn::ReduceKind::sum   ? input.is(0)
                       : reduction.kind == nn::ReduceKind::max ? isHidden(input)
                                                               : false;
      if (!isNeutral)
        return false;
    }
    return llvm::all_of(program.outputs,
                        [&](const LoopOutput &output) { return output.perRow || values[output.node].is(0); });
  }

  bool isHidden(Bounds value) {
    if (value.is(-kInfinity))
      return true;
    if (!takesFinite || !(value.high <= kHidden) || value.low == -kInfinity)
      return false;
    return wasFinite = true;
  }

  Bounds evaluate(const LoopNode &node) {
    switch (node.kind) {
    case LoopNode::constant:
      return constantOf(cast<arith::ConstantOp>(node.op));
    case LoopNode::iota:
      return boundsOf(node.at);
    case LoopNode::operation:
      return operationOf(node);
    default:
      return {};
    }
  }

  static Bounds constantOf(arith::ConstantOp constant) {
    auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!splat)
      return {};
    if (isa<FloatType>(splat.getElementType())) {
      APFloat value = splat.getSplatValue<APFloat>();
      return Bounds::of(value.convertToDouble());
    }
    APInt value = splat.getSplatValue<APInt>();
    bool isCondition = value.getBitWidth() == 1;
    return Bounds::of(static_cast<double>(isCondition ? value.getZExtValue() : value.getSExtValue()));
  }

  Bounds boundsOf(const IndexExpr &expr) const {
    if (!expr.dynamic.empty())
      return {};
    auto low = static_cast<double>(expr.constant), high = low;
    for (size_t d = 0; d < expr.scales.size(); ++d) {
      auto a = static_cast<double>(expr.scales[d] * first[d]),
           b = static_cast<double>(expr.scales[d] * last[d]);
      low += std::min(a, b), high += std::max(a, b);
    }
    return {low, high};
  }

  Bounds operationOf(const LoopNode &node) {
    SmallVector<Bounds> of;
    for (unsigned operand : node.operands)
      of.push_back(values[operand]);
    return llvm::TypeSwitch<Operation *, Bounds>(node.op)
        .Case([&](arith::SelectOp) {
          if (of[0].low == of[0].high)
            return of[0].low != 0 ? of[1] : of[2];
          return hull(of[1], of[2]);
        })
        .Case([&](arith::CmpIOp compare) {
          bool areConditions = getElementTypeOrSelf(compare.getLhs().getType()).isInteger(1); // true is -1
          return areConditions ? Bounds{0, 1} : compared(compare.getPredicate(), of[0], of[1]);
        })
        .Case<arith::AndIOp, arith::OrIOp>([&](Operation *op) -> Bounds {
          if (!node.element.isInteger(1))
            return {};
          bool isAnd = isa<arith::AndIOp>(op);
          auto join = [&](double a, double b) { return isAnd ? std::min(a, b) : std::max(a, b); };
          auto cut = [](Bounds b) { return Bounds{std::max(b.low, 0.0), std::min(b.high, 1.0)}; };
          Bounds a = cut(of[0]), b = cut(of[1]);
          return {join(a.low, b.low), join(a.high, b.high)};
        })
        .Case([&](arith::AddIOp) { return Bounds{of[0].low + of[1].low, of[0].high + of[1].high}; })
        .Case([&](arith::SubIOp) { return Bounds{of[0].low - of[1].high, of[0].high - of[1].low}; })
        .Case<arith::AddFOp>([&](Operation *) -> Bounds {
          for (const Bounds &each : of)
            if (isHidden(each))
              return Bounds::of(-kInfinity);
          return {};
        })
        .Case<arith::SubFOp>([&](Operation *) { return isHidden(of[0]) ? Bounds::of(-kInfinity) : Bounds(); })
        .Case<arith::MulFOp>([&](Operation *) -> Bounds {
          if (of[0].is(0) || of[1].is(0))
            return Bounds::of(0);
          return {};
        })
        .Case<math::ExpOp>([&](Operation *) { return of[0].is(-kInfinity) ? Bounds::of(0) : Bounds(); })
        .Case<arith::ExtFOp, arith::TruncFOp>([&](Operation *) { return of[0]; })
        .Case([&](arith::ExtSIOp extension) {
          bool isCondition = getElementTypeOrSelf(extension.getIn().getType()).isInteger(1);
          return isCondition ? Bounds() : of[0];
        })
        .Default([](Operation *) { return Bounds(); });
  }

  static Bounds compared(arith::CmpIPredicate predicate, Bounds a, Bounds b) {
    auto less = [](Bounds x, Bounds y) -> Bounds {
      return x.high < y.low ? Bounds::of(1) : x.low >= y.high ? Bounds::of(0) : Bounds{0, 1};
    };
    auto notLess = [&](Bounds x, Bounds y) -> Bounds {
      Bounds is = less(x, y);
      return {1 - is.high, 1 - is.low};
    };
    switch (predicate) {
    case arith::CmpIPredicate::slt:
      return less(a, b);
    case arith::CmpIPredicate::sgt:
      return less(b, a);
    case arith::CmpIPredicate::sge:
      return notLess(a, b);
    case arith::CmpIPredicate::sle:
      return notLess(b, a);
    default:
      return {0, 1};
    }
  }

  const AttentionForm &form;
  const LoopProgram &program;
  SmallVector<int64_t> steps, first, last; ///< of dims: positions; the indices that are looked at
  int rowDim, keyDim;
  std::vector<Bounds> values; ///< of nodes
  bool takesFinite = false, wasFinite = false;
};

} // namespace

std::vector<SeenKeys> findSeenKeys(const AttentionForm &form, int64_t rows, int64_t keys) {
  return Analysis(form).run(rows, keys);
}

} // namespace ortc::kernels
