// Offsets against the exhaustive optimum of small problems, and on the shapes that planners get wrong.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/planning/Problems.h"

#include "compiler/planning/packing/Packing.h"

#include <gtest/gtest.h>

#include <numeric>

namespace ortc::planning {
namespace {

PackingProblem randomPacking(uint32_t seed, uint32_t count, uint32_t sections, bool chains) {
  std::mt19937 random(seed);
  PackingProblem problem;
  problem.sections = sections;
  for (uint32_t i = 0; i < count; ++i) {
    Item item;
    uint32_t begin = test::draw(random, 0, sections - 1), end = test::draw(random, begin + 1, sections);
    uint64_t size = test::draw(random, 1, 8);
    while (begin < end) {
      uint32_t stop = chains && test::draw(random, 0, 2) == 0 ? test::draw(random, begin + 1, end) : end;
      item.pieces.push_back({begin, stop, size});
      begin = stop;
      if (size > 1)
        size = test::draw(random, 1, uint32_t(size) - 1);
      else
        break;
    }
    problem.items.push_back(item);
  }
  return problem;
}

/// Lowest height over all orders of placing items one on top of the others. The items of an optimal packing,
/// taken by rising offset, are such an order, so this is the optimum.
uint64_t exhaustiveHeight(const PackingProblem &problem) {
  std::vector<uint32_t> order(problem.items.size());
  std::iota(order.begin(), order.end(), 0u);
  uint64_t best = UINT64_MAX;
  do {
    std::vector<uint64_t> floor(problem.sections, 0);
    uint64_t height = 0;
    for (uint32_t i : order) {
      uint64_t offset = 0;
      for (const Piece &piece : problem.items[i].pieces)
        for (uint32_t t = piece.begin; t < piece.end; ++t)
          offset = std::max(offset, floor[t]);
      for (const Piece &piece : problem.items[i].pieces)
        for (uint32_t t = piece.begin; t < piece.end; ++t)
          floor[t] = offset + piece.size;
      height = std::max(height, offset + problem.items[i].pieces.front().size);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(PackingTest, ExactSearchFindsTheOptimumOfSmallProblems) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    PackingProblem problem = randomPacking(seed, 3 + seed % 5, 8, false);
    PackingOptions options;
    options.work = 1000;
    options.exactWork = 50'000'000;
    Packing packing = pack(problem, options);
    ASSERT_EQ(packing.height, exhaustiveHeight(problem)) << "seed " << seed;
    Status status = validatePacking(problem, packing.offsets, packing.height);
    ASSERT_TRUE(status.isOk()) << "seed " << seed << ": " << status.getMessage();
  }
}

/// A rectangle of 64 sections and 1000 bytes cut in `count` parts: max-live is 1000 and is reached.
PackingProblem cutRectangle(uint32_t seed, uint32_t count) {
  struct Part {
    uint32_t begin, end;
    uint64_t low, high;
  };
  std::mt19937 random(seed);
  std::vector<Part> parts{{0, 64, 0, 1000}};
  while (parts.size() < count) {
    Part &part = parts[random() % parts.size()];
    Part rest = part;
    if (random() % 2 == 0 && part.end - part.begin > 1)
      part.end = rest.begin = test::draw(random, part.begin + 1, part.end - 1);
    else if (part.high - part.low > 1)
      part.high = rest.low = test::draw(random, uint32_t(part.low) + 1, uint32_t(part.high) - 1);
    else
      continue;
    parts.push_back(rest);
  }
  PackingProblem problem;
  problem.sections = 64;
  for (const Part &part : parts)
    problem.items.push_back({{{part.begin, part.end, part.high - part.low}}, 1});
  return problem;
}

TEST(PackingTest, ExactSearchRebuildsCutRectangles) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    PackingProblem problem = cutRectangle(seed, 10 + seed % 21);
    PackingOptions options;
    options.work = 0; // one placement, then the search
    options.exactWork = 400'000'000;
    Packing packing = pack(problem, options);
    EXPECT_EQ(packing.maxLive, 1000u);
    EXPECT_EQ(packing.height, 1000u) << "seed " << seed;
    EXPECT_TRUE(validatePacking(problem, packing.offsets, packing.height).isOk()) << "seed " << seed;
  }
}

TEST(PackingTest, HeuristicsFindTheOptimumOfSmallProblemsAndChains) {
  int optimal = 0, total = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    PackingProblem problem = randomPacking(1000 + seed, 3 + seed % 5, 8, true);
    PackingOptions options;
    options.work = 1'000'000;
    options.exactWork = 0;
    Packing packing = pack(problem, options);
    Status status = validatePacking(problem, packing.offsets, packing.height);
    ASSERT_TRUE(status.isOk()) << "seed " << seed << ": " << status.getMessage();
    uint64_t optimum = exhaustiveHeight(problem);
    ASSERT_GE(packing.height, optimum) << "seed " << seed;
    ASSERT_LE(packing.maxLive, optimum) << "seed " << seed;
    optimal += packing.height == optimum;
    ++total;
  }
  RecordProperty("optimal", optimal);
  EXPECT_GE(optimal, total * 98 / 100); // 400 of 400 when written; room for other tie-breaks
}

TEST(PackingTest, ComponentsArePackedAlone) {
  // Two crowds that never meet; each needs 3.
  PackingProblem problem;
  problem.sections = 4;
  for (uint32_t begin : {0u, 2u})
    for (uint64_t size : {1, 2})
      problem.items.push_back({{{begin, begin + 2, size}}, 1});
  Packing packing = pack(problem);
  EXPECT_EQ(packing.height, 3u);
  EXPECT_EQ(packing.maxLive, 3u);
}

TEST(PackingTest, LargeRandomProblemIsCloseToMaxLive) {
  // 2000 items of short lives: activation-like. Within 5 % of max-live is the planner's promise.
  std::mt19937 random(7);
  PackingProblem problem;
  problem.sections = 1000;
  for (int i = 0; i < 2000; ++i) {
    uint32_t begin = test::draw(random, 0, 989);
    problem.items.push_back(
        {{{begin, begin + test::draw(random, 1, 10), 64ull * test::draw(random, 1, 1000)}}, 64});
  }
  Packing packing = pack(problem);
  EXPECT_TRUE(validatePacking(problem, packing.offsets, packing.height).isOk());
  EXPECT_LE(double(packing.height), 1.05 * double(packing.maxLive));
}

TEST(PackingTest, ItemsSinkIntoGaps) {
  // x is away in the middle, where y, which is as large, takes its place.
  PackingProblem problem;
  problem.sections = 9;
  problem.items = {{{{0, 3, 64}, {6, 9, 64}}, 64}, {{{3, 6, 64}}, 64}};
  EXPECT_EQ(pack(problem).height, 64u);
  // It keeps its upper half: y goes below.
  problem.items = {{{{0, 3, 64}, {3, 6, 32, 32}, {6, 9, 64}}, 32}, {{{3, 6, 32}}, 32}};
  EXPECT_EQ(pack(problem).height, 64u);
}

TEST(PackingTest, FixedItemsStayAndOthersGoAround) {
  PackingProblem problem;
  problem.sections = 4;
  problem.items = {{{{0, 4, 2}}, 1, 4}, {{{0, 4, 4}}, 1}, {{{1, 3, 1}}, 1}, {{{2, 3, 3}}, 1}};
  Packing packing = pack(problem);
  EXPECT_TRUE(validatePacking(problem, packing.offsets, packing.height).isOk());
  EXPECT_EQ(packing.offsets[0], 4u);
  EXPECT_EQ(packing.height, 10u); // 4 below, 2 fixed, 1 + 3 above
  problem.items[0].fixed = 100;
  packing = pack(problem);
  EXPECT_EQ(packing.maxLive, 10u);
  EXPECT_EQ(packing.bound, 102u);
  EXPECT_EQ(packing.height, 102u);
}

TEST(PackingTest, HintsAreKeptWhereTheyFit) {
  PackingProblem problem;
  problem.sections = 2;
  problem.items = {{{{0, 2, 4}}, 1}, {{{0, 2, 8}}, 1}, {{{0, 2, 2}}, 1}};
  const uint64_t hints[] = {10, 2, 0};
  for (int i = 0; i < 3; ++i)
    problem.items[i].hint = hints[i];
  Packing packing = pack(problem);
  EXPECT_EQ(packing.height, 14u);
  EXPECT_EQ(packing.offsets, (std::vector<uint64_t>{10, 2, 0}));
  EXPECT_EQ(packing.source, "first-fit:hints");
  problem.items[0].hint = 1000; // no use: the height would be 1004
  packing = pack(problem);
  EXPECT_EQ(packing.height, 14u);
}

TEST(PackingTest, PoolsArePackedAlone) {
  PackingProblem problem;
  problem.sections = 2;
  for (uint64_t size : {1, 2, 3, 4})
    problem.items.push_back({{{0, 2, size}}, 1});
  std::vector<Pool> pools = splitPools(problem, {7, 2, 7, 2});
  ASSERT_EQ(pools.size(), 2u);
  EXPECT_EQ(pools[0].number, 2u);
  EXPECT_EQ(pools[0].items, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(pack(pools[0].problem).height, 6u);
  EXPECT_EQ(pack(pools[1].problem).height, 4u);
}

/// Every rule of the validator, broken once.
TEST(PackingTest, ValidatorSeesEveryFault) {
  PackingProblem problem;
  problem.sections = 3;
  problem.items = {{{{0, 2, 64}}, 64}, {{{1, 3, 64}}, 64}};
  EXPECT_TRUE(validatePacking(problem, {0, 64}, 128).isOk());
  EXPECT_EQ(validatePacking(problem, {0, 0}, 128).getMessage(), "items 0 and 1 overlap at time 1");
  EXPECT_EQ(validatePacking(problem, {64, 0}, 127).getMessage(),
            "item 0 of 64 bytes at offset 64 passes the height of 127");
  EXPECT_EQ(validatePacking(problem, {0, UINT64_MAX - 63}, 128).getMessage(),
            "item 1 of 64 bytes at offset 18446744073709551552 passes the height of 128");
  EXPECT_EQ(validatePacking(problem, {0, 65}, 200).getMessage(),
            "item 1 at offset 65 breaks its alignment of 64");
  EXPECT_EQ(validatePacking(problem, {0}, 200).getMessage(), "there are 1 offsets for 2 items");
  problem.items[1].fixed = 128;
  EXPECT_EQ(validatePacking(problem, {0, 64}, 200).getMessage(),
            "item 1 at offset 64 is not at its fixed offset of 128");
  // A window is where it lies in its item: item 1 needs its upper half only while item 0 is there.
  problem.items[1] = {{{1, 2, 32, 32}, {2, 3, 64}}, 32};
  EXPECT_TRUE(validatePacking(problem, {0, 32}, 96).isOk());
  EXPECT_EQ(validatePacking(problem, {0, 0}, 96).getMessage(), "items 0 and 1 overlap at time 1");
  EXPECT_EQ(validatePacking(problem, {0, 64}, 96).getMessage(),
            "item 1 of 64 bytes at offset 64 passes the height of 96");
}

TEST(PackingTest, ProblemsThatContradictThemselvesAreRefused) {
  PackingProblem problem;
  problem.sections = 3;
  auto refused = [&](Item item) {
    problem.items = {{{{0, 2, 64}}, 64, 0}, item};
    return checkPacking(problem).getMessage();
  };
  EXPECT_EQ(refused({{{2, 3, 64}}, 64, 0}), "");
  EXPECT_EQ(refused({{}, 64}), "item 1 has no piece");
  EXPECT_EQ(refused({{{1, 1, 64}}, 64}),
            "item 1 has a piece from 1 to 1 but it must lie between 0 and 3 and not be empty");
  EXPECT_EQ(refused({{{0, 2, 64}, {1, 3, 64}}, 64}),
            "item 1 has a piece from 1 to 3 but it must lie between 2 and 3 and not be empty");
  EXPECT_EQ(refused({{{0, 4, 64}}, 64}),
            "item 1 has a piece from 0 to 4 but it must lie between 0 and 3 and not be empty");
  EXPECT_EQ(refused({{{0, 1, 0}}, 64}),
            "item 1 has a piece of 0 bytes from byte 0 on but a piece has at least 1 "
            "and ends at 4611686018427387904 or below");
  EXPECT_EQ(refused({{{0, 1, 64}}, 48}),
            "item 1 has an alignment of 48 but it must be a power of two up to 1048576");
  EXPECT_EQ(refused({{{0, 1, 64}}, 64, 32}),
            "item 1 has a fixed offset of 32, which breaks its alignment of 64");
  EXPECT_EQ(refused({{{1, 3, 64}}, 1, 63}),
            "items 0 and 1 have fixed offsets at which they overlap at time 1");
  EXPECT_EQ(refused({{{1, 3, 64}}, 1, uint64_t(1) << 62}),
            "the sum of all sizes on top of the highest offset, 4611686018427387904, is above "
            "4611686018427387904");
  EXPECT_EQ(refused({{{1, 3, uint64_t(1) << 62}}, 1}), "the sum of all sizes is above 4611686018427387904");
}

} // namespace
} // namespace ortc::planning
