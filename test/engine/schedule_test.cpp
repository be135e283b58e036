// Learning rates over time, and the position that travels in checkpoints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/session/position.h"
#include "support/Text.h"

using namespace ortc;
using namespace ortc::engine;

static Schedule make(const std::string &text) {
  Schedule schedule;
  Status status = Schedule::parse(text, schedule);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  return schedule;
}

static std::string refuse(const std::string &text) {
  Schedule schedule;
  Status status = Schedule::parse(text, schedule);
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  return status.getMessage();
}

TEST(ScheduleTest, ConstantStays) {
  Schedule schedule = make("constant");
  EXPECT_EQ(schedule.getRate(0.5, 0), 0.5);
  EXPECT_EQ(schedule.getRate(0.5, 1000000), 0.5);
}

TEST(ScheduleTest, WarmUpRisesToTheWholeRate) {
  Schedule schedule = make("constant:warmup=4");
  EXPECT_EQ(schedule.getRate(1, 0), 0.25);
  EXPECT_EQ(schedule.getRate(1, 3), 1);
  EXPECT_EQ(schedule.getRate(1, 4), 1);
}

TEST(ScheduleTest, LinearEndsAtTheMinimumAndStaysThere) {
  Schedule schedule = make("linear:min=0.2,total=5");
  EXPECT_DOUBLE_EQ(schedule.getRate(1, 0), 1);
  EXPECT_DOUBLE_EQ(schedule.getRate(1, 1), 0.84);
  EXPECT_DOUBLE_EQ(schedule.getRate(1, 4), 0.36);
  EXPECT_DOUBLE_EQ(schedule.getRate(1, 5), 0.2);
  EXPECT_DOUBLE_EQ(schedule.getRate(1, 100), 0.2);
}

TEST(ScheduleTest, CosineIsHalfWayInTheMiddle) {
  Schedule schedule = make("cosine:warmup=2,total=11");
  EXPECT_DOUBLE_EQ(schedule.getRate(2, 0), 1);
  EXPECT_DOUBLE_EQ(schedule.getRate(2, 1), 2);
  EXPECT_NEAR(schedule.getRate(2, 6), 1, 1e-15);
  EXPECT_DOUBLE_EQ(schedule.getRate(2, 11), 0);
}

TEST(ScheduleTest, OneStepHasTheWholeRate) { EXPECT_EQ(make("cosine:total=1").getRate(1, 0), 1); }

TEST(ScheduleTest, RoundTripsAsText) {
  Schedule schedule = make("cosine:warmup=3,min=1e-05,total=77");
  EXPECT_EQ(schedule.format(), "cosine:warmup=3,min=1e-05,total=77");
  EXPECT_EQ(make("linear").format(), "linear:warmup=0,min=0"); // the total of a run is not kept
  EXPECT_EQ(make(schedule.format()).format(), schedule.format());
}

TEST(ScheduleTest, EveryKindRoundTripsAsText) {
  for (const char *text :
       {"constant:warmup=0", "step:warmup=0,step_size=3,gamma=0.1",
        "multistep:warmup=2,milestones=3/9,gamma=0.5", "exponential:warmup=0,gamma=0.9",
        "polynomial:warmup=0,power=2,min=0,total=9", "cosine_restarts:warmup=0,period=3,mult=2,min=0",
        "one_cycle:pct_start=0.3,div_factor=25,final_div_factor=10000,anneal=linear,total=5",
        "inverse_sqrt:warmup=3", "inverse_sqrt:warmup=3,timescale=7",
        "wsd:warmup=0,decay=2,anneal=sqrt,min=0.5,total=6"})
    EXPECT_EQ(make(text).format(), text);
  EXPECT_EQ(make("constant:warmup=0,min=0").format(), "constant:warmup=0"); // of older checkpoints
}

/// Float64 against float64: sums of other order, and series instead of a library's functions.
TEST(ScheduleTest, AgreesWithPyTorchAndTransformers) {
  std::ifstream file(ORTC_TEST_DATA "/engine/data/schedules.json");
  auto cases = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(cases.is_array());
  std::set<ScheduleKind> tested;
  for (const auto &each : cases) {
    std::string text = each["schedule"];
    SCOPED_TRACE(text);
    Schedule schedule = make(text);
    EXPECT_EQ(schedule.check(text).getMessage(), "");
    double base = each["base"];
    for (size_t step = 0; step < each["rates"].size(); ++step)
      EXPECT_NEAR(schedule.getRate(base, int64_t(step)), double(each["rates"][step]), 1e-14 * base) << step;
    tested.insert(schedule.kind);
  }
  EXPECT_EQ(tested.size(), size_t(ScheduleKind::Wsd) + 1);
}

/// In steps that no float32 has.
TEST(ScheduleTest, CountsFar) {
  const int64_t far = int64_t(1) << 40;
  EXPECT_EQ(make("step:step_size=49,gamma=0.5").getRate(1, 49 * 20 - 1), std::ldexp(1, -19));
  EXPECT_EQ(make("step:step_size=49,gamma=0.5").getRate(1, 49 * 20), std::ldexp(1, -20));
  EXPECT_EQ(make("cosine_restarts:period=3").getRate(1, 3 * far), 1);
  EXPECT_LT(make("cosine_restarts:period=3").getRate(1, 3 * far - 1), 0.3);
  EXPECT_LT(make("exponential:gamma=0.5").getRate(1, far), 1e-300);
}

TEST(ScheduleTest, AnArtifactNeedsAnEnd) {
  EXPECT_EQ(
      make("wsd:decay=3").checkEnd("wsd:decay=3").getMessage(),
      "learning-rate schedule 'wsd:decay=3': it needs total=N, the steps of the whole training: an artifact "
      "does not know where a run ends");
  EXPECT_TRUE(make("inverse_sqrt").checkEnd("inverse_sqrt").isOk());
}

TEST(ScheduleTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(
      refuse("cosin"),
      "learning-rate schedule 'cosin': there are constant, linear, step, multistep, exponential, polynomial, "
      "cosine, cosine_restarts, one_cycle, inverse_sqrt and wsd; did you mean 'cosine'?");
  EXPECT_EQ(
      refuse("cosine:half=3"),
      "learning-rate schedule 'cosine:half=3': it has no option 'half'; it takes warmup, min and total");
  EXPECT_EQ(
      refuse("cosine:gamma=0.5"),
      "learning-rate schedule 'cosine:gamma=0.5': it has no option 'gamma'; it takes warmup, min and total");
  EXPECT_EQ(refuse("one_cycle:warmup=3"), "learning-rate schedule 'one_cycle:warmup=3': it has no option "
                                          "'warmup'; it takes pct_start, div_factor, "
                                          "final_div_factor, anneal and total");
  EXPECT_EQ(refuse("step"),
            "learning-rate schedule 'step': it needs step_size; it takes warmup, step_size and gamma");
  EXPECT_EQ(refuse("step:step_size=0"),
            "learning-rate schedule 'step:step_size=0': step_size must be a number of steps of at least 1");
  EXPECT_EQ(refuse("exponential:gamma=1.5"),
            "learning-rate schedule 'exponential:gamma=1.5': gamma must be a number from 1e-12 to 1");
  EXPECT_EQ(
      refuse("multistep:milestones=3/3"),
      "learning-rate schedule 'multistep:milestones=3/3': milestones must be rising numbers of steps with "
      "slashes between, such as 3000/6000, at most 1000");
  EXPECT_EQ(refuse("wsd:decay=3,anneal=cos"), "learning-rate schedule 'wsd:decay=3,anneal=cos': anneal is "
                                              "'cos' but must be one of linear, cosine and "
                                              "sqrt");
  EXPECT_EQ(refuse("linear:min=0.1,warmup=1,min=0.2"),
            "learning-rate schedule 'linear:min=0.1,warmup=1,min=0.2': min is given twice");
  EXPECT_EQ(refuse("cosine:warmup=-1"),
            "learning-rate schedule 'cosine:warmup=-1': warmup must be a number of steps");
  EXPECT_EQ(refuse("linear:min=nan"),
            "learning-rate schedule 'linear:min=nan': min must be a number of at least 0");
  EXPECT_EQ(refuse("linear:warmup"),
            "learning-rate schedule 'linear:warmup': warmup must be a number of steps");
}

TEST(ScheduleTest, RefusesKeysWithoutAnEffect) {
  auto check = [](const std::string &text) {
    Status status = make(text).check(text);
    EXPECT_TRUE(status.isOk() || status.getCode() == ExitCode::Refused);
    return status.getMessage();
  };
  const std::string where = "learning-rate schedule ";
  EXPECT_EQ(refuse("cosine:total=0"),
            where + "'cosine:total=0': total is 0, but it must be at least 1; without it the schedule ends "
                    "where the run ends");
  EXPECT_EQ(check("constant:total=5"),
            where + "'constant:total=5': total 5 has no effect on a constant rate; linear, "
                    "polynomial, cosine, one_cycle and wsd take it");
  EXPECT_EQ(check("constant:min=0.5"),
            where +
                "'constant:min=0.5': min 0.5 has no effect on a constant rate; linear, polynomial, cosine, "
                "cosine_restarts and wsd take it");
  EXPECT_EQ(check("step:step_size=3,total=5"),
            where + "'step:step_size=3,total=5': total 5 has no effect on step; linear, polynomial, cosine, "
                    "one_cycle and wsd take it");
  EXPECT_EQ(check("wsd:warmup=4,decay=7,total=10"),
            where +
                "'wsd:warmup=4,decay=7,total=10': decay 7 must be at most the 6 steps behind the warm-up");
  EXPECT_EQ(check("linear:warmup=5,total=5"),
            where + "'linear:warmup=5,total=5': total 5 must be more than the 5 steps of warmup, after "
                    "which the rate falls");
  for (const char *text : {"constant", "constant:warmup=3", "linear", "cosine:warmup=5,total=6,min=0.5",
                           "linear:total=1", "cosine:warmup=9"})
    EXPECT_EQ(check(text), "");
}

TEST(ScheduleTest, RefusesAMinimumAboveTheRate) {
  EXPECT_EQ(make("cosine:min=0.5").checkRate(0.1).getMessage(),
            "learning-rate schedule 'cosine:warmup=0,min=0.5': min 0.5 must be at most the learning rate of "
            "0.1, which falls towards it; give a smaller min or a larger --lr");
  EXPECT_TRUE(make("cosine:min=0.5").checkRate(0.5).isOk());
  EXPECT_TRUE(make("constant:warmup=2").checkRate(0).isOk());
}

TEST(PositionTest, RoundTripsExactly) {
  Position position;
  position.seed = ~uint64_t(0);
  position.shuffle = false;
  position.step = 123;
  position.epoch = 4;
  position.slice = 5;
  position.items = 1437;
  position.lr = double(0.001f); // not the double nearest to 0.001
  position.schedule = make("cosine:total=500");
  std::optional<Position> read;
  ASSERT_TRUE(parsePosition(formatPosition(position), "a", read).isOk());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->seed, position.seed);
  EXPECT_EQ(read->shuffle, false);
  EXPECT_EQ(read->step, 123);
  EXPECT_EQ(read->epoch, 4);
  EXPECT_EQ(read->slice, 5);
  EXPECT_EQ(read->items, 1437);
  EXPECT_EQ(read->lr, position.lr);
  EXPECT_EQ(read->schedule.format(), position.schedule.format());
}

TEST(PositionTest, IsAbsentWithoutItsKeys) {
  std::optional<Position> read;
  ASSERT_TRUE(parsePosition({{"format", "pt"}}, "a", read).isOk());
  EXPECT_FALSE(read);
}

TEST(PositionTest, RefusesHalfAPosition) {
  auto metadata = formatPosition(Position());
  std::optional<Position> read;
  metadata["run.slice"] = "-3";
  EXPECT_EQ(parsePosition(metadata, "a", read).getMessage(),
            "a: its metadata has 'run.slice' = '-3', which is no position");
  metadata.erase("run.slice");
  EXPECT_EQ(parsePosition(metadata, "a", read).getMessage(),
            "a: its metadata has no 'run.slice': it is not a checkpoint of ortc run");
}

/// Sums with what a run adds must not overflow.
TEST(PositionTest, RefusesCountsThatNoTrainingReaches) {
  Position good;
  good.items = kMostSteps;
  good.step = good.epoch = good.slice = kMostSteps;
  std::optional<Position> read;
  ASSERT_TRUE(parsePosition(formatPosition(good), "a", read).isOk());
  EXPECT_EQ(read->step, kMostSteps);
  for (const char *key : {"run.step", "run.epoch", "run.slice", "run.items"})
    for (const char *value : {"9007199254740993", "9223372036854775807", "9223372036854775808", "-1"}) {
      auto metadata = formatPosition(good);
      metadata[key] = value;
      EXPECT_EQ(parsePosition(metadata, "a", read).getMessage(),
                std::string("a: its metadata has '") + key + "' = '" + value + "', which is no position");
    }
}

TEST(TextTest, NumbersAreShortAndReadBack) {
  EXPECT_EQ(formatNumber(double(0.1f)), "0.1");
  EXPECT_EQ(formatNumber(0.1), "0.1");
  EXPECT_EQ(formatNumber(double(2.3102565f)), "2.3102565");
  EXPECT_EQ(formatNumber(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(formatExact(double(0.1f)), "0.10000000149011612");
  EXPECT_EQ(formatJsonNumber(NAN), "null");
  EXPECT_EQ(formatJsonString("a\"b\n"), "\"a\\\"b\\n\"");
}

TEST(TextTest, SizesHaveUnits) {
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(1536), "1.50 KiB");
  EXPECT_EQ(formatBytes(uint64_t(300) << 20), "300.0 MiB");
}
