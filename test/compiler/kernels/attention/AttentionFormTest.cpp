// What a kernel of attention is: its rows, keys and products, and what is none.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/kernels/attention/AttentionFixture.h"

#include "compiler/kernels/SumOrder.h"

using namespace mlir;
using namespace ortc;
using namespace ortc::kernels;
using Axis = AttentionForm::Axis;

namespace ortc::kernels {
static void PrintTo(const AttentionForm::Axis &axis, std::ostream *stream) {
  *stream << axis.size << " apart by " << axis.step;
}
} // namespace ortc::kernels

namespace {

class AttentionFormTest : public test::AttentionFixture {
protected:
  /// %p of the maxima and the reciprocals of the sums, as gradients have it.
  static std::string weights() {
    return "%s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : !q, !k -> !s\n"
           "%mb = nn.broadcast %m dims = [0, 1] : !r -> !s\n"
           "%x = arith.subf %s, %mb : !s\n"
           "%e = math.exp %x : !s\n"
           "%nb = nn.broadcast %n dims = [0, 1] : !r -> !s\n"
           "%p = arith.mulf %e, %nb : !s\n";
  }
  const std::string gradientArguments = "%q: !q, %k: !k, %v: !v, %g: !g, %m: !r, %n: !r";
};

/// Positions are those of scores, [2, 70, 90].
TEST_F(AttentionFormTest, RowsOfAttentionAreQueries) {
  auto form = analyze({}, softmax() + mix());
  ASSERT_TRUE(form) << reason;
  EXPECT_EQ(form->row, (Axis{70, 90}));
  EXPECT_EQ(form->key, (Axis{90, 1}));
  EXPECT_TRUE(form->groups.empty());
  ASSERT_EQ(form->others.size(), 1u);
  EXPECT_EQ(form->others[0], (Axis{2, 70 * 90}));
  EXPECT_EQ(form->products(), 2);
  EXPECT_EQ(form->groupCount(), 1);
  EXPECT_EQ(form->dimOf(form->row), 0) << "heads and rows are one dim";
  EXPECT_EQ(form->dimOf(form->key), 1);
  EXPECT_EQ(form->dimOf({4, 70}), -1);
  ASSERT_EQ(form->scores.size(), 1u);
  EXPECT_EQ(form->scores[0].rowOperand, 0u);
  EXPECT_EQ(form->scores[0].rowStride, 16);
  EXPECT_EQ(form->scores[0].keyStride, 16);
  EXPECT_EQ(form->scores[0].depth.size, 16);
  ASSERT_EQ(form->mixes.size(), 1u);
  EXPECT_EQ(form->mixes[0].scoreOperand, 0u);
  EXPECT_EQ(form->mixes[0].column.size, 24);
  EXPECT_EQ(form->program.passes, 3u) << "maximum, sum, mix";
}

TEST_F(AttentionFormTest, OutputsAreMixedOrOfRows) {
  auto form = analyze({}, softmax() + mix(), "%m, %y, %n : !r, !g, !r");
  ASSERT_TRUE(form) << reason;
  EXPECT_EQ(form->mixOutputs, (SmallVector<unsigned>{1}));
  EXPECT_EQ(form->rowOutputs, (SmallVector<unsigned>{0, 2}));
  EXPECT_FALSE(analyze({}, softmax() + mix(), "%y, %p : !g, !s")) << "scores would be stored";
  EXPECT_EQ(reason, "outputs are neither mixed nor of rows");
}

/// Of what is beside the products, the maximum and the sum are there without them.
TEST_F(AttentionFormTest, SumsAloneHaveRowsAndKeys) {
  auto form = analyze({}, softmax(), "%m, %l : !r, !r", "%q: !q, %k: !k");
  ASSERT_TRUE(form) << reason;
  EXPECT_EQ(form->row, (Axis{70, 90}));
  EXPECT_EQ(form->key, (Axis{90, 1}));
  EXPECT_TRUE(form->mixes.empty());
}

/// Two products of scores and two mixes with the same rows: the keys.
TEST_F(AttentionFormTest, RowsOfTheGradientOfKeysAreKeys) {
  auto form =
      analyze({},
              weights() + "%d = nn.dot %g, %v batch = [0] x [0] contract = [2] x [2] : !g, !v -> !s\n"
                          "%ds = arith.mulf %p, %d : !s\n"
                          "%dk = nn.dot %ds, %q batch = [0] x [0] contract = [1] x [1] : !s, !q -> !k\n"
                          "%dv = nn.dot %p, %g batch = [0] x [0] contract = [1] x [1] : !s, !g -> !v\n",
              "%dk, %dv : !k, !v", gradientArguments);
  ASSERT_TRUE(form) << reason;
  EXPECT_EQ(form->row, (Axis{90, 1}));
  EXPECT_EQ(form->key, (Axis{70, 90}));
  ASSERT_EQ(form->scores.size(), 2u);
  for (const AttentionForm::Scores &scores : form->scores)
    EXPECT_EQ(scores.rowOperand, 1u);
  EXPECT_EQ(form->scores[0].rowStride, 16);
  EXPECT_EQ(form->scores[1].rowStride, 24);
  ASSERT_EQ(form->mixes.size(), 2u);
  EXPECT_EQ(form->mixes[0].column.size, 16);
  EXPECT_EQ(form->mixes[1].column.size, 24);
  EXPECT_EQ(form->program.passes, 1u);
  EXPECT_FALSE(analyze(
      {}, weights() + mix() + "%dv = nn.dot %p, %g batch = [0] x [0] contract = [1] x [1] : !s, !g -> !v\n",
      "%y, %dv : !g, !v", gradientArguments));
  EXPECT_EQ(reason, "mixes have other rows or keys");
}

/// Three query heads of each key head, whose gradient is the sum of theirs.
TEST_F(AttentionFormTest, GroupsOfQueriesAreSummed) {
  const std::string q = tensor({2, 3, 70, 16}, "f32"), s = tensor({2, 3, 70, 90}, "f32"), k = "!k";
  auto gradient = [&](const std::string &keys, const std::string &product) {
    return analyze({},
                   "%s = nn.dot %a, %b " + product + " : " + q + ", " + keys + " -> " + s +
                       "\n%p = math.exp %s : " + s +
                       "\n%dk = nn.dot %p, %a batch = [0] x [0] contract = [1, 2] x [1, 2] : " + s + ", " +
                       q + " -> !k\n",
                   "%dk : !k", "%a: " + q + ", %b: " + keys);
  };
  auto form = gradient(k, "batch = [0] x [0] contract = [3] x [2]");
  ASSERT_TRUE(form) << reason;
  EXPECT_EQ(form->row, (Axis{90, 1}));
  EXPECT_EQ(form->key, (Axis{70, 90}));
  ASSERT_EQ(form->groups.size(), 1u);
  EXPECT_EQ(form->groups[0], (Axis{3, 70 * 90}));
  EXPECT_EQ(form->groupCount(), 3);
  EXPECT_EQ(form->products(), 2);
  EXPECT_FALSE(gradient(tensor({2, 3, 90, 16}, "f32"), "batch = [0, 1] x [0, 1] contract = [3] x [3]"));
  EXPECT_EQ(reason, "rows differ by group");
}

TEST_F(AttentionFormTest, OthersAreRefusedWithAReason) {
  EXPECT_FALSE(analyze({}, "%y = math.exp %g : !g\n", "%y : !g", "%g: !g"));
  EXPECT_EQ(reason, "there are no scores");
  EXPECT_FALSE(analyze({}, softmax() + mix() + mix("%e", "%z") + "%w = arith.addf %y, %z : !g\n", "%w : !g"));
  EXPECT_EQ(reason, "an output has two mixes");
  EXPECT_FALSE(analyze({},
                       softmax() + "%y = nn.dot %p, %p batch = [0] x [0] contract = [1] x [1] : !s, !s -> " +
                           tensor({2, 90, 90}, "f32") + "\n",
                       "%y : " + tensor({2, 90, 90}, "f32")));
  EXPECT_EQ(reason, "both sides of a mix are scores");
  // All keys but the first one, and from the last one on.
  const std::string more = tensor({2, 91, 16}, "f32"), scores = tensor({2, 70, 91}, "f32");
  EXPECT_FALSE(analyze({},
                       "%s = nn.dot %q, %b batch = [0] x [0] contract = [2] x [2] : !q, " + more + " -> " +
                           scores + "\n%o = nn.slice %s starts = [0, 0, 1] strides = [1, 1, 1] : " + scores +
                           " -> !s\n%p = math.exp %o : !s\n" + mix(),
                       "%y : !g", "%q: !q, %b: " + more + ", %v: !v"));
  EXPECT_EQ(reason, "scores are not read in place");
  EXPECT_FALSE(
      analyze({70, 90, 16, 24}, "%s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : !q, !k -> !s\n"
                                "%o = nn.reverse %s axes = [2] : !s\n"
                                "%p = math.exp %o : !s\n" +
                                    mix()));
  EXPECT_EQ(reason, "scores are not read in place");
  // A square of scores and what lies across its diagonal.
  EXPECT_FALSE(
      analyze({70, 70, 16, 24}, "%s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : !q, !k -> !s\n"
                                "%t = nn.transpose %s perm = [0, 2, 1] : !s -> !s\n"
                                "%u = arith.addf %s, %t : !s\n"
                                "%p = math.exp %u : !s\n" +
                                    mix()));
  EXPECT_EQ(reason, "scores are read at several places");
  // A softmax along the queries that is mixed along the keys.
  for (int64_t keys : {90, 70}) {
    const std::string columns = tensor({2, keys}, "f32");
    EXPECT_FALSE(analyze({70, keys, 16, 24},
                         "%s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : !q, !k -> !s\n"
                         "%e = math.exp %s : !s\n"
                         "%l = nn.reduce sum %e axes = [1] : !s -> " +
                             columns + "\n%lb = nn.broadcast %l dims = [0, 2] : " + columns +
                             " -> !s\n%p = arith.divf %e, %lb : !s\n" + mix()));
    EXPECT_EQ(reason, "sums are not along the keys");
  }
}

/// A kernel has room for heads whose parts of 16 bits are short enough, rounded up to a power of two.
TEST_F(AttentionFormTest, HeadsHaveAMostAndALeast) {
  EXPECT_TRUE(fitsAttention(64, 64, 64, 64, 3, 192));
  EXPECT_FALSE(fitsAttention(63, 64, 64, 64, 3, 192));
  EXPECT_FALSE(fitsAttention(64, 63, 64, 64, 3, 192));
  EXPECT_FALSE(fitsAttention(64, 64, 64, 64, 3, 191));
  EXPECT_FALSE(fitsAttention(64, 64, 72, 64, 3, 192)) << "128 elements with padding";
  EXPECT_FALSE(fitsAttention(64, 64, 64, 72, 3, 192));
  EXPECT_FALSE(fitsAttention(64, 64, 60, 64, 3, 192)) << "no multiple of 8";
  EXPECT_TRUE(fitsAttention(64, 64, 40, 24, 3, 192));

  FusionLimits limits;
  auto suits = [&](const test::Sizes &sizes, int64_t parts) {
    auto form = analyze(sizes, softmax() + mix());
    EXPECT_TRUE(form) << reason;
    limits.attentionParts = parts;
    return form && form->suits(limits, reason);
  };
  EXPECT_TRUE(suits({64, 64, 64, 64}, 64 * kWideParts));
  EXPECT_FALSE(suits({64, 64, 64, 64}, 64 * kWideParts - 1));
  EXPECT_EQ(reason, "heads are too large or too small for a kernel of attention, or not of f32 sums");
  EXPECT_FALSE(suits({64, 64, 16, 72}, 64 * kWideParts));
  EXPECT_FALSE(suits({56, 64, 64, 64}, 64 * kWideParts));
}

/// What is stored in 16 bits has one part.
TEST_F(AttentionFormTest, NarrowNumbersHaveOnePart) {
  const std::string q = tensor({2, 70, 16}, "bf16"), k = tensor({2, 90, 16}, "bf16"),
                    v = tensor({2, 90, 24}, "bf16"), s = tensor({2, 70, 90}, "bf16");
  auto form = analyze({},
                      "%q = arith.extf %a : " + q + " to !q\n%k = arith.extf %b : " + k +
                          " to !k\n%v = arith.extf %c : " + v + " to !v\n" + softmax() +
                          "%t = arith.truncf %p : !s to " + s + "\n%w = arith.extf %t : " + s + " to !s\n" +
                          mix("%w"),
                      "%y : !g", "%a: " + q + ", %b: " + k + ", %c: " + v);
  ASSERT_TRUE(form) << reason;
  FusionLimits limits;
  limits.attentionParts = 32;
  EXPECT_TRUE(form->suits(limits, reason)) << reason;
  limits.attentionParts = 31; // of values, 24 rounded up
  EXPECT_FALSE(form->suits(limits, reason));
}

TEST_F(AttentionFormTest, AKernelHasTwoMixesAtMost) {
  auto form = analyze({}, softmax() + mix() + mix("%e", "%z") + mix("%x", "%w"), "%y, %z, %w : !g, !g, !g");
  ASSERT_TRUE(form) << reason;
  FusionLimits limits;
  limits.attentionParts = 192;
  EXPECT_FALSE(form->suits(limits, reason));
  EXPECT_EQ(reason, "a kernel of attention has at most two products of scores and two mixes");
}

/// Scores are computed in each of three passes.
TEST_F(AttentionFormTest, WorkCountsScoresInEveryPass) {
  auto form = analyze({}, softmax() + mix());
  ASSERT_TRUE(form) << reason;
  const int64_t scores = int64_t(2) * 2 * 70 * 90 * 16, mixed = int64_t(2) * 2 * 70 * 90 * 24;
  EXPECT_EQ(form->work().flops, form->program.work().flops + 3 * scores + mixed);
}

TEST_F(AttentionFormTest, SeveralProductsAreAttention) {
  ASSERT_TRUE(analyze({}, softmax() + mix())) << reason;
  auto function = *modules.back()->getOps<func::FuncOp>().begin();
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front())
    ops.push_back(&op);
  EXPECT_TRUE(isAttention(ops));
  EXPECT_FALSE(isAttention(ArrayRef(ops).drop_back(2))) << "without the mix";
}

} // namespace
