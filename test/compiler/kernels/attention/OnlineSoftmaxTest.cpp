// Which softmax is mixed in the pass that finds its maximum and its sum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/kernels/attention/AttentionFixture.h"

#include "compiler/kernels/attention/OnlineSoftmax.h"

using namespace mlir;
using namespace ortc;
using namespace ortc::kernels;

namespace {

class OnlineSoftmaxTest : public test::AttentionFixture {
protected:
  /// Of attention that mixes `scores`, made by `code`.
  std::optional<OnlineSoftmax> find(const std::string &code, const std::string &scores = "%p",
                                    const std::string &returned = "%y : !g",
                                    const std::string &arguments = "%q: !q, %k: !k, %v: !v") {
    form = analyze({}, code + mix(scores), returned, arguments);
    EXPECT_TRUE(form) << reason;
    return form ? findOnlineSoftmax(form->program) : std::nullopt;
  }
  template <typename Op> bool isNode(unsigned number) const {
    const LoopNode &node = form->program.nodes[number];
    return node.kind == LoopNode::operation && isa<Op>(node.op);
  }

  std::optional<AttentionForm> form;
};

TEST_F(OnlineSoftmaxTest, ItsPartsAreNamed) {
  auto found = find(softmax());
  ASSERT_TRUE(found);
  EXPECT_EQ(form->program.reductions[found->maximum].kind, nn::ReduceKind::max);
  EXPECT_EQ(form->program.reductions[found->sum].kind, nn::ReduceKind::sum);
  EXPECT_EQ(form->program.nodes[found->scores].kind, LoopNode::load);
  EXPECT_EQ(form->program.nodes[found->scores].buffer, form->scores[0].buffer);
  EXPECT_TRUE(isNode<math::ExpOp>(found->exponential));
  EXPECT_TRUE(isNode<arith::DivFOp>(found->factor)) << "the reciprocal of the sum";
}

/// Scores of a mask are what the maximum is of.
TEST_F(OnlineSoftmaxTest, WhatIsBeforeTheMaximumMayBeAnything) {
  auto found = find(softmax("%b = arith.mulf %s, %s : !s\n%u = arith.addf %b, %z : !s\n", "%u"), "%p",
                    "%y : !g", "%q: !q, %k: !k, %v: !v, %z: !s");
  ASSERT_TRUE(found);
  EXPECT_TRUE(isNode<arith::AddFOp>(found->scores));
}

/// Dropout keeps what it does not hide, times a constant; bf16 rounds.
TEST_F(OnlineSoftmaxTest, WhatIsMixedIsProportional) {
  const std::string zero = "%zero = arith.constant dense<0.0> : !s\n%two = arith.constant dense<2.0> : !s\n",
                    arguments = "%q: !q, %k: !k, %v: !v, %keep: !c";
  EXPECT_TRUE(
      find(softmax() + zero + "%d = arith.mulf %p, %two : !s\n%w = arith.select %keep, %d, %zero : !c, !s\n",
           "%w", "%y : !g", arguments));
  EXPECT_FALSE(
      find(softmax() + zero + "%w = arith.select %keep, %p, %two : !c, !s\n", "%w", "%y : !g", arguments))
      << "two would be scaled, too";
  const std::string narrow = tensor({2, 70, 90}, "bf16");
  EXPECT_TRUE(find(softmax() + "%t = arith.truncf %p : !s to " + narrow + "\n%w = arith.extf %t : " + narrow +
                       " to !s\n",
                   "%w"));
  EXPECT_FALSE(find(softmax() + "%w = arith.mulf %p, %p : !s\n", "%w")) << "a square";
  EXPECT_FALSE(find(softmax() + "%w = arith.mulf %p, %e : !s\n", "%w")) << "a square of exponentials";
  EXPECT_FALSE(find(softmax() + "%w = arith.mulf %p, %nb : !s\n", "%w")) << "a square of the factor";
  EXPECT_FALSE(find(softmax() + "%w = arith.mulf %nb, %s : !s\n", "%w")) << "no exponentials";
  EXPECT_FALSE(find(softmax() + zero + "%w = arith.addf %p, %two : !s\n", "%w")) << "a constant beside it";
  EXPECT_FALSE(find(softmax(), "%e", "%y, %l : !g, !r")) << "no factor";
  EXPECT_FALSE(find(
      softmax() + "%lb = nn.broadcast %l dims = [0, 1] : !r -> !s\n%w = arith.divf %e, %lb : !s\n", "%w"))
      << "a quotient";
}

/// What is scaled later must not depend on the maximum in another way, nor on the sum in two ways.
TEST_F(OnlineSoftmaxTest, MaximumAndSumComeInOnce) {
  EXPECT_FALSE(find(softmax() + "%w = arith.mulf %p, %mb : !s\n", "%w"));
  EXPECT_FALSE(find(softmax() + "%w = arith.mulf %p, %x : !s\n", "%w"));
  EXPECT_FALSE(find(
      softmax() + "%lb = nn.broadcast %l dims = [0, 1] : !r -> !s\n%w = arith.mulf %p, %lb : !s\n", "%w"));
  EXPECT_FALSE(find(softmax() + "%o = math.sqrt %l : !r\n%ob = nn.broadcast %o dims = [0, 1] : !r -> !s\n"
                                "%w = arith.mulf %p, %ob : !s\n",
                    "%w"));
  EXPECT_TRUE(find(softmax(), "%p", "%m, %y, %l : !r, !g, !r")) << "results of rows are not scaled";
}

TEST_F(OnlineSoftmaxTest, ThereAreAMaximumAndASumOfExponentials) {
  const std::string scores = "%s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : !q, !k -> !s\n",
                    rest = "%l = nn.reduce sum %e axes = [2] : !s -> !r\n"
                           "%one = arith.constant dense<1.0> : !r\n"
                           "%n = arith.divf %one, %l : !r\n"
                           "%nb = nn.broadcast %n dims = [0, 1] : !r -> !s\n"
                           "%p = arith.mulf %e, %nb : !s\n";
  EXPECT_FALSE(find(scores + "%e = math.exp %s : !s\n" + rest)) << "no maximum";
  auto shiftedBy = [&](const std::string &kind) {
    return scores + "%m = nn.reduce " + kind +
           " %s axes = [2] : !s -> !r\n%mb = nn.broadcast %m dims = [0, 1] : !r -> !s\n";
  };
  EXPECT_FALSE(find(shiftedBy("min") + "%x = arith.subf %s, %mb : !s\n%e = math.exp %x : !s\n" + rest));
  EXPECT_FALSE(find(shiftedBy("max") +
                    "%t = arith.addf %s, %s : !s\n%x = arith.subf %t, %mb : !s\n"
                    "%e = math.exp %x : !s\n" +
                    rest))
      << "the maximum of others";
  EXPECT_FALSE(find(shiftedBy("max") + "%x = arith.subf %mb, %s : !s\n%e = math.exp %x : !s\n" + rest));
  EXPECT_FALSE(find(shiftedBy("max") + "%x = arith.subf %s, %mb : !s\n%e = math.tanh %x : !s\n" + rest));
  EXPECT_TRUE(find(shiftedBy("max") + "%x = arith.subf %s, %mb : !s\n%e = math.exp %x : !s\n" + rest));
}

} // namespace
