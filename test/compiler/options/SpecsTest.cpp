// The specs that flags of `ortc train` carry: what they mean and what is refused.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "compiler/options/CompileOptions.h"
#include "test/engine/data_files.h"

using namespace ortc;

TEST(GroupSpecTest, SplitsAtTheLastColon) {
  Expected<GroupSpec> group = parseGroup("(?:.*bias|.*norm.*):weight_decay=0");
  ASSERT_TRUE(group) << group.getStatus().getMessage();
  EXPECT_TRUE(group->pattern.matches("layer.bias"));
  EXPECT_FALSE(group->pattern.matches("layer.weight"));
  EXPECT_EQ(group->keys, "weight_decay=0");
  group = parseGroup("a{1,2}:lr_scale=0.1");
  ASSERT_TRUE(group) << group.getStatus().getMessage();
  EXPECT_TRUE(group->pattern.matches("aa"));
  EXPECT_EQ(group->keys, "lr_scale=0.1");
}

TEST(GroupSpecTest, RefusesWithReason) {
  EXPECT_EQ(
      parseGroup("(?:a|b)").getStatus().getMessage(),
      "'(?:a|b)' is no parameter group; write REGEX:KEY=VALUE,... with keys of the optimizer, lr_scale or "
      "optimizer=NAME");
  EXPECT_EQ(parseGroup("(:lr_scale=1").getStatus().getMessage(),
            "'(' is not a regular expression (ECMAScript); a plain dot is '\\.'");
}

TEST(NoDecaySpecTest, TakesOneOrBoth) {
  NoDecaySpec spec;
  ASSERT_TRUE(parseNoDecay("norms").moveTo(spec).isOk());
  EXPECT_TRUE(spec.norms && !spec.biases);
  ASSERT_TRUE(parseNoDecay("norms,biases").moveTo(spec).isOk());
  EXPECT_TRUE(spec.norms && spec.biases);
  for (const char *text : {"", "bias", "norms,norms", "norms,"})
    EXPECT_EQ(parseNoDecay(text).getStatus().getMessage(),
              "'" + std::string(text) + "' must be biases, norms, or both with a comma between");
}

TEST(TrainSpecTest, AShareFollowsTheExpression) {
  Expected<TrainSpec> train = parseTrain("(?:a|b):channels=0.25");
  ASSERT_TRUE(train) << train.getStatus().getMessage();
  EXPECT_TRUE(train->pattern.matches("b"));
  EXPECT_EQ(train->channels, 0.25);
  for (const char *text : {"(?:a|b)", "x(?=:channels)", ":channelss=1"}) {
    train = parseTrain(text);
    ASSERT_TRUE(train) << train.getStatus().getMessage();
    EXPECT_EQ(train->pattern.getText(), text);
    EXPECT_EQ(train->channels, 1);
  }
  EXPECT_EQ(parseTrain("a:channels=0").getStatus().getMessage(),
            "tensors 'a': channels is '0' but must be a number above 0 and at most 1");
  EXPECT_EQ(parseTrain("a:channels=1,x=2").getStatus().getMessage(),
            "tensors 'a' has no option 'x'; it takes channels");
}

TEST(TrainSpecTest, TheFirstMatchSaysHowMuch) {
  CompileOptions options;
  for (const char *text : {"a", "a|b:channels=0.5", "b"}) {
    Expected<TrainSpec> train = parseTrain(text);
    ASSERT_TRUE(train);
    options.train.push_back(train->pattern);
    options.channels.push_back(train->channels);
  }
  EXPECT_EQ(channelsOf(options, "a"), 1);
  EXPECT_EQ(channelsOf(options, "b"), 0.5);
  EXPECT_EQ(channelsOf(options, "c"), 1);
}

TEST(ShapeTest, BindsDimensionsAndInputsOfSeveralBindings) {
  CompileOptions options;
  ASSERT_TRUE(addShapes("batch=32,seq=128", options).isOk());
  ASSERT_TRUE(addShapes("input.1=1x3x8", options).isOk());
  ASSERT_TRUE(addBinding("one", options).isOk());
  ASSERT_TRUE(addShapes("batch=1", options).isOk());
  ASSERT_EQ(options.bindings.size(), 2u);
  EXPECT_EQ(options.bindings[0].name, "default");
  ASSERT_EQ(options.bindings[0].shapes.size(), 3u);
  EXPECT_EQ(options.bindings[0].shapes[2].name, "input.1");
  EXPECT_EQ(options.bindings[0].shapes[2].dims, (std::vector<int64_t>{1, 3, 8}));
  EXPECT_EQ(options.bindings[1].name, "one");
}

TEST(ShapeTest, ABindingBeforeAllShapesNamesTheFirst) {
  CompileOptions options;
  ASSERT_TRUE(addBinding("train", options).isOk());
  ASSERT_TRUE(addShapes("batch=32", options).isOk());
  ASSERT_TRUE(addBinding("predict", options).isOk());
  ASSERT_EQ(options.bindings.size(), 2u);
  EXPECT_EQ(options.bindings[0].name, "train");
}

TEST(ShapeTest, RefusesWithReason) {
  CompileOptions options;
  EXPECT_EQ(addShapes("batch", options).getMessage(),
            "'batch' binds nothing; write NAME=N for a dimension or INPUT=AxBxC for an input");
  EXPECT_EQ(addShapes("batch=0", options).getMessage(),
            "'0' in 'batch=0' is no size; sizes are whole numbers from 1");
  EXPECT_EQ(addShapes("x=2xx3", options).getMessage(),
            "'' in 'x=2xx3' is no size; sizes are whole numbers from 1");
  EXPECT_EQ(addShapes("b=1,b=2", options).getMessage(),
            "'b' is bound twice in binding 'default'; --binding NAME starts another binding");
  EXPECT_EQ(addBinding("a b", options).getMessage(),
            "'a b' is no binding name; letters, digits, '_', '-' and '.' make one");
  ASSERT_TRUE(addBinding("one", options).isOk());
  EXPECT_EQ(addBinding("one", options).getMessage(), "binding 'one' is given twice");
}

TEST(TargetTest, TheFirstReplacesTheDefault) {
  CompileOptions options;
  bool first = true;
  EXPECT_EQ(options.targets, (std::vector<std::string>{"host"}));
  ASSERT_TRUE(addTarget("x86-64-v3", options, first).isOk());
  ASSERT_TRUE(addTarget("x86-64-v4", options, first).isOk());
  EXPECT_EQ(options.targets, (std::vector<std::string>{"x86-64-v3", "x86-64-v4"}));
  EXPECT_EQ(addTarget("x86-64-v4", options, first).getMessage(), "target 'x86-64-v4' is given twice");
}

TEST(OptionsTest, RefusesFlagsThatContradict) {
  CompileOptions options;
  EXPECT_EQ(checkOptions(options).getMessage(), "-o DIR is missing: the folder of the artifact");
  options.output = "out";
  EXPECT_TRUE(checkOptions(options).isOk());
  options.losses.front().source = LossSource::None;
  options.gradients = true;
  EXPECT_EQ(checkOptions(options).getMessage(),
            "--gradients needs a loss, and --loss none compiles the forward part only");
  options.gradients = false;
  EXPECT_TRUE(checkOptions(options).isOk());
  options.optimizer.isGiven = true;
  EXPECT_EQ(checkOptions(options).getMessage(),
            "--optimizer needs a loss, and --loss none compiles the forward part only");
  options.optimizer.isGiven = false;
  ASSERT_TRUE(parseLossScale("dynamic").moveTo(options.lossScale.emplace()).isOk());
  EXPECT_EQ(checkOptions(options).getMessage(),
            "--loss-scale needs a loss, and --loss none compiles the forward part only");
  options.losses.front().source = LossSource::Output;
  options.losses.front().outputs = {"loss"};
  options.losses.front().text = "output:loss";
  options.lossInput = "logits";
  EXPECT_EQ(checkOptions(options).getMessage(),
            "--loss-input 'logits' contradicts --loss output:loss: the graph computes its loss; leave "
            "--loss-input out");
}

TEST(OptionsTest, ParametersAreNarrowWhereTheyAreTrained) {
  CompileOptions options;
  options.output = "out";
  EXPECT_TRUE(parseParameters("bf16").moveTo(options.parameters).isOk());
  EXPECT_EQ(options.parameters, ParameterStorage::BF16Nearest);
  EXPECT_TRUE(checkOptions(options).isOk());
  options.precision = Precision::F64;
  EXPECT_EQ(
      checkOptions(options).getMessage(),
      "--parameters bf16 stores parameters in bfloat16, and --precision f64 keeps them in float64; leave "
      "one of both out");
  options.precision = Precision::BF16;
  options.losses.front().source = LossSource::None;
  EXPECT_EQ(checkOptions(options).getMessage(),
            "--parameters needs a loss, and --loss none compiles the forward part only");
  EXPECT_EQ(
      parseParameters("bf16:down").getStatus().getMessage(),
      "the type of parameters is 'bf16:down' but must be one of f32, bf16, bf16:nearest, bf16:stochastic");
}

TEST(PatternTest, WarnsOfEveryPatternThatMatchesNothing) {
  CompileOptions options;
  std::vector<std::string> names = {"conv1.weight", "conv1.bias", "fc.weight", "fc.bias"};
  ASSERT_TRUE(NamePattern::parse("conv1\\..*").moveTo(options.train.emplace_back()).isOk());
  EXPECT_TRUE(findUnmatchedPatterns(options, {}, {names, names, {}}).empty());
  ASSERT_TRUE(NamePattern::parse("fc.wieght").moveTo(options.freeze.emplace_back()).isOk());
  ASSERT_TRUE(parseGroup("fc.*:lr_scale=2").moveTo(options.groups.emplace_back()).isOk());
  EXPECT_EQ(
      findUnmatchedPatterns(options, {}, {names, {"conv1.weight"}, {}}),
      (std::vector<std::string>{
          "--freeze 'fc.wieght' matches no initializer; closest: 'fc.weight', 'fc.bias', 'conv1.weight', ...",
          "--group 'fc.*' matches no trained tensor; closest: 'conv1.weight'"}));
}

TEST(PatternTest, ReadsListsOfNames) {
  engine::test::TemporaryFolder folder;
  std::string path = folder.write("names.txt", "\xef\xbb\xbf"
                                               "fc.weight\r\n\nconv.*\nlost\nlost");
  Expected<NamePattern> list = NamePattern::read("@" + path);
  ASSERT_TRUE(list) << list.getStatus().getMessage();
  EXPECT_EQ(list->getText(), "@" + path);
  EXPECT_EQ(*list->getNames(), (std::vector<std::string>{"conv.*", "fc.weight", "lost"}));
  EXPECT_TRUE(list->matches("fc.weight"));
  EXPECT_FALSE(list->matches("fc_weight")); // names, no regular expressions
  EXPECT_FALSE(list->matches("conv1"));
  CompileOptions options;
  options.freeze.push_back(*list);
  EXPECT_EQ(
      findUnmatchedPatterns(options, {NamePattern::list({"gone", "conv.*"}, "ortc.trainable of the model")},
                            {{"fc.weight", "val_1"}, {}, {"conv.*"}}),
      (std::vector<std::string>{"--freeze @" + path +
                                    " has 1 name that is no initializer: 'lost'; exporters leave out what "
                                    "no output needs, and rename what they fold",
                                "ortc.trainable of the model has 1 name that is no initializer: 'gone'; "
                                "exporters leave out what no output needs, and rename what they fold"}));
  list = NamePattern::read("[@]x"); // a regular expression
  ASSERT_TRUE(list) << list.getStatus().getMessage();
  EXPECT_EQ(list->getNames(), nullptr);
  EXPECT_TRUE(list->matches("@x"));
  EXPECT_EQ(NamePattern::read("@" + (folder / "none.txt")).getStatus().getMessage(),
            "'" + (folder / "none.txt") + "' is no file with names, one a line: No such file or directory");
  EXPECT_EQ(NamePattern::read("@/proc/self/mem").getStatus().getMessage(), "'/proc/self/mem' cannot be read");
  EXPECT_EQ(NamePattern::read("@" + (folder / ".")).getStatus().getMessage(),
            "'" + (folder / ".") + "' is no file with names, one a line");
}

TEST(PatternTest, LongExpressionsAreRefused) {
  std::string nested = std::string(2047, '(') + "a|" + std::string(2047, ')');
  ASSERT_EQ(nested.size(), 4096u);
  Expected<NamePattern> pattern = NamePattern::parse(nested);
  ASSERT_TRUE(pattern) << pattern.getStatus().getMessage();
  EXPECT_TRUE(pattern->matches("a"));
  const std::string message =
      "the regular expression has 4097 bytes, the limit is 4096; write the names into a "
      "file, one a line, and give @FILE";
  EXPECT_EQ(NamePattern::parse(nested + "b").getStatus().getMessage(), message);
  EXPECT_EQ(parseGroup(nested + "b:lr_scale=2").getStatus().getMessage(), message);
  EXPECT_FALSE(NamePattern::parse(std::string(1 << 20, '(')));
}

TEST(EmitTest, IsPartsOrAModule) {
  Expected<EmitSpec> parts = parseEmit("static:name=digits"), module = parseEmit("wasm");
  ASSERT_TRUE(bool(parts) && bool(module));
  EXPECT_EQ(parts->kind, EmitSpec::Static);
  EXPECT_EQ(parts->name, "digits");
  EXPECT_EQ(module->kind, EmitSpec::Wasm);
  for (const char *text : {"", "wasm:", "wasm:name=digits", "module"})
    EXPECT_NE(parseEmit(text).getStatus().getMessage().find("must be static[:name=model] or wasm"),
              std::string::npos)
        << text;
}

TEST(ModeTest, ListsWhatThereIs) {
  Expected<BatchNormSpec> spec = parseBatchNorm("frozen");
  ASSERT_TRUE(spec) << spec.getStatus().getMessage();
  EXPECT_EQ(spec->mode, BatchNormMode::Frozen);
  EXPECT_FALSE(spec->isUnbiased);
  spec = parseBatchNorm("train:unbiased=1");
  ASSERT_TRUE(spec) << spec.getStatus().getMessage();
  EXPECT_TRUE(spec->mode == BatchNormMode::Train && spec->isUnbiased);
  EXPECT_EQ(parseBatchNorm("eval").getStatus().getMessage(),
            "the batch norm mode is 'eval' but must be one of as-exported, train, frozen");
  EXPECT_EQ(parseNumerics("exact").getStatus().getMessage(),
            "the numerics mode is 'exact' but must be one of fast, portable");
}
