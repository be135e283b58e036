// Problems that contradict themselves are refused with a message that names the culprit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/planning/Problems.h"

#include <gtest/gtest.h>

namespace ortc::planning {
namespace {

using test::addBuffer;
using test::addStep;

void expectRefused(const Problem &problem, const std::string &message) {
  Expected<Plan> result = plan(problem);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.getStatus().getCode(), ExitCode::Refused);
  EXPECT_EQ(result.getStatus().getMessage(), message);
  EXPECT_EQ(check(problem).getMessage(), message);
}

TEST(ProblemTest, UnknownBuffer) {
  Problem problem;
  addStep(problem, "s", {7}, {});
  expectRefused(problem, "step 0 's' reads buffer 7 but there are 0");
}

TEST(ProblemTest, ReadBeforeWrite) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 64);
  addStep(problem, "use", {a}, {});
  addStep(problem, "make", {}, {a});
  expectRefused(problem, "step 0 'use' reads buffer 0 'a' which step 1 'make' has not written yet");
}

TEST(ProblemTest, ReadOfNothing) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 64);
  addStep(problem, "use", {a}, {});
  expectRefused(problem, "step 0 'use' reads buffer 0 'a' which nothing writes");
}

TEST(ProblemTest, StepReadsWhatItWrites) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 64);
  addStep(problem, "loop", {a}, {a});
  expectRefused(problem, "step 0 'loop' reads buffer 0 'a' which step 0 'loop' has not written yet");
}

TEST(ProblemTest, WrittenTwice) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 128), half = addBuffer(problem, "half", 64);
  problem.views = {{half, a, 64}};
  addStep(problem, "all", {}, {a});
  addStep(problem, "again", {}, {half});
  expectRefused(
      problem,
      "buffer 1 'half' is written by step 1 'again' but its bytes are written by step 0 'all' already "
      "(buffer 0 'a')");
}

TEST(ProblemTest, WrittenOverTheStart) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 128, true);
  addStep(problem, "s", {}, {a});
  expectRefused(
      problem,
      "buffer 0 'a' is written by step 0 's' but its bytes are written by the start already (buffer 0 'a')");
}

TEST(ProblemTest, AliveAtEndButNeverWritten) {
  Problem problem;
  addBuffer(problem, "out", 128, false, true);
  expectRefused(problem, "buffer 0 'out' is alive at the end but nothing writes it");
}

TEST(ProblemTest, BadAlignment) {
  Problem problem;
  addBuffer(problem, "a", 128);
  problem.buffers[0].alignment = 48;
  expectRefused(problem, "buffer 0 'a' has alignment 48 but it must be a power of two, at most 1048576");
}

TEST(ProblemTest, ViewPassesItsBase) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 128), v = addBuffer(problem, "v", 128);
  problem.views = {{v, a, 64}};
  expectRefused(problem, "buffer 1 'v' has 128 bytes at offset 64 of buffer 0 'a' which has 128");
}

TEST(ProblemTest, ViewOffsetWrapsAround) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 128), v = addBuffer(problem, "v", 64);
  problem.views = {{v, a, UINT64_MAX - 63}};
  expectRefused(problem,
                "buffer 1 'v' has 64 bytes at offset 18446744073709551552 of buffer 0 'a' which has 128");
}

TEST(ProblemTest, ViewBreaksItsAlignment) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 128), v = addBuffer(problem, "v", 32);
  problem.views = {{v, a, 32}};
  expectRefused(problem, "buffer 1 'v' starts at byte 32 of buffer 0 'a', which breaks its alignment of 64");
}

TEST(ProblemTest, ViewOfItself) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 64), b = addBuffer(problem, "b", 64);
  problem.views = {{a, b, 0}, {b, a, 0}};
  expectRefused(problem, "buffer 0 'a' is a view of itself");
}

TEST(ProblemTest, ViewOfTwoBuffers) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 64), b = addBuffer(problem, "b", 64), v = addBuffer(problem, "v", 64);
  problem.views = {{v, a, 0}, {v, b, 0}};
  expectRefused(problem, "buffer 2 'v' is a view of two buffers");
}

TEST(ProblemTest, ViewOfUnknownBuffer) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 64);
  problem.views = {{a, 9, 0}};
  expectRefused(problem, "view 0 names buffer 9 but there are 1");
}

TEST(ProblemTest, AfterLaterStep) {
  Problem problem;
  addStep(problem, "first", {}, {}).after = {1};
  addStep(problem, "second", {}, {});
  expectRefused(problem, "step 0 'first' must run after step 1, which is not earlier in the source order");
}

TEST(ProblemTest, SegmentsFall) {
  Problem problem;
  addStep(problem, "first", {}, {}).segment = 1;
  addStep(problem, "second", {}, {});
  expectRefused(problem, "step 1 'second' is in segment 0 but the step before it is in segment 1");
}

TEST(ProblemTest, InPlaceOfWhatIsNotRead) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", 64), b = addBuffer(problem, "b", 64);
  addStep(problem, "a", {}, {a});
  addStep(problem, "b", {}, {b}).inPlace = {{a, b}};
  expectRefused(problem, "step 1 'b' has an in-place read of buffer 0 that it does not read");
}

TEST(ProblemTest, SizesThatOverflow) {
  Problem problem;
  BufferId a = addBuffer(problem, "a", uint64_t(1) << 62), b = addBuffer(problem, "b", 64);
  addStep(problem, "s", {}, {a, b});
  expectRefused(problem, "buffer 1 'b' of 64 bytes takes the sum of all sizes above 4611686018427387904");
  problem.buffers[0].bytes = UINT64_MAX;
  expectRefused(
      problem,
      "buffer 0 'a' of 18446744073709551615 bytes takes the sum of all sizes above 4611686018427387904");
}

TEST(ProblemTest, WorkspaceThatOverflows) {
  Problem problem;
  addStep(problem, "s", {}, {}).workspace = UINT64_MAX - 5;
  expectRefused(problem, "the workspace of step 0 's' takes the sum of all sizes above 4611686018427387904");
}

TEST(ProblemTest, ErrorInABodyNamesTheLoop) {
  auto body = std::make_shared<Problem>();
  addStep(*body, "s", {3}, {});
  Problem problem;
  addStep(problem, "loop", {}, {}).inner = body;
  expectRefused(problem, "in the body of step 0 'loop': step 0 's' reads buffer 3 but there are 0");
}

TEST(ProblemTest, BodiesNestTooDeep) {
  auto body = std::make_shared<Problem>();
  for (int depth = 0; depth < 20; ++depth) {
    auto outer = std::make_shared<Problem>();
    addStep(*outer, "loop", {}, {}).inner = body;
    body = outer;
  }
  Status status = check(*body);
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  EXPECT_NE(status.getMessage().find("is nested more than 16 deep"), std::string::npos)
      << status.getMessage();
}

} // namespace
} // namespace ortc::planning
