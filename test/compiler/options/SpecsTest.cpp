// The specs that flags of `ortc train` carry: what they mean and what is refused.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "compiler/options/CompileOptions.h"
#include "test/host/data_files.h"

using namespace ortc;

TEST(GroupSpecTest, SplitsAtTheLastColon) {
  GroupSpec group;
  std::string error;
  ASSERT_TRUE(parseGroup("(?:.*bias|.*norm.*):weight_decay=0", group, error)) << error;
  EXPECT_TRUE(group.pattern.matches("layer.bias"));
  EXPECT_FALSE(group.pattern.matches("layer.weight"));
  EXPECT_EQ(group.lrScale, 1);
  EXPECT_EQ(group.weightDecay, 0);
  ASSERT_TRUE(parseGroup("a{1,2}:lr_scale=0.1", group, error));
  EXPECT_TRUE(group.pattern.matches("aa"));
  EXPECT_FALSE(group.weightDecay);
}

TEST(GroupSpecTest, RefusesWithReason) {
  GroupSpec group;
  std::string error;
  EXPECT_FALSE(parseGroup("(?:a|b)", group, error));
  EXPECT_EQ(
      error,
      "'(?:a|b)' is no parameter group; write REGEX:lr_scale=X,weight_decay=Y with either option or both");
  EXPECT_FALSE(parseGroup("(:lr_scale=1", group, error));
  EXPECT_EQ(error, "'(' is not a regular expression (ECMAScript); a plain dot is '\\.'");
  EXPECT_FALSE(parseGroup(".*:lr=1", group, error));
  EXPECT_EQ(error, "group '.*' has no option 'lr'; it takes lr_scale, weight_decay");
}

TEST(ShapeTest, BindsDimensionsAndInputsOfSeveralBindings) {
  CompileOptions options;
  std::string error;
  ASSERT_TRUE(addShapes("batch=32,seq=128", options, error));
  ASSERT_TRUE(addShapes("input.1=1x3x8", options, error));
  ASSERT_TRUE(addBinding("one", options, error));
  ASSERT_TRUE(addShapes("batch=1", options, error));
  ASSERT_EQ(options.bindings.size(), 2u);
  EXPECT_EQ(options.bindings[0].name, "default");
  ASSERT_EQ(options.bindings[0].shapes.size(), 3u);
  EXPECT_EQ(options.bindings[0].shapes[2].name, "input.1");
  EXPECT_EQ(options.bindings[0].shapes[2].dims, (std::vector<int64_t>{1, 3, 8}));
  EXPECT_EQ(options.bindings[1].name, "one");
}

TEST(ShapeTest, ABindingBeforeAllShapesNamesTheFirst) {
  CompileOptions options;
  std::string error;
  ASSERT_TRUE(addBinding("train", options, error));
  ASSERT_TRUE(addShapes("batch=32", options, error));
  ASSERT_TRUE(addBinding("predict", options, error));
  ASSERT_EQ(options.bindings.size(), 2u);
  EXPECT_EQ(options.bindings[0].name, "train");
}

TEST(ShapeTest, RefusesWithReason) {
  CompileOptions options;
  std::string error;
  EXPECT_FALSE(addShapes("batch", options, error));
  EXPECT_EQ(error, "'batch' binds nothing; write NAME=N for a dimension or INPUT=AxBxC for an input");
  EXPECT_FALSE(addShapes("batch=0", options, error));
  EXPECT_EQ(error, "'0' in 'batch=0' is no size; sizes are whole numbers from 1");
  EXPECT_FALSE(addShapes("x=2xx3", options, error));
  EXPECT_EQ(error, "'' in 'x=2xx3' is no size; sizes are whole numbers from 1");
  EXPECT_FALSE(addShapes("b=1,b=2", options, error));
  EXPECT_EQ(error, "'b' is bound twice in binding 'default'; --binding NAME starts another binding");
  EXPECT_FALSE(addBinding("a b", options, error));
  EXPECT_EQ(error, "'a b' is no binding name; letters, digits, '_', '-' and '.' make one");
  ASSERT_TRUE(addBinding("one", options, error));
  EXPECT_FALSE(addBinding("one", options, error));
  EXPECT_EQ(error, "binding 'one' is given twice");
}

TEST(TargetTest, TheFirstReplacesTheDefault) {
  CompileOptions options;
  std::string error;
  bool first = true;
  EXPECT_EQ(options.targets, (std::vector<std::string>{"host"}));
  ASSERT_TRUE(addTarget("x86-64-v3", options, first, error));
  ASSERT_TRUE(addTarget("x86-64-v4", options, first, error));
  EXPECT_EQ(options.targets, (std::vector<std::string>{"x86-64-v3", "x86-64-v4"}));
  EXPECT_FALSE(addTarget("x86-64-v4", options, first, error));
  EXPECT_EQ(error, "target 'x86-64-v4' is given twice");
}

TEST(OptionsTest, RefusesFlagsThatContradict) {
  CompileOptions options;
  std::string error;
  EXPECT_FALSE(checkOptions(options, error));
  EXPECT_EQ(error, "-o DIR is missing: the folder of the artifact");
  options.output = "out";
  EXPECT_TRUE(checkOptions(options, error)) << error;
  options.loss.source = LossSource::None;
  options.gradients = true;
  EXPECT_FALSE(checkOptions(options, error));
  EXPECT_EQ(error, "--gradients needs a loss, and --loss none compiles the forward part only");
  options.gradients = false;
  EXPECT_TRUE(checkOptions(options, error)) << error;
  options.optimizer.isGiven = true;
  EXPECT_FALSE(checkOptions(options, error));
  EXPECT_EQ(error, "--optimizer needs a loss, and --loss none compiles the forward part only");
  options.loss.source = LossSource::Output;
  options.loss.output = "loss";
  options.loss.text = "output:loss";
  options.lossInput = "logits";
  EXPECT_FALSE(checkOptions(options, error));
  EXPECT_EQ(error, "--loss-input 'logits' contradicts --loss output:loss: the graph computes its loss; leave "
                   "--loss-input out");
}

TEST(PatternTest, WarnsOfEveryPatternThatMatchesNothing) {
  CompileOptions options;
  std::string error;
  std::vector<std::string> names = {"conv1.weight", "conv1.bias", "fc.weight", "fc.bias"};
  ASSERT_TRUE(NamePattern::parse("conv1\\..*", options.train.emplace_back(), error));
  EXPECT_TRUE(findUnmatchedPatterns(options, {}, {names, names, {}}).empty());
  ASSERT_TRUE(NamePattern::parse("fc.wieght", options.freeze.emplace_back(), error));
  ASSERT_TRUE(parseGroup("fc.*:lr_scale=2", options.groups.emplace_back(), error));
  EXPECT_EQ(
      findUnmatchedPatterns(options, {}, {names, {"conv1.weight"}, {}}),
      (std::vector<std::string>{
          "--freeze 'fc.wieght' matches no initializer; closest: 'fc.weight', 'fc.bias', 'conv1.weight', ...",
          "--group 'fc.*' matches no trained tensor; closest: 'conv1.weight'"}));
}

TEST(PatternTest, ReadsListsOfNames) {
  host::test::TemporaryFolder folder;
  std::string path = folder.write("names.txt", "\xef\xbb\xbf"
                                               "fc.weight\r\n\nconv.*\nlost\nlost"),
              error;
  NamePattern list;
  ASSERT_TRUE(NamePattern::read("@" + path, list, error)) << error;
  EXPECT_EQ(list.getText(), "@" + path);
  EXPECT_EQ(*list.getNames(), (std::vector<std::string>{"conv.*", "fc.weight", "lost"}));
  EXPECT_TRUE(list.matches("fc.weight"));
  EXPECT_FALSE(list.matches("fc_weight")); // names, no regular expressions
  EXPECT_FALSE(list.matches("conv1"));
  CompileOptions options;
  options.freeze.push_back(list);
  EXPECT_EQ(
      findUnmatchedPatterns(options, {NamePattern::list({"gone", "conv.*"}, "ortc.trainable of the model")},
                            {{"fc.weight", "val_1"}, {}, {"conv.*"}}),
      (std::vector<std::string>{"--freeze @" + path +
                                    " has 1 name that is no initializer: 'lost'; exporters leave out what "
                                    "no output needs, and rename what they fold",
                                "ortc.trainable of the model has 1 name that is no initializer: 'gone'; "
                                "exporters leave out what no output needs, and rename what they fold"}));
  ASSERT_TRUE(NamePattern::read("[@]x", list, error)); // a regular expression
  EXPECT_EQ(list.getNames(), nullptr);
  EXPECT_TRUE(list.matches("@x"));
  EXPECT_FALSE(NamePattern::read("@" + (folder / "none.txt"), list, error));
  EXPECT_EQ(error,
            "'" + (folder / "none.txt") + "' is no file with names, one a line: No such file or directory");
  EXPECT_FALSE(NamePattern::read("@" + (folder / "."), list, error));
  EXPECT_EQ(error, "'" + (folder / ".") + "' is no file with names, one a line");
}

TEST(PatternTest, LongExpressionsAreRefused) {
  NamePattern pattern;
  std::string error, nested = std::string(2047, '(') + "a|" + std::string(2047, ')');
  ASSERT_EQ(nested.size(), 4096u);
  EXPECT_TRUE(NamePattern::parse(nested, pattern, error)) << error;
  EXPECT_TRUE(pattern.matches("a"));
  const std::string message =
      "the regular expression has 4097 bytes, the limit is 4096; write the names into a "
      "file, one a line, and give @FILE";
  EXPECT_FALSE(NamePattern::parse(nested + "b", pattern, error));
  EXPECT_EQ(error, message);
  GroupSpec group;
  error.clear();
  EXPECT_FALSE(parseGroup(nested + "b:lr_scale=2", group, error));
  EXPECT_EQ(error, message);
  EXPECT_FALSE(NamePattern::parse(std::string(1 << 20, '('), pattern, error));
}

TEST(ModeTest, ListsWhatThereIs) {
  BatchNormMode mode;
  Numerics numerics;
  std::string error;
  ASSERT_TRUE(parseBatchNorm("frozen", mode, error));
  EXPECT_EQ(mode, BatchNormMode::Frozen);
  EXPECT_FALSE(parseBatchNorm("eval", mode, error));
  EXPECT_EQ(error, "the batch norm mode is 'eval' but must be one of as-exported, train, frozen");
  EXPECT_FALSE(parseNumerics("exact", numerics, error));
  EXPECT_EQ(error, "the numerics mode is 'exact' but must be one of fast, portable");
}
