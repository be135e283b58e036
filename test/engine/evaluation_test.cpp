// Evaluations with metrics, on the runtime's small test artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/engine/loop_fixture.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

namespace {

class EvaluationTest : public LoopTest {
protected:
  Json evaluate(const std::string &binding, const std::vector<std::string> &metrics) {
    ApplyOptions options = makeApply("");
    options.binding = binding;
    options.metrics = metrics;
    options.json = true;
    testing::internal::CaptureStdout();
    expectOk(evaluateData(options));
    return Json::parse(testing::internal::GetCapturedStdout());
  }
};

} // namespace

/// 22 samples in batches of 4, of which the last one repeats two samples, and one by one.
TEST_F(EvaluationTest, MetricsCountEverySampleOnce) {
  const std::vector<std::string> metrics = {"accuracy", "f1", "f1:average=micro", "iou", "auc", "perplexity"};
  Json batches = evaluate("batch", metrics), singles = evaluate("single", metrics);
  EXPECT_EQ(batches["samples"], 22);
  EXPECT_EQ(batches["f1:average=micro"], batches["accuracy"]);
  for (const std::string &metric : metrics) {
    ASSERT_TRUE(batches.contains(metric)) << metric;
    // Products of one row and of four may add in another order, in float32.
    EXPECT_NEAR(batches[metric].get<double>(), singles[metric].get<double>(),
                metric == "perplexity" ? 1e-6 * singles[metric].get<double>() : 0)
        << metric;
  }
  EXPECT_FALSE(evaluate("batch", {}).contains("f1"));
}

/// Named as the loss has them, and so counted alike.
TEST_F(EvaluationTest, MetricsCompareNamedTensors) {
  Json found = evaluate("batch", {"f1", "f1:output=y,label=label", "auc", "auc:output=y,label=label"});
  EXPECT_EQ(found["f1:output=y,label=label"], found["f1"]);
  EXPECT_EQ(found["auc:output=y,label=label"], found["auc"]);
}

TEST_F(EvaluationTest, MetricsStandInTheEventsOfARun) {
  TrainOptions options = makeTrain(5);
  options.evalData = dataPath;
  options.evalMetrics = {"f1", "auc"};
  options.metrics = folder / "metrics.jsonl";
  options.quiet = false;
  testing::internal::CaptureStdout();
  expectOk(train(options, interrupted));
  std::string text = testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("of 22), f1 0."), std::string::npos) << text;
  std::vector<Json> events = readEvents(options.metrics, "eval");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0]["f1"].is_number() && events[0]["auc"].is_number()) << events[0];
}

/// Before anything is trained or written.
TEST_F(EvaluationTest, RefusesMetricsThatDoNotFit) {
  TrainOptions options = makeTrain(5);
  options.evalData = dataPath;
  options.evalMetrics = {"rmse"};
  options.metrics = folder / "metrics.jsonl";
  Status status = train(options, interrupted);
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  EXPECT_EQ(status.getMessage(),
            "metric 'rmse' needs labels that are values, and those of the loss 'nll' are "
            "indices of classes; it fits accuracy, topk, f1, auc, iou, perplexity and "
            "token_accuracy");
  EXPECT_FALSE(std::filesystem::exists(options.metrics));
  ApplyOptions apply = makeApply("");
  apply.metrics = {"topk"};
  EXPECT_EQ(evaluateData(apply).getMessage(),
            "metric 'topk': k is 5, and the output has 2 classes; give a smaller k");
}
