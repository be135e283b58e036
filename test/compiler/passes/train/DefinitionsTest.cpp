// Specs of losses and optimizers: what they mean, what is refused, what the documentation says of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/Optimizers.h"

#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <filesystem>
#include <fstream>
#include <set>

using namespace ortc;
using namespace ortc::train;

static LossSpec loss(const char *text) {
  LossSpec spec;
  Status status = parseLoss(text).moveTo(spec);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  return spec;
}

static Settings optimizer(const char *text) {
  OptimizerSpec spec;
  Status status = parseOptimizer(text).moveTo(spec);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  return settingsOf(spec);
}

static std::string joinNames(auto definitions) {
  std::string names;
  for (const auto *each : definitions)
    names += (names.empty() ? "" : ", ") + std::string(each->name);
  return names;
}

TEST(LossSpecTest, ParsesNamesAndOptions) {
  Settings all = settingsOf(loss("cross_entropy:axis=-1,ignore_index=0,label_smoothing=0.1"));
  EXPECT_EQ(all.getInteger("axis"), -1);
  EXPECT_EQ(all.getInteger("ignore_index"), 0);
  EXPECT_EQ(all.getNumber("label_smoothing"), 0.1);
  EXPECT_EQ(settingsOf(loss("cross_entropy")).getInteger("ignore_index"), -100);
  EXPECT_EQ(settingsOf(loss("smooth_l1:beta=0.5")).getNumber("beta"), 0.5);
  Settings nll = settingsOf(loss("nll:axis=-1,ignore_index=9223372036854775807"));
  EXPECT_EQ(nll.getInteger("axis"), -1);
  EXPECT_EQ(nll.getInteger("ignore_index"), INT64_MAX); // no double in between
  EXPECT_EQ(loss("output:a:b").outputs, std::vector<std::string>{"a:b"});
  EXPECT_EQ(loss("output:a:b").source, LossSource::Output);
  EXPECT_EQ(loss("none").source, LossSource::None);
  for (const LossDefinition *each : listLosses())
    EXPECT_EQ(loss(each->name).name, each->name);
}

TEST(LossSpecTest, RefusesWithReason) {
  auto refuse = [](const char *text) { return parseLoss(text).getStatus().getMessage(); };
  EXPECT_EQ(refuse("hubr"), "there is no loss 'hubr'; there are " + joinNames(listLosses()) +
                                ", onnx:FILE, output:NAME and none; did you mean 'huber'?");
  EXPECT_EQ(refuse("mse:beta=1"), "loss 'mse' has no option 'beta'; it takes reduction, sample_weight");
  EXPECT_EQ(refuse("none:beta=1"), "loss 'none' has no option 'beta'; it takes none");
  EXPECT_EQ(
      refuse("nll:label_smoothing=0"),
      "loss 'nll' has no option 'label_smoothing'; it takes axis, ignore_index, class_weight, reduction, "
      "sample_weight");
  EXPECT_EQ(refuse("cross_entropy:axis=x"), "loss 'cross_entropy': axis is 'x' but must be a whole number");
  EXPECT_EQ(refuse("cross_entropy:label_smoothing=2"),
            "loss 'cross_entropy': label_smoothing is '2' but must be a number from 0 to 1");
  EXPECT_EQ(refuse("cross_entropy:axis=1,axis=1"), "loss 'cross_entropy': option 'axis' is given twice");
  EXPECT_EQ(refuse("cross_entropy:"), "loss 'cross_entropy' has no option ''; it takes axis, ignore_index, "
                                      "class_weight, label_smoothing, probabilities, "
                                      "reduction, sample_weight");
  EXPECT_EQ(refuse("l1:reduction=max"), "loss 'l1': reduction is 'max' but must be one of mean, sum");
  EXPECT_EQ(refuse("kl_div:reduction=no"),
            "loss 'kl_div': reduction is 'no' but must be one of batchmean, mean, sum");
  EXPECT_EQ(refuse("multi_margin:p=3"), "loss 'multi_margin': p must be 1 or 2");
  EXPECT_EQ(refuse("ctc:blank=-1"), "loss 'ctc': blank must be at least 0");
  EXPECT_EQ(refuse("ctc:labels=-1"), "loss 'ctc': labels must be at least 0");
  EXPECT_EQ(refuse("ctc:labels=9223372036854775807"), "loss 'ctc': labels must be at most 16777216");
  EXPECT_EQ(refuse("cross_entropy:probabilities=1,ignore_index=0"),
            "loss 'cross_entropy': probabilities have no index to ignore; leave ignore_index or "
            "probabilities out");
  EXPECT_EQ(refuse("smooth_l1:beta=0"),
            "loss 'smooth_l1': beta is '0' but must be a number from 1.2e-38 to 3.4e38");
  EXPECT_EQ(refuse("smooth_l1:beta=1e-46"), // zero in float32
            "loss 'smooth_l1': beta is '1e-46' but must be a number from 1.2e-38 to 3.4e38");
  EXPECT_EQ(refuse("smooth_l1:beta"), "loss 'smooth_l1': option 'beta' needs a value: beta=...");
  EXPECT_EQ(refuse("kl_div:log_target=2"), "loss 'kl_div': log_target is '2' but must be 0 or 1");
  EXPECT_EQ(refuse("output"),
            "loss 'output' needs the name of the graph output that is the loss: output:NAME");
}

TEST(LossSpecTest, AddsLossesWithNamesOutputsAndWeights) {
  std::vector<LossSpec> losses(1);
  auto add = [&](const char *text) {
    Status status = addLoss(text, losses);
    EXPECT_TRUE(status.isOk()) << status.getMessage();
  };
  add("smooth_l1:beta=0.5@a+b:0:weight=0.25"); // a loss of one output: the name as a whole
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].outputs, std::vector<std::string>{"a+b:0"});
  EXPECT_EQ(losses[0].label, "label");
  EXPECT_EQ(losses[0].weight, 0.25);
  EXPECT_EQ(settingsOf(losses[0]).getNumber("beta"), 0.5);
  EXPECT_EQ(losses[0].text, "smooth_l1:beta=0.5@a+b:0:weight=0.25");
  losses.assign(1, {});
  add("x=triplet_margin@a+b+c");
  add("y=output:loss@2");
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0].outputs, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_FALSE(losses[0].weight || needsLabel(losses[0]));
  EXPECT_EQ(losses[1].outputs, std::vector<std::string>{"loss@2"});
  EXPECT_EQ(losses[1].label, "label.y");
  EXPECT_EQ(valueName(losses[1]), "loss.y");
  EXPECT_EQ(weightName(losses[1]), "loss.y.weight");
  auto refuse = [](const char *text) {
    std::vector<LossSpec> fresh(1);
    return addLoss(text, fresh).getMessage();
  };
  EXPECT_EQ(refuse("a b=mse@x"),
            "the loss of 'a b=mse@x' is called 'a b'; up to 64 letters, digits, '_' and '-' "
            "make a name");
  EXPECT_EQ(refuse("mse@"), "loss 'mse' reads 1 output; write mse@OUTPUT");
  EXPECT_EQ(refuse("triplet_margin"),
            "loss 'triplet_margin' reads 3 outputs; write triplet_margin@ANCHOR+POSITIVE+NEGATIVE");
  EXPECT_EQ(refuse("margin_ranking@a+b+c"),
            "loss 'margin_ranking' reads 2 outputs; write margin_ranking@INPUT1+INPUT2");
  EXPECT_EQ(refuse("none:weight=1"), "'none:weight=1': none reads nothing; leave what follows it out");
}

TEST(OptimizerSpecTest, HasTheDefaultsOfPyTorch) {
  Settings sgd = optimizer("sgd"), adam = optimizer("adam"), rmsprop = optimizer("rmsprop");
  EXPECT_EQ(sgd.getNumber("lr"), 1e-3);
  EXPECT_EQ(sgd.getNumber("momentum"), 0);
  EXPECT_EQ(sgd.getNumber("weight_decay"), 0);
  EXPECT_FALSE(sgd.isOn("nesterov"));
  EXPECT_EQ(adam.getNumber("beta1"), 0.9);
  EXPECT_EQ(adam.getNumber("beta2"), 0.999);
  EXPECT_EQ(adam.getNumber("epsilon"), 1e-8);
  EXPECT_EQ(adam.getNumber("weight_decay"), 0);
  EXPECT_EQ(optimizer("adamw").getNumber("weight_decay"), 1e-2);
  EXPECT_EQ(rmsprop.getNumber("lr"), 1e-2);
  EXPECT_EQ(rmsprop.getNumber("alpha"), 0.99);
  EXPECT_EQ(rmsprop.getNumber("epsilon"), 1e-8);
  EXPECT_FALSE(rmsprop.isOn("centered"));
  EXPECT_EQ(optimizer("adagrad").getNumber("lr"), 1e-2);
  EXPECT_EQ(optimizer("adagrad").getNumber("epsilon"), 1e-10);
  auto expect = [](const char *name, std::initializer_list<std::pair<const char *, double>> numbers) {
    Settings settings = optimizer(name);
    for (auto [key, number] : numbers)
      EXPECT_EQ(settings.getNumber(key), number) << name << ": " << key;
  };
  expect("adadelta", {{"lr", 1}, {"rho", 0.9}, {"epsilon", 1e-6}, {"weight_decay", 0}});
  expect("adamax", {{"lr", 2e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 0}});
  expect("nadam", {{"lr", 2e-3}, {"momentum_decay", 4e-3}, {"epsilon", 1e-8}, {"weight_decay", 0}});
  expect("radam", {{"lr", 1e-3}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 0}});
  expect("lion", {{"lr", 1e-4}, {"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0}});
  expect("adamw8bit",
         {{"lr", 1e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 1e-2}});
  expect("lion8bit", {{"lr", 1e-4}, {"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0}});
  expect("lamb", {{"lr", 1e-3}, {"epsilon", 1e-6}, {"weight_decay", 1e-2}});
  expect("lars", {{"lr", 1}, {"momentum", 0}, {"trust_coeff", 1e-3}, {"epsilon", 1e-8}, {"weight_decay", 0}});
  expect("adafactor",
         {{"lr", 1e-2}, {"beta2_decay", -0.8}, {"epsilon2", 1e-3}, {"d", 1}, {"weight_decay", 0}});
  expect("muon", {{"lr", 1e-3},
                  {"momentum", 0.95},
                  {"weight_decay", 0.1},
                  {"ns_a", 3.4445},
                  {"ns_b", -4.775},
                  {"ns_c", 2.0315},
                  {"epsilon", 1e-7}});
  EXPECT_EQ(optimizer("muon").getInteger("ns_steps"), 5);
  EXPECT_TRUE(optimizer("muon").isOn("nesterov"));
  expect("schedule_free_sgd",
         {{"lr", 1}, {"momentum", 0.9}, {"weight_lr_power", 2}, {"warmup_steps", 0}, {"r", 0}});
  expect("schedule_free_adamw",
         {{"lr", 2.5e-3}, {"beta2", 0.999}, {"weight_lr_power", 2}, {"weight_decay", 0}});
}

TEST(OptimizerSpecTest, ParsesOptions) {
  Settings sgd = optimizer("sgd:lr=.5,momentum=0.9,weight_decay=1e-4,nesterov=1");
  EXPECT_EQ(sgd.getNumber("lr"), 0.5);
  EXPECT_EQ(sgd.getNumber("momentum"), 0.9);
  EXPECT_EQ(sgd.getNumber("weight_decay"), 1e-4);
  EXPECT_TRUE(sgd.isOn("nesterov"));
}

TEST(OptimizerSpecTest, RefusesWithReason) {
  auto refuse = [](const char *text) { return parseOptimizer(text).getStatus().getMessage(); };
  EXPECT_EQ(refuse("nosuch"),
            "there is no optimizer 'nosuch'; there are " + joinNames(listOptimizers()) + " and onnx:FILE");
  EXPECT_NE(refuse("adan").find("; did you mean 'adam'?"), std::string::npos);
  EXPECT_NE(refuse("ada_factor").find("; did you mean 'adafactor'?"), std::string::npos);
  EXPECT_EQ(refuse("lbfgs:lr=1"),
            "optimizer 'lbfgs' is none of a compiled step: it computes the loss several times "
            "in a step, as its line search goes");
  EXPECT_EQ(refuse("sam"),
            "optimizer 'sam' is none of a compiled step: it computes the gradient twice in a step, the "
            "second time at other weights");
  EXPECT_EQ(refuse("galore"),
            "optimizer 'galore' is none of a compiled step: it decomposes gradients into singular "
            "vectors every few hundred steps; --lora trains few numbers, too");
  EXPECT_EQ(refuse("sgd:lr=-1"), "optimizer 'sgd': lr is '-1' but must be a number from 0 to 3.4e38");
  EXPECT_EQ(refuse("sgd:lr=1e39"), "optimizer 'sgd': lr is '1e39' but must be a number from 0 to 3.4e38");
  EXPECT_EQ(refuse("sgd:lr=nan"), "optimizer 'sgd': lr is 'nan' but must be a number from 0 to 3.4e38");
  EXPECT_EQ(refuse("sgd:lr=1 "), "optimizer 'sgd': lr is '1 ' but must be a number from 0 to 3.4e38");
  EXPECT_EQ(refuse("sgd:nesterov=1"), "optimizer 'sgd': nesterov needs a momentum above 0");
  EXPECT_EQ(refuse("sgd:beta1=0.9"), "optimizer 'sgd' has no option 'beta1'; it takes lr, momentum, "
                                     "weight_decay, nesterov, dampening, maximize");
  EXPECT_EQ(refuse("sgd:momentun=0.9"),
            "optimizer 'sgd' has no option 'momentun'; it takes lr, momentum, weight_decay, "
            "nesterov, dampening, maximize; did you mean 'momentum'?");
  EXPECT_EQ(refuse("sgd:momentum=0.9,nesterov=1,dampening=0.1"),
            "optimizer 'sgd': nesterov needs a dampening of 0");
  EXPECT_EQ(refuse("muon:ns_steps=100"), "optimizer 'muon': ns_steps must be from 0 to 99");
  EXPECT_EQ(refuse("muon:adjust_lr_fn=mine"),
            "optimizer 'muon': adjust_lr_fn is 'mine' but must be one of original, "
            "match_rms_adamw, spectral_unclamped");
  EXPECT_EQ(refuse("adam:beta2=1"),
            "optimizer 'adam': beta2 is '1' but must be a number of at least 0 and below 1");
  EXPECT_EQ(refuse("rmsprop:beta1=0.9"), "optimizer 'rmsprop' has no option 'beta1'; it takes lr, alpha, "
                                         "epsilon, weight_decay, momentum, centered, maximize");
}

static std::string refuseGroup(const char *group, const char *base = "sgd") {
  GroupSpec spec;
  OptimizerSpec optimizer;
  EXPECT_TRUE(parseGroup(group).moveTo(spec).isOk());
  EXPECT_TRUE(parseOptimizer(base).moveTo(optimizer).isOk());
  return readGroup(spec, optimizer).getStatus().getMessage();
}

TEST(OptimizerGroupTest, ReadsKeysOfItsOptimizer) {
  GroupSpec spec;
  OptimizerSpec base;
  ASSERT_TRUE(parseOptimizer("adamw:lr=0.1,beta1=0.5").moveTo(base).isOk());
  ASSERT_TRUE(parseGroup(".*bias:lr_scale=2,beta2=0.9").moveTo(spec).isOk());
  Expected<OptimizerGroup> group = readGroup(spec, base);
  ASSERT_TRUE(bool(group));
  EXPECT_FALSE(group->isOther);
  EXPECT_EQ(group->lrScale, 2);
  EXPECT_EQ(group->own.size(), 1u);
  Settings settings = settingsOf(group->optimizer);
  EXPECT_EQ(settings.getNumber("lr"), 0.1);
  EXPECT_EQ(settings.getNumber("beta1"), 0.5);
  EXPECT_EQ(settings.getNumber("beta2"), 0.9);
  for (const char *text :
       {".*:optimizer=adam", ".*:lr_scale=3,optimizer=adam", ".*:optimizer=adam,lr_scale=3"}) {
    ASSERT_TRUE(parseGroup(text).moveTo(spec).isOk());
    group = readGroup(spec, base);
    ASSERT_TRUE(bool(group)) << group.getStatus().getMessage();
    EXPECT_TRUE(group->isOther);
    EXPECT_EQ(settingsOf(group->optimizer).getNumber("beta1"), 0.9)
        << "another optimizer has its own defaults";
  }
}

TEST(OptimizerGroupTest, RefusesWithReason) {
  EXPECT_EQ(refuseGroup(".*:momentun=1"), "group '.*' of optimizer 'sgd' has no option 'momentun'; it takes "
                                          "lr_scale, lr, momentum, weight_decay, "
                                          "nesterov, dampening, maximize; did you mean 'momentum'?");
  EXPECT_NE(
      refuseGroup(".*:optimizer=adamm").find("group '.*': there is no optimizer 'adamm'; there are sgd, "),
      std::string::npos);
  EXPECT_NE(refuseGroup(".*:optimizer=adamm").find("; did you mean 'adam'?"), std::string::npos);
  EXPECT_EQ(refuseGroup(".*:optimizer=lars,rho=1").find("group '.*' of optimizer 'lars' has no option 'rho'"),
            0u);
  EXPECT_EQ(refuseGroup(".*:nesterov=1"), "group '.*' of optimizer 'sgd': nesterov needs a momentum above 0");
  EXPECT_EQ(refuseGroup(".*:lr=-1"),
            "group '.*' of optimizer 'sgd': lr is '-1' but must be a number from 0 to 3.4e38");
}

/// What the rest of the compiler takes for granted of every row of the tables.
TEST(DefinitionTest, HasWhatGroupsAndLabelsNeed) {
  for (const OptimizerDefinition *each : listOptimizers()) {
    Settings settings(each->keys, {});
    EXPECT_TRUE(settings.has(kLr) && settings.has(kWeightDecay)) << each->name << ": --group changes both";
    for (const SharedState &state : each->shared)
      for (const char *key : state.keys)
        EXPECT_TRUE(settings.has(key)) << each->name << ": " << state.name;
    EXPECT_FALSE(settings.has("lr_scale") || settings.has("optimizer")) << each->name << ": keys of groups";
  }
  for (const LossDefinition *each : listLosses()) {
    Settings settings(each->keys, {});
    bool hasClasses = each->label == LabelKind::Classes;
    EXPECT_EQ(settings.has(kAxis), hasClasses) << each->name << ": the manifest says where the classes are";
    EXPECT_EQ(settings.has(kIgnoreIndex), hasClasses) << each->name << ": evaluation masks with it";
    for (const Misfit &misfit : each->misfits)
      if (misfit.flag)
        loss(misfit.flag);
  }
}

/// "`name=default` (meaning; what it may be), ..."
static std::string describeKeys(const std::vector<Key> &keys) {
  std::string text;
  for (const Key &key : keys)
    text += (text.empty() ? "`" : ", `") + std::string(key.name) + "=" + formatValue(key.initial) + "` (" +
            key.meaning + "; " + key.range.text + llvm::join(key.words, ", ") + ")";
  return text.empty() ? "none" : text;
}

/// The rows of docs/commands/train.md between two marks.
static std::vector<std::string> readRows(const std::string &mark) {
  std::ifstream file(ORTC_DOCS "/commands/train.md");
  std::vector<std::string> rows;
  bool isInside = false;
  for (std::string line; std::getline(file, line);) {
    isInside = line == "<!-- " + mark + ": begin -->" || (isInside && line != "<!-- " + mark + ": end -->");
    if (isInside && line.rfind("| `", 0) == 0)
      rows.push_back(line);
  }
  return rows;
}

TEST(DefinitionTest, TheDocumentationHasARowForEveryLoss) {
  std::vector<std::string> rows;
  for (const LossDefinition *each : listLosses()) {
    std::string name = each->name;
    for (size_t i = 0; i < each->predictions.size() && each->predictions.size() > 1; ++i)
      name += (i ? "+" : "@") + std::string(each->predictions[i]);
    rows.push_back("| `" + name + "` | " + each->meaning + " | " + describeKeys(each->keys) + " | " +
                   (each->label == LabelKind::Classes ? "loss, accuracy" : "loss") + " |");
  }
  EXPECT_EQ(readRows("losses"), rows) << "in docs/commands/train.md:\n" << llvm::join(rows, "\n");
}

TEST(DefinitionTest, TheDocumentationHasARowForEveryOptimizer) {
  std::vector<std::string> rows;
  for (const OptimizerDefinition *each : listOptimizers()) {
    std::string states;
    for (const StateDefinition &state : each->states)
      states +=
          (states.empty() ? "`" : ", `") + std::string(state.name) + (state.isNeeded ? "` if needed" : "`");
    rows.push_back("| `" + std::string(each->name) + "` | " + each->meaning + " | " +
                   describeKeys(each->keys) + " | " + states + " |");
  }
  EXPECT_EQ(readRows("optimizers"), rows) << "in docs/commands/train.md:\n" << llvm::join(rows, "\n");
}

/// A file without a row is compiled, and nothing finds it.
TEST(DefinitionTest, EveryFileOfAFormulaHasARow) {
  for (auto [folder, macro, rows] : {std::tuple("losses", "ORTC_LOSS", listLosses().size()),
                                     std::tuple("optimizers", "ORTC_OPTIMIZER", listOptimizers().size())}) {
    std::set<std::string> defining;
    for (const auto &file :
         std::filesystem::directory_iterator(ORTC_DOCS "/../compiler/passes/train/" + std::string(folder))) {
      std::ifstream stream(file.path());
      std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
      if (file.path().extension() == ".cpp" && text.find("Definition k") != std::string::npos)
        defining.insert(file.path().stem());
    }
    EXPECT_EQ(defining.size(), rows) << folder << "/Table.inc needs a row " << macro
                                     << "(Name) for each of them";
  }
}
