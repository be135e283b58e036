// Which keys tiles of rows see.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/kernels/attention/AttentionFixture.h"

#include "compiler/kernels/attention/SeenKeys.h"

using namespace mlir;
using namespace ortc;
using namespace ortc::kernels;

namespace ortc::kernels {
static void PrintTo(const SeenKeys &seen, std::ostream *stream) {
  *stream << "[" << seen.first << ", " << seen.end << ")";
}
} // namespace ortc::kernels

namespace {

using Tiles = std::vector<SeenKeys>;

/// Tiles of 64 rows and steps of 32 keys, where nothing else is said.
class SeenKeysTest : public test::AttentionFixture {
protected:
  static constexpr test::Sizes kSquare{128, 128, 16, 16};

  /// %is from positions %i of queries and %j of keys; `hidden` is the score of others.
  static std::string mask(const std::string &condition, const std::string &hidden = "0xFF800000") {
    return "%i = nn.iota axis = 1 : !i\n%j = nn.iota axis = 2 : !i\n" + condition +
           "%low = arith.constant dense<" + hidden + "> : !s\n%u = arith.select %is, %s, %low : !c, !s\n";
  }
  static std::string constant(const std::string &name, int64_t value) {
    return name + " = arith.constant dense<" + std::to_string(value) + "> : !i\n";
  }
  static std::string causal() { return "%is = arith.cmpi sle, %j, %i : !i\n"; }

  Tiles find(const test::Sizes &sizes, const std::string &between, const std::string &scores = "%u",
             const std::string &arguments = "%q: !q, %k: !k, %v: !v") {
    auto form = analyze(sizes, softmax(between, scores) + mix(), "%y : !g", arguments);
    EXPECT_TRUE(form) << reason;
    return form ? findSeenKeys(*form, 64, 32) : Tiles();
  }
};

TEST_F(SeenKeysTest, WithoutAMaskAllAreSeen) {
  EXPECT_EQ(find(kSquare, "", "%s"), (Tiles{{0, 4}, {0, 4}}));
  EXPECT_EQ(find({100, 90, 16, 16}, "", "%s"), (Tiles{{0, 3}, {0, 3}})) << "the last ones are not whole";
}

TEST_F(SeenKeysTest, ACausalMaskHidesLaterKeys) {
  EXPECT_EQ(find(kSquare, mask(causal())), (Tiles{{0, 2}, {0, 4}}));
  EXPECT_EQ(find({70, 128, 16, 16}, mask(causal())), (Tiles{{0, 2}, {0, 3}})) << "up to row 69";
  // Queries are the last ones of a longer text.
  EXPECT_EQ(find({128, 192, 16, 16}, mask(constant("%o", 64) + "%f = arith.addi %i, %o : !i\n"
                                                               "%is = arith.cmpi sle, %j, %f : !i\n")),
            (Tiles{{0, 4}, {0, 6}}));
  EXPECT_EQ(find({128, 192, 16, 16}, mask(constant("%o", 64) + "%f = arith.addi %i, %o : !i\n"
                                                               "%is = arith.cmpi sge, %j, %f : !i\n")),
            (Tiles{{2, 6}, {4, 6}}))
      << "later keys alone";
  for (const char *predicate : {"sge", "sgt"})
    EXPECT_EQ(find(kSquare, mask("%is = arith.cmpi " + std::string(predicate) + ", %i, %j : !i\n")),
              (Tiles{{0, 2}, {0, 4}}));
  EXPECT_EQ(find(kSquare, mask("%is = arith.cmpi slt, %i, %j : !i\n")), (Tiles{{0, 4}, {2, 4}}))
      << "the other way round: row 127 sees nothing, but others of its tile do";
}

/// Rows from 64 on see keys from 49 on.
TEST_F(SeenKeysTest, AWindowHidesEarlierKeys) {
  const std::string window = constant("%w", 16) + "%d = arith.subi %i, %j : !i\n"
                                                  "%near = arith.cmpi slt, %d, %w : !i\n"
                                                  "%past = arith.cmpi sle, %j, %i : !i\n";
  EXPECT_EQ(find(kSquare, mask(window + "%is = arith.andi %near, %past : !c\n")), (Tiles{{0, 2}, {1, 4}}));
  EXPECT_EQ(find(kSquare, mask(window + constant("%few", 8) +
                               "%first = arith.cmpi slt, %j, %few : !i\n"
                               "%both = arith.andi %near, %past : !c\n"
                               "%is = arith.ori %both, %first : !c\n")),
            (Tiles{{0, 2}, {0, 4}}))
      << "all rows see the first eight keys";
}

/// A number hides a score where it is far below any other and nothing else is added.
TEST_F(SeenKeysTest, FiniteNumbersHideWhereNothingElseDoes) {
  EXPECT_EQ(find(kSquare, mask(causal(), "-1.0e38")), (Tiles{{0, 2}, {0, 4}}));
  EXPECT_EQ(find(kSquare, mask(causal(), "-1.0e4")), (Tiles{{0, 4}, {0, 4}}));
  const std::string more = "%a = arith.addf %u, %z : !s\n", arguments = "%q: !q, %k: !k, %v: !v, %z: !s";
  EXPECT_EQ(find(kSquare, mask(causal(), "-1.0e38") + more, "%a", arguments), (Tiles{{0, 4}, {0, 4}}));
  EXPECT_EQ(find(kSquare, mask(causal()) + more, "%a", arguments), (Tiles{{0, 2}, {0, 4}}));
}

/// The first row sees no key: beside a finite number, all have the same weight.
TEST_F(SeenKeysTest, RowsThatSeeNothingHaveTheWeightsOfAll) {
  const std::string before = "%is = arith.cmpi slt, %j, %i : !i\n";
  EXPECT_EQ(find(kSquare, mask(before, "-1.0e38")), (Tiles{{0, 4}, {0, 4}}));
  EXPECT_EQ(find(kSquare, mask(before)), (Tiles{{0, 2}, {0, 4}}));
  EXPECT_EQ(find(kSquare, mask(constant("%far", 1000) + "%is = arith.cmpi sge, %j, %far : !i\n")),
            (Tiles{{0, 4}, {0, 4}}));
}

/// Rows of the gradient of values are keys, which are seen by later queries.
TEST_F(SeenKeysTest, KeysAreSeenByLaterQueries) {
  auto form =
      analyze(kSquare,
              "%s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : !q, !k -> !s\n" + mask(causal()) +
                  "%mb = nn.broadcast %m dims = [0, 1] : !r -> !s\n"
                  "%x = arith.subf %u, %mb : !s\n"
                  "%e = math.exp %x : !s\n"
                  "%dv = nn.dot %e, %g batch = [0] x [0] contract = [1] x [1] : !s, !g -> !v\n",
              "%dv : !v", "%q: !q, %k: !k, %g: !g, %m: !r");
  ASSERT_TRUE(form) << reason;
  EXPECT_EQ(findSeenKeys(*form, 64, 32), (Tiles{{0, 4}, {2, 4}}));
}

} // namespace
