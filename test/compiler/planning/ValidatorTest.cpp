// The validator refuses plans that were damaged in one place, with the message that says where.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/planning/Problems.h"

#include <gtest/gtest.h>

namespace ortc::planning {
namespace {

using test::addBuffer;
using test::addStep;

class ValidatorTest : public testing::Test {
protected:
  ValidatorTest() {
    x = addBuffer(problem, "x", 256);
    y = addBuffer(problem, "y", 256);
    z = addBuffer(problem, "z", 128, false, true);
    flat = addBuffer(problem, "flat", 256);
    problem.views = {{flat, y, 0}};
    addStep(problem, "make", {}, {x});
    addStep(problem, "relu", {x}, {y}).inPlace = {{x, y}};
    addStep(problem, "sum", {flat}, {z}).workspace = 64;
    addStep(problem, "check", {z}, {}).after = {1};
    Expected<Plan> result = ortc::planning::plan(problem);
    EXPECT_TRUE(result) << result.getStatus().getMessage();
    plan = *result;
  }

  void expectRefused(const std::string &message) {
    Status status = validate(problem, plan);
    EXPECT_EQ(status.getCode(), ExitCode::Failed);
    EXPECT_EQ(status.getMessage(), message);
  }

  Problem problem;
  Plan plan;
  BufferId x, y, z, flat;
};

TEST_F(ValidatorTest, AcceptsThePlan) {
  Status status = validate(problem, plan);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  EXPECT_EQ(plan.arenaBytes, 448u); // y + z + workspace
}

TEST_F(ValidatorTest, MissingStep) {
  plan.order.pop_back();
  expectRefused("the plan has 3 steps but the problem has 4");
}

TEST_F(ValidatorTest, StepTwice) {
  plan.order[0] = plan.order[1];
  expectRefused("step 1 'relu' is in the order twice");
}

TEST_F(ValidatorTest, UnknownStep) {
  plan.order[0] = 9;
  expectRefused("position 0 of the order names step 9 but there are 4");
}

TEST_F(ValidatorTest, ReadBeforeWrite) {
  std::swap(plan.order[0], plan.order[1]);
  expectRefused("step 1 'relu' reads buffer 0 'x' before step 0 'make' writes it");
}

TEST_F(ValidatorTest, AfterEdgeBroken) {
  problem.steps[3].reads.clear();
  plan.order = {0, 3, 1, 2};
  expectRefused("step 3 'check' runs before step 1 'relu' which it must follow");
}

TEST_F(ValidatorTest, SegmentsMixed) {
  problem.steps[0].segment = 1;
  expectRefused("step 1 'relu' of segment 0 runs after a step of segment 1");
}

TEST_F(ValidatorTest, OutsideTheArena) {
  plan.arenaBytes = 64;
  expectRefused("buffer 0 'x' of 256 bytes at offset " + std::to_string(plan.offsetOf[x]) +
                " passes the end of the arena of 64 bytes");
}

TEST_F(ValidatorTest, Misaligned) {
  plan.offsetOf[z] += 1;
  plan.arenaBytes += 64;
  expectRefused("buffer 2 'z' at offset " + std::to_string(plan.offsetOf[z]) + " breaks its alignment of 64");
}

TEST_F(ValidatorTest, ViewElsewhere) {
  plan.offsetOf[flat] += 64;
  plan.arenaBytes += 64;
  expectRefused("buffer 3 'flat' is not where it lies in buffer 1 'y'");
}

TEST_F(ValidatorTest, OverlapOfLiveBuffers) {
  plan.offsetOf[z] = plan.offsetOf[y];
  expectRefused("buffer 2 'z' at offset " + std::to_string(plan.offsetOf[z]) +
                " overlaps buffer 1 'y' at step 2 'sum'");
}

TEST_F(ValidatorTest, OverlapWithWorkspace) {
  plan.workspaceOf[2] = plan.offsetOf[z];
  expectRefused("the workspace of step 2 'sum' at offset " + std::to_string(plan.offsetOf[z]) +
                " overlaps buffer 2 'z' at step 2 'sum'");
}

TEST_F(ValidatorTest, WorkspaceMissing) {
  plan.workspaceOf[2] = kNoOffset;
  expectRefused("the workspace of step 2 'sum' has no place with an alignment of 64");
}

TEST_F(ValidatorTest, InPlaceNotACandidate) {
  problem.steps[1].inPlace.clear();
  expectRefused(
      "step 1 'relu' writes buffer 1 'y' in place of buffer 0 'x', which is not one of its candidates");
}

TEST_F(ValidatorTest, InPlaceUnknownBuffer) {
  plan.inPlace[1] = {{77, y}};
  expectRefused("step 1 'relu' uses buffer 77 in place but there are 4");
}

TEST_F(ValidatorTest, InPlaceOfWhatIsStillNeeded) {
  problem.steps[3].reads.push_back(x);
  expectRefused("step 1 'relu' writes buffer 1 'y' in place of buffer 0 'x', which is still needed after it");
}

TEST_F(ValidatorTest, InPlaceNotTakenButShared) {
  plan.inPlace[1].clear();
  expectRefused("buffer 1 'y' at offset " + std::to_string(plan.offsetOf[y]) +
                " overlaps buffer 0 'x' at step 1 'relu'");
}

TEST_F(ValidatorTest, InPlaceLargerThanTheRead) {
  problem.buffers[x].bytes = 128;
  expectRefused("step 1 'relu' writes buffer 1 'y' in place of buffer 0 'x', which is smaller");
}

TEST_F(ValidatorTest, WrongMaxLive) {
  plan.maxLive -= 64;
  expectRefused("max-live is 448 but the plan says 384");
}

TEST_F(ValidatorTest, BoundAboveMaxLive) {
  plan.orderBound = 512;
  expectRefused("the bound of 512 is above max-live of 448");
}

TEST_F(ValidatorTest, BodyWithoutPlan) {
  auto body = std::make_shared<Problem>();
  problem.steps[0].inner = body;
  expectRefused("step 0 'make' has a body but no plan of it");
}

TEST_F(ValidatorTest, DamagedBodyIsFound) {
  auto body = std::make_shared<Problem>();
  BufferId t = addBuffer(*body, "t", 64), u = addBuffer(*body, "u", 64);
  addStep(*body, "both", {}, {t, u});
  problem.steps[0].inner = body;
  Expected<Plan> result = ortc::planning::plan(problem);
  ASSERT_TRUE(result);
  plan = *result;
  auto inner = std::make_shared<Plan>(*plan.inner[0]);
  inner->offsetOf[u] = inner->offsetOf[t];
  plan.inner[0] = inner;
  expectRefused(
      "in the body of step 0 'make': buffer 1 'u' at offset 0 overlaps buffer 0 't' at step 0 'both'");
}

/// Random damage to random plans: moving one buffer that others surround must be noticed or be harmless,
/// and an independent pairwise check says which.
TEST(ValidatorRandomTest, AgreesWithPairwiseCheckOnDamagedPlans) {
  int refused = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    test::RandomOptions options;
    options.steps = 12;
    options.inPlace = options.views = options.workspaces = false;
    Problem problem = test::randomProblem(seed, options);
    Expected<Plan> result = plan(problem);
    ASSERT_TRUE(result);
    Plan damaged = *result;
    std::mt19937 random(seed);
    if (problem.buffers.empty())
      continue;
    BufferId moved = test::draw(random, 0, uint32_t(problem.buffers.size()) - 1);
    damaged.offsetOf[moved] = 64ull * test::draw(random, 0, uint32_t(damaged.arenaBytes / 64));
    std::vector<int> first(problem.buffers.size(), 1000), last(problem.buffers.size(), -1);
    for (int p = 0; p < int(damaged.order.size()); ++p)
      for (const auto *list :
           {&problem.steps[damaged.order[p]].reads, &problem.steps[damaged.order[p]].writes})
        for (BufferId b : *list) {
          first[b] = std::min(first[b], p);
          last[b] = std::max(last[b], p);
        }
    bool bad = false;
    for (BufferId b = 0; b < problem.buffers.size(); ++b) {
      bool used = last[b] >= 0;
      if (problem.buffers[b].aliveAtStart)
        first[b] = 0;
      if (problem.buffers[b].aliveAtEnd || (problem.buffers[b].aliveAtStart && !used))
        last[b] = int(damaged.order.size()) - 1;
    }
    for (BufferId b = 0; b < problem.buffers.size(); ++b) {
      if (last[b] < 0)
        continue;
      bad |= damaged.offsetOf[b] + problem.buffers[b].bytes > damaged.arenaBytes;
      for (BufferId c = 0; c < b; ++c)
        bad |= last[c] >= 0 && first[b] <= last[c] && first[c] <= last[b] &&
               damaged.offsetOf[b] < damaged.offsetOf[c] + problem.buffers[c].bytes &&
               damaged.offsetOf[c] < damaged.offsetOf[b] + problem.buffers[b].bytes;
    }
    EXPECT_EQ(!validate(problem, damaged).isOk(), bad) << "seed " << seed;
    refused += bad;
  }
  EXPECT_GE(refused, 260); // 264 when written; depends on plans
}

} // namespace
} // namespace ortc::planning
