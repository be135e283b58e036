// CSV both ways, and hostile files with the message they get.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/planning/Problems.h"

#include "compiler/planning/csv/Csv.h"

#include <gtest/gtest.h>

namespace ortc::planning {
namespace {

TEST(CsvTest, ProblemsAndPlansSurviveTheRoundTrip) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::RandomOptions options;
    options.steps = 1 + seed % 20;
    options.bodies = seed % 2 == 0;
    options.oddSizes = seed % 3 == 0;
    Problem problem = test::randomProblem(seed, options);
    std::string text = writeProblem(problem);
    Expected<Problem> read = readProblem(text);
    ASSERT_TRUE(read) << read.getStatus().getMessage();
    EXPECT_EQ(writeProblem(*read), text);
    PlanOptions limits;
    limits.offsetWork = limits.exactWork = 100'000;
    Expected<Plan> result = plan(*read, limits);
    ASSERT_TRUE(result) << result.getStatus().getMessage();
    std::string planText = writePlan(*result);
    Expected<Plan> planRead = readPlan(*read, planText);
    ASSERT_TRUE(planRead) << planRead.getStatus().getMessage();
    EXPECT_EQ(writePlan(*planRead), planText);
    Status status = validate(problem, *planRead);
    EXPECT_TRUE(status.isOk()) << status.getMessage();
  }
}

TEST(CsvTest, NamesWithCommasQuotesAndLineBreaks) {
  Problem problem;
  test::addBuffer(problem, "a,\"b\"\nc", 64, true);
  Expected<Problem> read = readProblem(writeProblem(problem));
  ASSERT_TRUE(read) << read.getStatus().getMessage();
  EXPECT_EQ(read->buffers[0].name, "a,\"b\"\nc");
}

TEST(CsvTest, WindowsLineEndsByteOrderMarkAndEmptyLines) {
  Expected<Problem> read =
      readProblem("\xEF\xBB\xBFproblem,1\r\n\r\nbuffer,0,a,64,64,1,0\r\nstep,0,s,0,0,,,0\r\n");
  ASSERT_TRUE(read) << read.getStatus().getMessage();
  EXPECT_EQ(read->steps[0].reads, std::vector<BufferId>{0});
}

struct Hostile {
  const char *name, *text, *message;
};

void PrintTo(const Hostile &hostile, std::ostream *out) { *out << hostile.name; }

class HostileProblemTest : public testing::TestWithParam<Hostile> {};

TEST_P(HostileProblemTest, IsRefused) {
  Expected<Problem> read = readProblem(GetParam().text);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.getStatus().getMessage(), GetParam().message);
}

#define HEAD "problem,1\nbuffer,0,a,64,64,1,0\n"
INSTANTIATE_TEST_SUITE_P(
    Csv, HostileProblemTest,
    testing::Values(
        Hostile{"Empty", "", "line 1: the file is empty"}, //
        Hostile{"OtherVersion", "problem,2\n", "line 1: a problem starts with 'problem,1'"},
        Hostile{"UnknownRecord", HEAD "magic,1\n", "line 3: unknown record 'magic'"},
        Hostile{"FieldsMissing", HEAD "buffer,1,b\n", "line 3: 'buffer' has 2 fields but needs 6"},
        Hostile{"NotANumber", HEAD "buffer,1,b,12x,64,0,0\n", "line 3: size '12x' is not a number"},
        Hostile{"Negative", HEAD "buffer,1,b,-1,64,0,0\n", "line 3: size '-1' is not a number"},
        Hostile{"TooLarge", HEAD "buffer,1,b,18446744073709551616,64,0,0\n",
                "line 3: size 18446744073709551616 is above 18446744073709551615"},
        Hostile{"IdOutOfOrder", HEAD "buffer,5,b,64,64,0,0\n",
                "line 3: buffer id is 5 but the next one is 1"},
        Hostile{"BadFlag", HEAD "buffer,1,b,64,64,2,0\n", "line 3: alive at start 2 is above 1"},
        Hostile{"IdTooLarge", HEAD "step,0,s,0,4294967295,,,0\n",
                "line 3: buffer 4294967295 is above 4294967294"},
        Hostile{"UnknownBuffer", HEAD "step,0,s,0,3,,,0\n", "step 0 's' reads buffer 3 but there are 1"},
        Hostile{"OpenQuote", HEAD "buffer,1,\"b,64,64,0,0\n", "line 3: a quoted field has no closing quote"},
        Hostile{"TextAfterQuote", HEAD "buffer,1,\"b\"x,64,64,0,0\n",
                "line 3: a quoted field goes on after its closing quote"},
        Hostile{"StrayQuote", HEAD "buffer,1,b\"c,64,64,0,0\n",
                "line 3: a quote inside a field that does not start with one"},
        Hostile{"InPlaceElsewhere", HEAD "inplace,0,0,0\n",
                "line 3: 'inplace' of step 0 does not follow its step"},
        Hostile{"InnerElsewhere", HEAD "inner,4\n", "line 3: 'inner' of step 4 does not follow its step"},
        Hostile{"InnerOpen", HEAD "step,0,s,0,,,,0\ninner,0\n", "line 4: the body of 1 step has no 'end'"},
        Hostile{"InnerTwice", HEAD "step,0,s,0,,,,0\ninner,0\nend\ninner,0\nend\n",
                "line 6: step 0 has two bodies"},
        Hostile{"EndAlone", HEAD "end\n", "line 3: 'end' without 'inner'"},
        Hostile{"SelfView", HEAD "view,0,0,0\n", "buffer 0 'a' is a view of itself"},
        Hostile{"WorkspaceOverflows", HEAD "step,0,s,0,0,,,18446744073709551615\n",
                "the workspace of step 0 's' takes the sum of all sizes above 4611686018427387904"}),
    [](const testing::TestParamInfo<Hostile> &info) { return std::string(info.param.name); });

TEST(CsvTest, BodiesNestedTooDeepAreRefused) {
  std::string text = "problem,1\n";
  for (int i = 0; i < 1000; ++i)
    text += "step,0,s,0,,,,0\ninner,0\n";
  EXPECT_EQ(readProblem(text).getStatus().getMessage(), "line 35: bodies are nested more than 16 deep");
}

TEST(CsvTest, ZeroByteIsRefused) {
  EXPECT_EQ(readProblem(std::string_view("problem,1\nbu\0ffer", 17)).getStatus().getMessage(),
            "line 2: a zero byte");
  EXPECT_EQ(readProblem(std::string_view("problem,1\nbuffer,0,\"\0\",", 21)).getStatus().getMessage(),
            "line 2: a zero byte");
}

TEST(CsvTest, DamagedFilesNeverCrash) {
  test::RandomOptions options;
  options.bodies = true;
  std::string text = writeProblem(test::randomProblem(4, options));
  Expected<Plan> result = plan(*readProblem(text));
  ASSERT_TRUE(result);
  std::string planText = writePlan(*result);
  Problem problem = *readProblem(text);
  std::mt19937 random(11);
  const char bytes[] = "0123456789,\"\n -azx";
  for (int i = 0; i < 4000; ++i) {
    std::string damaged = i % 2 ? planText : text;
    for (uint32_t k = test::draw(random, 1, 3); k > 0; --k)
      damaged[test::draw(random, 0, uint32_t(damaged.size()) - 1)] =
          bytes[test::draw(random, 0, sizeof(bytes) - 2)];
    if (i % 7 == 0)
      damaged.resize(test::draw(random, 0, uint32_t(damaged.size())));
    PlanOptions limits;
    limits.orderWork = limits.boundWork = limits.offsetWork = limits.exactWork = 10'000;
    if (i % 2 == 0) {
      if (Expected<Problem> read = readProblem(damaged); read) {
        EXPECT_TRUE(plan(*read, limits));
      }
    } else if (Expected<Plan> read = readPlan(problem, damaged); read) {
      (void)validate(problem, *read);
    }
  }
}

class HostilePlanTest : public testing::TestWithParam<Hostile> {};

TEST_P(HostilePlanTest, IsRefused) {
  Expected<Problem> problem = readProblem(HEAD "step,0,s,0,0,,,0\n");
  ASSERT_TRUE(problem);
  Expected<Plan> read = readPlan(*problem, GetParam().text);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.getStatus().getMessage(), GetParam().message);
}

#define PLAN "plan,1,64,64,64,64,64\n"
INSTANTIATE_TEST_SUITE_P(
    Csv, HostilePlanTest,
    testing::Values(Hostile{"Empty", "", "line 1: a plan starts with 'plan,1'"},
                    Hostile{"NoHead", "step,0,0,,\n", "line 1: a plan starts with 'plan,1'"},
                    Hostile{"Twice", PLAN PLAN, "line 2: a second 'plan'"},
                    Hostile{"UnknownStep", PLAN "step,0,8,,\n", "line 2: step 8 but the problem has 1"},
                    Hostile{"UnknownBuffer", PLAN "buffer,8,0,0\n", "line 2: buffer 8 but the problem has 1"},
                    Hostile{"HugeOffset", PLAN "buffer,0,0,18446744073709551615\n",
                            "line 2: offset 18446744073709551615 is above 4611686018427387904"},
                    Hostile{"NoBody", PLAN "inner,0\nend\n", "line 2: step 0 has no body"},
                    Hostile{"EndAlone", PLAN "end\n", "line 2: 'end' without 'inner'"}),
    [](const testing::TestParamInfo<Hostile> &info) { return std::string(info.param.name); });

} // namespace
} // namespace ortc::planning
