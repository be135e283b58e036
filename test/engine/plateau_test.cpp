// The plateau schedule against PyTorch's rates (plateau/make_references.py), goals, and kept checkpoints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

#include "engine/checkpoints/kept_checkpoints.h"
#include "engine/training/follower.h"
#include "test/engine/data_files.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

static std::vector<double> readNumbers(std::istream &file) {
  std::string line, word;
  std::getline(file, line);
  std::istringstream words(line);
  words >> word;
  std::vector<double> numbers;
  while (words >> word)
    numbers.push_back(std::strtod(word.c_str(), nullptr));
  return numbers;
}

/// Bit for bit, also where the state goes through text after every evaluation.
TEST(PlateauTest, RatesAreThoseOfPyTorch) {
  std::ifstream file(ORTC_TEST_DATA "/engine/plateau/references.txt");
  int cases = 0, falls = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key, mode, spec;
    double rate = 0;
    words >> key >> mode >> rate >> spec;
    if (key != "case")
      continue;
    std::vector<double> values = readNumbers(file), rates = readNumbers(file);
    ASSERT_EQ(values.size(), 60u);
    ASSERT_EQ(rates.size(), 60u);
    Plateau plateau;
    ASSERT_TRUE(Plateau::parse(spec, plateau).isOk()) << spec;
    for (size_t i = 0; i < values.size(); ++i) {
      double before = rate;
      rate = plateau.follow(values[i], mode == "max", rate);
      falls += rate != before;
      EXPECT_EQ(rate, rates[i]) << line << ", evaluation " << i;
      Plateau again;
      ASSERT_TRUE(Plateau::parse(plateau.format(), again).isOk());
      ASSERT_TRUE(again.parseState(plateau.formatState()).isOk()) << plateau.formatState();
      plateau = again;
    }
    ++cases;
  }
  EXPECT_EQ(cases, 10);
  EXPECT_GT(falls, 30);
}

TEST(PlateauTest, OnlyNumbersAreBetter) {
  for (bool isMaximum : {false, true}) {
    Plateau plateau;
    ASSERT_TRUE(Plateau::parse("plateau", plateau).isOk());
    for (double value : {1.0, HUGE_VAL, -HUGE_VAL, double(NAN)})
      EXPECT_EQ(plateau.follow(value, isMaximum, 0.5), 0.5);
    EXPECT_EQ(plateau.formatState(), "state:bad=3,best=1,cooling=0");
  }
}

TEST(PlateauTest, RefusesSpecs) {
  auto refuse = [](const std::string &text) {
    Plateau plateau;
    return Plateau::parse(text, plateau).getMessage();
  };
  EXPECT_EQ(
      refuse("plateau:factor=1.5"),
      "learning-rate schedule 'plateau:factor=1.5': factor is '1.5', but it must be a number from 0 to 1");
  EXPECT_EQ(
      refuse("plateau:factor=1"),
      "learning-rate schedule 'plateau:factor=1': factor is 1, but it must be below 1 for the rate to fall");
  EXPECT_EQ(
      refuse("plateau:patients=3"),
      "learning-rate schedule 'plateau:patients=3': it has no option 'patients'; it takes factor, patience, "
      "threshold, threshold_mode, cooldown, min and epsilon; did you mean 'patience'?");
  EXPECT_EQ(
      refuse("plateau:threshold_mode=ref"),
      "learning-rate schedule 'plateau:threshold_mode=ref': threshold_mode is 'ref'; there are rel and abs; "
      "did you mean 'rel'?");
}

TEST(FollowerTest, ReadsGoals) {
  Goal goal;
  ASSERT_TRUE(Goal::parse("f1:average=macro:max", goal).isOk());
  EXPECT_EQ(goal.metric, "f1:average=macro");
  EXPECT_TRUE(goal.isMaximum);
  for (const char *text : {"accuracy", ":max", "accuracy:top", "", "topk:k=3"})
    EXPECT_EQ(Goal::parse(text, goal).getMessage(),
              "'" + std::string(text) +
                  "' must be METRIC:max or METRIC:min, such as accuracy:max or loss:min");
}

TEST(FollowerTest, CountsEvaluationsThatAreNoBetter) {
  FollowOptions options;
  options.goal = Goal{"accuracy", true};
  options.patience = 2;
  Follower follower;
  follower.begin(options);
  double rate = 1;
  EXPECT_FALSE(follower.add(NAN, 1, rate));
  EXPECT_TRUE(follower.add(0.5, 2, rate));
  EXPECT_FALSE(follower.add(0.5, 3, rate)); // not better
  EXPECT_FALSE(follower.isExhausted());
  EXPECT_TRUE(follower.add(0.75, 4, rate));
  EXPECT_FALSE(follower.add(INFINITY, 5, rate));
  EXPECT_FALSE(follower.add(0.7, 6, rate));
  EXPECT_TRUE(follower.isExhausted());
  EXPECT_EQ(follower.getBestStep(), 4);
  std::map<std::string, std::string> metadata;
  follower.describe(metadata);
  Follower again;
  std::vector<std::string> notes;
  again.begin(options);
  ASSERT_TRUE(again.resume(metadata, "a", notes).isOk());
  EXPECT_TRUE(again.isExhausted());
  EXPECT_EQ(again.getBest(), 0.75);
  EXPECT_EQ(again.getEvaluatedStep(), 6);
  EXPECT_TRUE(notes.empty());
  options.goal = Goal{"loss", false};
  again.begin(options);
  ASSERT_TRUE(again.resume(metadata, "a", notes).isOk());
  EXPECT_EQ(notes.at(0),
            "--best loss:min replaces the checkpoint's accuracy:max; what was the best so far counts no "
            "more");
}

TEST(FollowerTest, RefusesStateThatNoTrainingHasSaved) {
  FollowOptions options;
  ASSERT_TRUE(Plateau::parse("plateau", options.plateau.emplace()).isOk());
  Follower follower;
  follower.begin(options);
  std::map<std::string, std::string> good;
  follower.describe(good);
  ASSERT_EQ(good.size(), 4u);
  for (const auto &[key, value] : good)
    for (const std::string &bad : {"", "state:", "state:bad=-1", "plateau:factor=2", "loss"}) {
      auto metadata = good;
      metadata[key] = bad;
      std::vector<std::string> notes;
      Follower again;
      EXPECT_EQ(again.resume(metadata, "a", notes).getMessage(),
                "a: its metadata has '" + key + "' = '" + bad + "', which no training has saved");
    }
}

/// Only those of this training, and not the one that it goes on from.
TEST(KeptCheckpointsTest, TheLastOnesStay) {
  TemporaryFolder folder;
  std::string path = folder / "a.safetensors";
  auto list = [&] {
    std::string names;
    std::set<std::string> sorted;
    for (const auto &entry : std::filesystem::directory_iterator(folder / ""))
      sorted.insert(entry.path().filename());
    for (const std::string &name : sorted)
      names += name + " ";
    return names;
  };
  folder.write("a.step-99.safetensors", "later");
  folder.write("a.step-07.safetensors", "not ours");
  folder.write("a.step-1.safetensors", "loaded");
  for (int64_t step : {2, 10, 12, 20}) {
    folder.write("b", std::to_string(step)); // as checkpoints are written: another file, renamed
    std::filesystem::rename(folder / "b", path);
    ASSERT_TRUE(keepCheckpoint(path, step, 2, folder / "a.step-1.safetensors").isOk());
  }
  EXPECT_EQ(list(), "a.safetensors a.step-07.safetensors a.step-1.safetensors a.step-12.safetensors "
                    "a.step-20.safetensors a.step-99.safetensors ");
  EXPECT_EQ(readFile(folder / "a.step-12.safetensors"), "12");
  EXPECT_EQ(readFile(path), "20");
}
