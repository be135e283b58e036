// ortc check: right gradients pass, a wrong rule is caught and named, kinks and index ranges are no errors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "test/e2e/Tool.h"

using namespace ortc::test;

namespace {

/// Checks a zoo entry with more flags.
Outcome check(const std::string &name, std::vector<std::string> more) {
  ZooEntry entry(name);
  std::vector<std::string> arguments{"check", entry.model()};
  arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return runTool(arguments);
}

bool has(const Outcome &outcome, const std::string &text) {
  return outcome.text.find(text) != std::string::npos;
}

TEST(CheckTest, PassesModelsThatAreRight) {
  for (const char *name :
       {"mlp-digits", "lenet", "dlrm-tiny"}) { // dense; convolutions, pools, kinks; indices
    Outcome outcome = check(name, {});
    EXPECT_EQ(outcome.status, 0) << name << "\n" << outcome.text << outcome.errors;
    EXPECT_TRUE(has(outcome, " right: ")) << outcome.text;
  }
}

TEST(CheckTest, PassesLossesOfValues) {
  for (const char *loss :
       {"kl_div", "kl_div:log_target=1", "smooth_l1:beta=0.5", "bce_with_logits", "huber:delta=0.5",
        "poisson_nll:full=1", "focal", "focal:gamma=0.5,alpha=-1", "dice", "hinge", "hinge_embedding",
        "soft_margin", "multilabel_soft_margin", "info_nce", "mse:reduction=sum", "l1:sample_weight=1"}) {
    Outcome outcome =
        runTool({"check", ZooEntry("mlp-digits").model(), "--shape", "batch=4", "--loss", loss});
    EXPECT_EQ(outcome.status, 0) << loss << "\n" << outcome.text << outcome.errors;
    EXPECT_TRUE(has(outcome, " right: ")) << outcome.text;
  }
}

TEST(CheckTest, TakesDataAndRepeatsItself) {
  Outcome once = check("mlp-digits", {"--data", ZooEntry("mlp-digits").data(), "--seed", "3"});
  Outcome again = check("mlp-digits", {"--data", ZooEntry("mlp-digits").data(), "--seed", "3"});
  Outcome other = check("mlp-digits", {"--data", ZooEntry("mlp-digits").data(), "--seed", "4"});
  EXPECT_EQ(once.status, 0) << once.text << once.errors;
  EXPECT_EQ(once.text, again.text);
  EXPECT_NE(once.text, other.text);
}

TEST(CheckTest, CatchesAWrongRuleAndNamesTheOperation) {
  const std::tuple<const char *, const char *, const char *> cases[] = {
      {"mlp-digits", "nn.dot:1", "nn.dot, part of the node 'node_linear' (Gemm)"},
      {"mlp-digits", "arith.select:1", "arith.select, part of the node 'node_relu' (Relu)"},
      {"mlp-digits", "nn.log_softmax:0", "nn.log_softmax"},
      {"lenet", "nn.conv:1", "nn.conv"},
      {"lenet", "nn.avg_pool:0", "nn.avg_pool"},
      {"dlrm-tiny", "nn.gather:0", "nn.gather"}};
  for (auto [name, mutation, suspect] : cases) {
    Outcome outcome = check(name, {"--mutate-gradient", mutation});
    EXPECT_EQ(outcome.status, 1) << mutation << "\n" << outcome.text << outcome.errors;
    EXPECT_TRUE(has(outcome, "WRONG")) << outcome.text;
    EXPECT_TRUE(has(outcome, std::string("the first operation to suspect is ") + suspect)) << outcome.text;
    EXPECT_TRUE(
        has(outcome, std::string("operand ") + mutation[std::string(mutation).size() - 1] + " is off by"))
        << outcome.text;
  }
}

TEST(CheckTest, TakesAnArtifactAndACheckpoint) {
  TemporaryFolder folder;
  ZooEntry entry("mlp-digits");
  std::string artifact = folder / "a", saved = folder / "a.safetensors";
  mustRun({"train", entry.model(), "--shape", "batch=16", "--freeze", "0[.]bias", "--target", "native",
           "--quiet", "-o", artifact});
  mustRun({"run", artifact, "--data", entry.data(), "--steps", "3", "--save", saved, "--quiet"});
  Outcome plain = runTool({"check", artifact}), loaded = runTool({"check", artifact, "--load", saved});
  EXPECT_EQ(plain.status, 0) << plain.text << plain.errors;
  EXPECT_EQ(loaded.status, 0) << loaded.text << loaded.errors;
  EXPECT_TRUE(has(plain, "3 tensors right")) << plain.text; // what is frozen stays frozen
  EXPECT_NE(plain.text, loaded.text);
  // What it was compiled with is not to be changed, and cannot be.
  for (const std::vector<std::string> &flags :
       std::vector<std::vector<std::string>>{{"--freeze", "0[.]weight"},
                                             {"--shape", "batch=9"},
                                             {"--loss", "cross_entropy"},
                                             {"--untie", "0.weight"}}) {
    std::vector<std::string> arguments{"check", artifact};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Outcome outcome = runTool(arguments);
    EXPECT_EQ(outcome.status, 2) << flags[0];
    EXPECT_TRUE(outcome.errors.starts_with("ortc: error: " + artifact + ": " + flags[0])) << outcome.errors;
  }
}

/// Rounding is the only difference (test zoo-* checks the models); asked for less than that, the check fails.
TEST(CheckTest, ComparesWithTheEvaluator) {
  Outcome good = check("lenet", {"--against", "evaluator"});
  EXPECT_EQ(good.status, 0) << good.text << good.errors;
  EXPECT_TRUE(has(good, " values agree with the evaluator: ")) << good.text;
  Outcome strict = check("lenet", {"--against", "evaluator", "--tolerance", "1e-20"});
  EXPECT_EQ(strict.status, 1);
  EXPECT_TRUE(has(strict, "WRONG")) << strict.text;
  EXPECT_EQ(check("lenet", {"--against", "nothing"}).status, 2);
  Outcome forward = runTool({"check", ZooEntry("lenet").model(), "--loss", "none", "--against", "evaluator"});
  EXPECT_EQ(forward.status, 0) << forward.text << forward.errors;
  EXPECT_TRUE(has(forward, "1 value agrees with the evaluator: 80 elements")) << forward.text;
}

TEST(CheckTest, RefusesWhatItCannotCheck) {
  ZooEntry entry("mlp-digits");
  EXPECT_EQ(check("mlp-digits", {"--load", "x.safetensors"}).status, 2);
  EXPECT_EQ(check("mlp-digits", {"--tolerance", "0"}).status, 2);
  EXPECT_EQ(runTool({"check", entry.model(), "--shape", "batch=4", "--loss", "none"}).status, 2);
  EXPECT_EQ(runTool({"check", entry.model()}).status, 2); // a dimension without a value
}

} // namespace
