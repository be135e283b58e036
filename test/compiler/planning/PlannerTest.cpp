// plan(): every feature of a problem with the arithmetic of the expected figure beside it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/planning/Problems.h"

#include <gtest/gtest.h>

namespace ortc::planning {
namespace {

using test::addBuffer;
using test::addStep;

Plan planned(const Problem &problem, const PlanOptions &options = {}) {
  Expected<Plan> result = plan(problem, options);
  EXPECT_TRUE(result) << result.getStatus().getMessage();
  return result ? *result : Plan{};
}

TEST(PlannerTest, ReusesGapLeftByFreedBuffer) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 1024), b = addBuffer(problem, "b", 512),
           c = addBuffer(problem, "c", 1024);
  addStep(problem, "make a", {}, {a});
  addStep(problem, "a to b", {a}, {b});
  addStep(problem, "b to c", {b}, {c});
  Plan plan = planned(problem);
  EXPECT_EQ(plan.maxLive, 1536u); // a + b, then b + c
  EXPECT_EQ(plan.arenaBytes, 1536u);
  EXPECT_EQ(plan.offsetOf[a], plan.offsetOf[c]);
}

TEST(PlannerTest, EmptyProblemNeedsNothing) {
  Plan plan = planned(Problem{});
  EXPECT_EQ(plan.arenaBytes, 0u);
}

TEST(PlannerTest, BuffersWithoutStepsAreKeptApart) {
  Problem problem;
  addBuffer(problem, "a", 64, true, true);
  addBuffer(problem, "b", 128, true);
  addBuffer(problem, "unused", 4096);
  Plan plan = planned(problem);
  EXPECT_EQ(plan.arenaBytes, 192u);
  EXPECT_EQ(plan.storageOf[2], kNoStorage);
}

TEST(PlannerTest, InPlaceWriteTakesOverDyingRead) {
  Problem problem;
  BufferId x = addBuffer(problem, "x", 640), y = addBuffer(problem, "y", 640);
  addStep(problem, "make", {}, {x});
  addStep(problem, "relu", {x}, {y}).inPlace = {{x, y}};
  addStep(problem, "use", {y}, {});
  Plan plan = planned(problem);
  EXPECT_EQ(plan.arenaBytes, 640u);
  EXPECT_EQ(plan.storageOf[x], plan.storageOf[y]);
  ASSERT_EQ(plan.inPlace[1].size(), 1u);
  PlanOptions without;
  without.inPlace = false;
  EXPECT_EQ(planned(problem, without).arenaBytes, 1280u);
}

TEST(PlannerTest, InPlaceIsRefusedWhileReadIsNeeded) {
  Problem problem;
  BufferId x = addBuffer(problem, "x", 640), y = addBuffer(problem, "y", 640);
  addStep(problem, "make", {}, {x});
  addStep(problem, "relu", {x}, {y}).inPlace = {{x, y}};
  addStep(problem, "use both", {x, y}, {});
  Plan plan = planned(problem);
  EXPECT_EQ(plan.arenaBytes, 1280u);
  EXPECT_TRUE(plan.inPlace[1].empty());
}

TEST(PlannerTest, SmallInPlaceWriteGivesTheTailBack) {
  // x (1024) -> y (64) in place; then z (960) fits behind y.
  Problem problem;
  BufferId x = addBuffer(problem, "x", 1024), y = addBuffer(problem, "y", 64),
           z = addBuffer(problem, "z", 960);
  addStep(problem, "make", {}, {x});
  addStep(problem, "sum", {x}, {y}).inPlace = {{x, y}};
  addStep(problem, "more", {}, {z}).after = {1};
  addStep(problem, "use", {y, z}, {});
  Plan plan = planned(problem);
  EXPECT_EQ(plan.maxLive, 1024u);
  EXPECT_EQ(plan.arenaBytes, 1024u);
  EXPECT_EQ(plan.offsetOf[y], plan.offsetOf[x]);
  EXPECT_EQ(plan.offsetOf[z], plan.offsetOf[y] + 64);
}

TEST(PlannerTest, InPlaceChoosesTheMatchingThatSavesMost) {
  // p fits only in a, q in a or b: both are in place when q takes b.
  Problem problem;
  BufferId a = addBuffer(problem, "a", 512), b = addBuffer(problem, "b", 256);
  BufferId p = addBuffer(problem, "p", 512), q = addBuffer(problem, "q", 256);
  addStep(problem, "make", {}, {a, b});
  addStep(problem, "swap", {a, b}, {p, q}).inPlace = {{a, q}, {a, p}, {b, q}};
  addStep(problem, "use", {p, q}, {});
  Plan plan = planned(problem);
  EXPECT_EQ(plan.arenaBytes, 768u);
  EXPECT_EQ(plan.statistics.inPlaceWrites, 2u);
}

TEST(PlannerTest, InPlaceRefusesBytesTheStepReadsAsView) {
  // y may take x's place, but the step also reads x's first half under another name.
  Problem problem;
  BufferId x = addBuffer(problem, "x", 128), head = addBuffer(problem, "head", 64),
           y = addBuffer(problem, "y", 128);
  problem.views = {{head, x, 0}};
  addStep(problem, "make", {}, {x});
  addStep(problem, "mix", {x, head}, {y}).inPlace = {{x, y}};
  addStep(problem, "use", {y}, {});
  EXPECT_EQ(planned(problem).arenaBytes, 256u);
}

TEST(PlannerTest, ViewSharesBytesAndKeepsThemAlive) {
  Problem problem;
  BufferId x = addBuffer(problem, "x", 256), flat = addBuffer(problem, "flat", 256),
           tail = addBuffer(problem, "tail", 64);
  problem.views = {{flat, x, 0}, {tail, flat, 192}};
  BufferId other = addBuffer(problem, "other", 256);
  addStep(problem, "make", {}, {x});
  addStep(problem, "other", {}, {other}).after = {0};
  addStep(problem, "use", {tail, other}, {}); // x lives through its view
  Plan plan = planned(problem);
  EXPECT_EQ(plan.arenaBytes, 512u);
  EXPECT_EQ(plan.offsetOf[tail], plan.offsetOf[x] + 192);
  EXPECT_EQ(plan.storageOf[tail], plan.storageOf[x]);
}

TEST(PlannerTest, ConcatenationIsWrittenInPieces) {
  Problem problem;
  BufferId whole = addBuffer(problem, "whole", 256), left = addBuffer(problem, "left", 128),
           right = addBuffer(problem, "right", 128);
  problem.views = {{left, whole, 0}, {right, whole, 128}};
  addStep(problem, "left", {}, {left});
  addStep(problem, "right", {}, {right});
  addStep(problem, "use", {whole}, {});
  Plan plan = planned(problem);
  EXPECT_EQ(plan.arenaBytes, 256u);
  EXPECT_EQ(plan.order.back(), 2u);
}

TEST(PlannerTest, UpdatesRunRightAfterTheirGradients) {
  // Four gradients of 1024 and updates at the end of the source: 4096, released 1024.
  Problem problem;
  std::vector<BufferId> gradients;
  for (int i = 0; i < 4; ++i) {
    gradients.push_back(addBuffer(problem, "g", 1024));
    addStep(problem, "gradient", {}, {gradients.back()});
  }
  for (BufferId g : gradients)
    addStep(problem, "update", {g}, {});
  Plan plan = planned(problem);
  EXPECT_EQ(plan.statistics.plainSourcePeak, 4096u);
  EXPECT_EQ(plan.sourcePeak, 1024u);
  EXPECT_EQ(plan.arenaBytes, 1024u);
  EXPECT_EQ(plan.orderBound, 1024u);
}

TEST(PlannerTest, UpdateWaitsForReadersOfTheOldWeight) {
  Problem problem;
  BufferId g = addBuffer(problem, "g", 64), dx = addBuffer(problem, "dx", 64);
  addStep(problem, "weight gradient", {}, {g});
  addStep(problem, "input gradient", {}, {dx});
  addStep(problem, "update", {g}, {}).after = {1};
  addStep(problem, "use dx", {dx}, {});
  Plan plan = planned(problem);
  auto at = [&](StepId s) { return std::find(plan.order.begin(), plan.order.end(), s) - plan.order.begin(); };
  EXPECT_LT(at(1), at(2));
}

TEST(PlannerTest, SegmentsAreNotMixed) {
  Problem problem;
  BufferId g = addBuffer(problem, "g", 64, false, true), h = addBuffer(problem, "h", 64, false, true);
  addStep(problem, "g", {}, {g});
  addStep(problem, "h", {}, {h});
  addStep(problem, "update g", {g}, {}).segment = 1;
  addStep(problem, "update h", {h}, {}).segment = 1;
  Plan plan = planned(problem);
  EXPECT_EQ(plan.arenaBytes, 128u); // both cross the cut
  EXPECT_LT(plan.order[1], 2u);
}

TEST(PlannerTest, AliveAtEndIsNeverReused) {
  Problem problem;
  BufferId out = addBuffer(problem, "out", 64, false, true), tmp = addBuffer(problem, "tmp", 64);
  addStep(problem, "out", {}, {out});
  addStep(problem, "tmp", {}, {tmp}).after = {0};
  addStep(problem, "use", {tmp, out}, {});
  EXPECT_EQ(planned(problem).arenaBytes, 128u);
}

TEST(PlannerTest, WorkspaceLivesForItsStepOnly) {
  Problem problem;
  BufferId x = addBuffer(problem, "x", 64), y = addBuffer(problem, "y", 64);
  Step &first = addStep(problem, "first", {}, {x});
  first.workspace = 1000; // rounded to 1024
  Step &second = addStep(problem, "second", {x}, {y});
  second.workspace = 500; // rounded to 512
  Plan plan = planned(problem);
  EXPECT_EQ(plan.arenaBytes, 64u + 1024u);
  EXPECT_NE(plan.workspaceOf[0], kNoOffset);
}

TEST(PlannerTest, LargeAlignmentIsKept) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 64), b = addBuffer(problem, "b", 64);
  problem.buffers[b].alignment = 4096;
  addStep(problem, "make", {}, {a, b});
  addStep(problem, "use", {a, b}, {});
  Plan plan = planned(problem);
  EXPECT_EQ(plan.offsetOf[b] % 4096, 0u);
  EXPECT_EQ(plan.arenaAlignment, 4096u);
  EXPECT_EQ(plan.arenaBytes, 128u); // b at 0, a behind it
}

/// A loop whose body holds a loop: the inner arenas are workspaces, one inside the other.
TEST(PlannerTest, TwoLevelsOfBodiesNest) {
  auto innermost = std::make_shared<Problem>();
  BufferId t = addBuffer(*innermost, "t", 256), u = addBuffer(*innermost, "u", 64);
  addStep(*innermost, "t", {}, {t});
  addStep(*innermost, "u", {t}, {u});
  auto middle = std::make_shared<Problem>();
  BufferId m = addBuffer(*middle, "m", 128);
  addStep(*middle, "m", {}, {m});
  addStep(*middle, "inner loop", {m}, {}).inner = innermost;
  Problem problem;
  BufferId x = addBuffer(problem, "x", 512), y = addBuffer(problem, "y", 1024);
  addStep(problem, "x", {}, {x});
  addStep(problem, "outer loop", {x}, {}).inner = middle;
  addStep(problem, "y", {}, {y}).after = {1};
  Plan plan = planned(problem);
  ASSERT_TRUE(plan.inner[1]);
  ASSERT_TRUE(plan.inner[1]->inner[1]);
  EXPECT_EQ(plan.inner[1]->inner[1]->arenaBytes, 320u); // t + u
  EXPECT_EQ(plan.inner[1]->arenaBytes, 448u);           // m + 320
  EXPECT_EQ(plan.maxLive, 1024u);                       // x + 448 = 960 while looping, then y alone
  EXPECT_EQ(plan.arenaBytes, 1024u);
  // Offsets add up: the innermost t lies inside both arenas and apart from x.
  uint64_t place =
      plan.innerArenaOf[1] + plan.inner[1]->innerArenaOf[1] + plan.inner[1]->inner[1]->offsetOf[t];
  EXPECT_LE(place + 256, plan.arenaBytes);
  EXPECT_TRUE(place + 256 <= plan.offsetOf[x] || place >= plan.offsetOf[x] + 512);
}

TEST(PlannerTest, SourceOrderIsKeptWhenAsked) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 64), b = addBuffer(problem, "b", 64);
  addStep(problem, "a", {}, {a});
  addStep(problem, "b", {}, {b});
  addStep(problem, "use a", {a}, {});
  addStep(problem, "use b", {b}, {});
  PlanOptions options;
  options.reorder = options.release = false;
  Plan plan = planned(problem, options);
  EXPECT_EQ(plan.order, (std::vector<StepId>{0, 1, 2, 3}));
  EXPECT_EQ(plan.arenaBytes, 128u);
  EXPECT_EQ(plan.orderBound, 64u);
}

TEST(PlannerTest, RandomProblemsPassTheValidatorAndKeepTheirBounds) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::RandomOptions options;
    options.steps = 1 + seed % 40;
    options.segments = seed % 3 == 0;
    options.bodies = seed % 4 == 0;
    options.oddSizes = seed % 5 == 0;
    Problem problem = test::randomProblem(seed, options);
    PlanOptions limits;
    limits.orderWork = limits.boundWork = limits.offsetWork = limits.exactWork = 500'000;
    Plan plan = planned(problem, limits); // plan() runs the validator
    EXPECT_LE(plan.orderBound, plan.maxLive);
    EXPECT_LE(plan.maxLive, plan.sourcePeak);
    EXPECT_LE(plan.sourcePeak, plan.statistics.plainSourcePeak);
  }
}

TEST(PlannerTest, SameProblemGivesSamePlan) {
  test::RandomOptions options;
  options.steps = 60;
  for (uint32_t seed = 0; seed < 10; ++seed) {
    Problem problem = test::randomProblem(seed, options);
    PlanOptions limits;
    limits.offsetWork = limits.exactWork = 5'000'000;
    Plan first = planned(problem, limits), second = planned(problem, limits);
    EXPECT_EQ(first.order, second.order) << "seed " << seed;
    EXPECT_EQ(first.offsetOf, second.offsetOf) << "seed " << seed;
  }
}

} // namespace
} // namespace ortc::planning
