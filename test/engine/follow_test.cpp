// What a run makes of its evaluations: the best checkpoint, an early end, a falling rate, and all that resumed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <set>

#include "engine/checkpoints/kept_checkpoints.h"
#include "test/engine/loop_fixture.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

namespace {

class FollowTest : public LoopTest {
protected:
  FollowTest() { evalPath = writeData("eval.npz", 10, -0.25f, 0); }

  /// A run with evaluations after every third step.
  TrainOptions makeFollowed(int64_t steps, const std::string &name) {
    TrainOptions options = makeTrain(steps);
    options.evalData = evalPath;
    options.evalEvery = 3;
    options.metrics = folder / (name + ".jsonl");
    options.save = folder / (name + ".safetensors");
    return options;
  }
  static Plateau makePlateau(const std::string &spec) {
    Plateau plateau;
    expectOk(Plateau::parse(spec, plateau));
    return plateau;
  }
  static std::vector<int> stepsOf(const std::vector<Json> &events) {
    std::vector<int> steps;
    for (const Json &event : events)
      steps.push_back(event["step"]);
    return steps;
  }

  std::string evalPath;
};

} // namespace

/// 10 steps end between evaluations: the one that is shown there counts for nothing.
TEST_F(FollowTest, ResumedRunGivesTheBitsOfAnUninterruptedOne) {
  TrainOptions whole = makeFollowed(24, "whole"), first = makeFollowed(10, "half"),
               second = makeFollowed(14, "rest");
  whole.follow.goal = first.follow.goal = Goal{"auc", true};
  whole.follow.plateau = first.follow.plateau = makePlateau("plateau:factor=0.5,patience=1,cooldown=1");
  whole.lr = first.lr = 0.3;
  whole.saveBest = folder / "best-whole.safetensors";
  first.saveBest = second.saveBest = folder / "best-parts.safetensors";
  second.load = first.save;
  second.metrics = first.metrics;
  expectOk(train(whole, interrupted));
  expectOk(train(first, interrupted));
  expectOk(train(second, interrupted)); // goal and schedule are the checkpoint's
  EXPECT_EQ(readFile(second.save), readFile(whole.save));
  EXPECT_EQ(readFile(second.saveBest), readFile(whole.saveBest));
  EXPECT_EQ(readSteps(second.metrics), readSteps(whole.metrics));
  EXPECT_EQ(readEvents(second.metrics, "plateau"), readEvents(whole.metrics, "plateau"));
  EXPECT_GE(readEvents(whole.metrics, "plateau").size(), 2u);
  EXPECT_EQ(stepsOf(readEvents(second.metrics, "eval")), (std::vector<int>{3, 6, 9, 10, 12, 15, 18, 21, 24}));
}

/// At a rate of 0 the first evaluation is the best one for good.
TEST_F(FollowTest, PatienceEndsATraining) {
  TrainOptions options = makeFollowed(100, "patient"), rest = makeFollowed(100, "patient");
  options.lr = 0;
  options.follow.patience = 2;
  options.saveBest = folder / "best.safetensors";
  options.quiet = false;
  testing::internal::CaptureStdout();
  expectOk(train(options, interrupted));
  std::string text = testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("step 9: the training ends, as 2 evaluations had no better loss than 0."),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("stopped early: 9 steps in "), std::string::npos) << text;
  EXPECT_EQ(readSteps(options.metrics).size(), 9u);
  std::vector<Json> events = readEvents(options.metrics, "early_stop");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["step"], 9);
  EXPECT_EQ(events[0]["best_step"], 3);
  EXPECT_EQ(stepsOf(readEvents(options.metrics, "best")), std::vector<int>{3});
  rest.load = options.save;
  rest.follow.patience = 2;
  expectOk(train(rest, interrupted)); // an uninterrupted run has ended there, too
  EXPECT_EQ(readSteps(rest.metrics).size(), 9u);
  rest.follow.patience = 4;
  expectOk(train(rest, interrupted));
  EXPECT_EQ(readSteps(rest.metrics).size(), 15u);
}

TEST_F(FollowTest, AnEvaluationIsShownBeforeWhatItDecides) {
  TrainOptions options = makeFollowed(100, "shown");
  options.evalEvery = 0;
  options.lr = 0;
  options.follow.patience = 1;
  options.quiet = false;
  testing::internal::CaptureStdout();
  expectOk(train(options, interrupted));
  std::string text = testing::internal::GetCapturedStdout();
  size_t shown = text.find("epoch 1: eval loss"), ended = text.find("the training ends, as");
  ASSERT_NE(shown, std::string::npos) << text;
  ASSERT_NE(ended, std::string::npos) << text;
  EXPECT_LT(shown, ended) << text;
  EXPECT_EQ(text.find("epoch 1: eval loss", shown + 1), std::string::npos) << text;
}

TEST_F(FollowTest, TheBestCheckpointHasTheBestEvaluation) {
  TrainOptions options = makeFollowed(30, "run");
  options.lr = 2; // too large: the loss goes up and down
  options.follow.goal = Goal{"loss", false};
  options.saveBest = folder / "best.safetensors";
  options.save.clear();
  options.quiet = false;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  expectOk(train(options, interrupted));
  testing::internal::GetCapturedStdout();
  const std::string notes = testing::internal::GetCapturedStderr();
  double best = HUGE_VAL;
  int step = 0;
  for (const Json &event : readEvents(options.metrics, "eval"))
    if (event["eval_loss"] < best) {
      best = event["eval_loss"];
      step = event["step"];
    }
  EXPECT_LT(step, 30);
  EXPECT_EQ(readEvents(options.metrics, "best").back()["step"], step);
  EXPECT_NE(notes.find("weights of the last step are gone with this run, those of step " +
                       std::to_string(step) + " are in " + options.saveBest + "; --save"),
            std::string::npos)
      << notes;
  ApplyOptions apply = makeApply("");
  apply.data = evalPath;
  apply.load = options.saveBest;
  apply.json = true;
  testing::internal::CaptureStdout();
  expectOk(evaluateData(apply));
  EXPECT_EQ(Json::parse(testing::internal::GetCapturedStdout())["loss"].get<float>(), float(best));
}

/// As after an interrupt in the evaluation of step 6.
TEST_F(FollowTest, AnEvaluationThatIsMissingIsMadeUpFor) {
  TrainOptions first = makeTrain(6), second = makeFollowed(3, "second");
  first.save = second.load = folder / "first.safetensors";
  second.follow.patience = 5;
  expectOk(train(first, interrupted));
  expectOk(train(second, interrupted));
  EXPECT_EQ(stepsOf(readEvents(second.metrics, "eval")), (std::vector<int>{6, 9}));
}

TEST_F(FollowTest, TheScheduleOfACheckpointNeedsEvaluations) {
  TrainOptions first = makeFollowed(6, "first"), second = makeTrain(3);
  first.follow.plateau = makePlateau("plateau:patience=0");
  second.load = first.save;
  expectOk(train(first, interrupted));
  Status status = train(second, interrupted);
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  EXPECT_EQ(status.getMessage(), second.load +
                                     ": its learning rate follows evaluations, and there are none; give "
                                     "--eval-data, or --lr for a constant rate");
  second.lr = 0.1;
  expectOk(train(second, interrupted));
}

TEST_F(FollowTest, TheLastCheckpointsStay) {
  TrainOptions options = makeTrain(9);
  options.save = folder / "run.safetensors";
  options.saveEvery = 2;
  options.keep = 3;
  expectOk(train(options, interrupted));
  std::set<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder / ""))
    if (std::string name = entry.path().filename(); name.starts_with("run"))
      names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"run.safetensors", "run.step-6.safetensors",
                                          "run.step-8.safetensors", "run.step-9.safetensors"}));
  EXPECT_EQ(readFile(folder / "run.step-9.safetensors"), readFile(options.save));
  TrainOptions rest = makeTrain(3), whole = makeTrain(9);
  rest.load = folder / "run.step-6.safetensors";
  rest.save = folder / "rest.safetensors";
  expectOk(train(rest, interrupted));
  EXPECT_EQ(readFile(rest.save), readFile(options.save));
}

/// A file with the name of a kept checkpoint would be replaced and removed.
TEST_F(FollowTest, OtherFilesHaveNoNamesOfKeptCheckpoints) {
  TrainOptions options = makeTrain(2);
  options.save = folder / "run.safetensors";
  options.saveEvery = options.keep = 1;
  options.metrics = folder / "run.step-1.safetensors";
  Status status = train(options, interrupted);
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  EXPECT_EQ(status.getMessage(), "--metrics " + options.metrics +
                                     ": --keep gives such names to checkpoints, and removes them; rename the "
                                     "file, or give --save another name");
  options.metrics = folder / "run.step-x.safetensors";
  expectOk(train(options, interrupted));
}

TEST_F(FollowTest, SaysThatNoEvaluationWasDue) {
  TrainOptions options = makeFollowed(2, "short");
  options.saveBest = folder / "best.safetensors";
  options.quiet = false;
  testing::internal::CaptureStderr();
  expectOk(train(options, interrupted));
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("--save-best has saved nothing: no evaluation that was due gave a finite loss"),
            std::string::npos)
      << text;
  EXPECT_FALSE(std::filesystem::exists(options.saveBest));
  EXPECT_EQ(readEvents(options.metrics, "eval").size(), 1u); // at the end, for the eye
}

TEST_F(FollowTest, TheBestFileIsNoOtherFile) {
  TrainOptions options = makeFollowed(3, "run");
  options.saveBest = options.save;
  EXPECT_EQ(train(options, interrupted).getMessage(), "--save-best " + options.save +
                                                          " would overwrite --save " + options.save +
                                                          "; name another file");
  options.saveBest = "/no/such/folder/a.safetensors";
  EXPECT_EQ(train(options, interrupted).getMessage(),
            "/no/such/folder/a.safetensors: the folder /no/such/folder is not there or cannot be written");
}
