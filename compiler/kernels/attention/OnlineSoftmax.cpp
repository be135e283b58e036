// A softmax along the keys that is mixed in the pass that finds its maximum and its sum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/attention/OnlineSoftmax.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;

namespace ortc::kernels {

namespace {

class Finder {
public:
  explicit Finder(const LoopProgram &program) : program(program), reduced(program.reducedMask()) {}

  std::optional<OnlineSoftmax> run() {
    if (program.reductions.size() != 2 || !findExponential() || !findFactor())
      return std::nullopt;
    bool isMixed = false;
    for (const LoopOutput &output : program.outputs) {
      if (output.perRow)
        continue;
      isMixed = true;
      if (degreeOf(output.node, found.exponential) != 1 || degreeOf(output.node, found.factor) != 1)
        return std::nullopt;
    }
    return isMixed ? std::optional(found) : std::nullopt;
  }

private:
  const LoopNode &node(unsigned number) const { return program.nodes[number]; }
  bool uses(const LoopNode &user, unsigned number) const {
    return llvm::is_contained(user.operands, number) ||
           llvm::any_of(user.at.dynamic, [&](const IndexExpr::Dynamic &term) { return term.node == number; });
  }

  bool findExponential() {
    bool isFirstMaximum = program.reductions[0].kind == nn::ReduceKind::max;
    found.maximum = isFirstMaximum ? 0 : 1;
    found.sum = 1 - found.maximum;
    const LoopReduction &maximum = program.reductions[found.maximum], &sum = program.reductions[found.sum];
    if (maximum.kind != nn::ReduceKind::max || sum.kind != nn::ReduceKind::sum || !maximum.element.isF32() ||
        !sum.element.isF32())
      return false;
    found.scores = maximum.input;
    found.exponential = sum.input;
    const LoopNode &exponential = node(found.exponential);
    if (exponential.kind != LoopNode::operation || !isa<math::ExpOp>(exponential.op))
      return false;
    unsigned shifted = exponential.operands[0];
    const LoopNode &difference = node(shifted);
    if (difference.kind != LoopNode::operation || !isa<arith::SubFOp>(difference.op) ||
        difference.operands[0] != found.scores || difference.operands[1] != maximum.node)
      return false;
    for (unsigned i = 0; i < program.nodes.size(); ++i)
      if ((uses(node(i), maximum.node) && i != shifted) || (uses(node(i), shifted) && i != found.exponential))
        return false;
    return true;
  }

  /// The only value of a row by which the sum comes into what changes along the keys.
  bool findFactor() {
    llvm::BitVector follows(program.nodes.size());
    follows.set(program.reductions[found.sum].node);
    std::optional<unsigned> factor;
    for (unsigned i = 0; i < program.nodes.size(); ++i) {
      const LoopNode &each = node(i);
      bool isOfRow = (each.dims & reduced) == 0;
      for (unsigned operand : each.operands) {
        if (!follows.test(operand))
          continue;
        if (isOfRow) {
          follows.set(i);
        } else {
          if (factor && *factor != operand)
            return false;
          factor = operand;
        }
      }
      if (llvm::any_of(each.at.dynamic,
                       [&](const IndexExpr::Dynamic &term) { return follows.test(term.node); }))
        return false;
    }
    if (!factor)
      return false;
    found.factor = *factor;
    return node(*factor).element.isF32();
  }

  static bool isZero(const LoopNode &each) {
    return each.kind == LoopNode::constant &&
           matchPattern(cast<arith::ConstantOp>(each.op).getResult(), m_AnyZeroFloat());
  }

  /// Of `number` as a polynomial in `variable`: 0, 1, or -1 where it is none.
  int degreeOf(unsigned number, unsigned variable) const {
    if (number == variable)
      return 1;
    const LoopNode &each = node(number);
    if (number < variable) // operands come first
      return 0;
    SmallVector<int> degrees;
    for (unsigned operand : each.operands)
      degrees.push_back(degreeOf(operand, variable));
    if (llvm::all_of(degrees, [](int degree) { return degree == 0; }))
      return 0;
    if (each.kind != LoopNode::operation || llvm::is_contained(degrees, -1))
      return -1;
    if (isa<arith::MulFOp>(each.op))
      return degrees[0] + degrees[1] == 1 ? 1 : -1;
    if (isa<arith::TruncFOp, arith::ExtFOp>(each.op))
      return degrees[0];
    if (isa<arith::SelectOp>(each.op) && degrees[0] == 0) {
      bool isFirst = degrees[1] == 1 || isZero(node(each.operands[1])),
           isSecond = degrees[2] == 1 || isZero(node(each.operands[2]));
      return isFirst && isSecond ? 1 : -1;
    }
    return -1;
  }

  const LoopProgram &program;
  uint64_t reduced;
  OnlineSoftmax found;
};

} // namespace

std::optional<OnlineSoftmax> findOnlineSoftmax(const LoopProgram &program) { return Finder(program).run(); }

} // namespace ortc::kernels
