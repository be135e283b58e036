// Recipes: `--write-config` and `--config` make the same artifact as the command line that they stand for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "test/e2e/Tool.h"

using namespace ortc::test;

namespace {

using Arguments = std::vector<std::string>;

Arguments join(Arguments first, const Arguments &second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

class ConfigTest : public testing::TestWithParam<std::string> {};

/// The bytes of an artifact.
std::string compile(const std::string &folder, const Arguments &arguments) {
  mustRun(join({"train"}, join(arguments, {"-o", folder, "--quiet"})));
  return readFile(folder + "/model.ortc");
}

/// A command line, and a recipe that it writes, make the same artifact; so does the recipe of the recipe.
void roundTrip(const std::string &model, const Arguments &flags) {
  TemporaryFolder folder;
  const std::string recipe = folder / "recipe.toml", again = folder / "again.toml";
  const std::string wanted = compile(folder / "a", join({model, "--write-config", recipe}, flags));
  EXPECT_FALSE(wanted.empty());
  EXPECT_TRUE(compile(folder / "b", {model, "--config", recipe, "--write-config", again}) == wanted)
      << readFile(recipe);
  EXPECT_TRUE(compile(folder / "c", {model, "--config", again}) == wanted) << readFile(again);
}

} // namespace

/// All entries of the zoo, as far as the update: code generation sees nothing of flags.
TEST_P(ConfigTest, CompilesTheSameProgram) {
  ZooEntry entry(GetParam());
  TemporaryFolder folder;
  const std::string recipe = folder / "recipe.toml";
  const Arguments stop{"--compile-to", "update", "--max-workers", "1"};
  Arguments flags = join(entry.flags, stop);
  if (auto found = entry.optimizers.find("adamw"); found != entry.optimizers.end())
    flags = join(flags, {"--optimizer", found->second});
  const Outcome wanted = mustRun(join({"train", entry.model(), "--write-config", recipe}, flags));
  EXPECT_FALSE(wanted.text.empty());
  EXPECT_TRUE(mustRun({"train", entry.model(), "--config", recipe}).text == wanted.text) << readFile(recipe);
}

INSTANTIATE_TEST_SUITE_P(Zoo, ConfigTest, testing::ValuesIn(listEntries()),
                         [](const auto &info) { return caseName(info.param); });

TEST(ConfigBytesTest, ArtifactsAreThoseOfTheCommandLine) {
  roundTrip(ZooEntry("mlp-digits").model(), {"--binding",
                                             "train",
                                             "--shape",
                                             "batch=64",
                                             "--binding",
                                             "single",
                                             "--shape",
                                             "pixels=1x64",
                                             "--target",
                                             "x86-64-v3",
                                             "--target",
                                             "x86-64",
                                             "--gradients",
                                             "--clip-norm",
                                             "1.50",
                                             "--ema",
                                             "decay=0.99",
                                             "--group",
                                             ".*bias:lr_scale=2",
                                             "--group",
                                             "2\\..*:weight_decay=0",
                                             "--seed",
                                             "007",
                                             "--optimizer",
                                             "adamw:lr=3e-3"});
  ZooEntry lenet("lenet");
  roundTrip(lenet.model(), join(lenet.flags, {"--target", "x86-64", "--no-source"}));
}

TEST(ConfigBytesTest, TheCommandLineWins) {
  TemporaryFolder folder;
  const std::string model = ZooEntry("mlp-digits").model(),
                    recipe = folder.write("r.toml",
                                          "[train]\nshape = 'batch=8'\noptimizer = 'adam'\nclip-norm = 1\n");
  EXPECT_TRUE(compile(folder / "a", {model, "--target", "x86-64", "--config", recipe, "--shape", "batch=64",
                                     "--optimizer", "sgd"}) ==
              compile(folder / "b", {model, "--target", "x86-64", "--shape", "batch=64", "--optimizer", "sgd",
                                     "--clip-norm", "1"}));
  const Outcome planned = mustRun({"plan", model, "--config", recipe});
  EXPECT_EQ(planned.text,
            mustRun({"plan", model, "--shape", "batch=8", "--optimizer", "adam", "--clip-norm", "1"}).text);
}

TEST(ConfigBytesTest, MessagesShowAndEnd) {
  TemporaryFolder folder;
  auto refuse = [&](const std::string &text) {
    return runTool({"train", "m.onnx", "-o", folder / "x", "--config", folder.write("r.toml", text)}).errors;
  };
  const std::string begin = "ortc: error: " + (folder / "r.toml") + ":", huge(1000000, 'x');
  EXPECT_EQ(refuse("\xEF\xBB\xBF[train]"), begin + "1: a key is expected, but there is '?[train]'\n");
  EXPECT_EQ(refuse("[train]\rx"), begin + "1: '?x' follows a table's name on the same line\n");
  EXPECT_EQ(refuse("[train]\n\xFFx = 1"), begin + "2: a key is expected, but there is '?x = 1'\n");
  const std::string errors = refuse("[train]\nloss = '" + huge + "'");
  EXPECT_LT(errors.size(), 4500u);
  EXPECT_TRUE(errors.starts_with(begin + "2: --loss: there is no loss 'xxx")) << errors;
  EXPECT_TRUE(errors.ends_with(" output:NAME and none\n")) << errors;
}

TEST(ConfigBytesTest, HelpNeedsNoRecipe) {
  TemporaryFolder folder;
  const Arguments help{"train", "--help"};
  for (const std::string &recipe : {folder.write("r.toml", "["), folder / "missing.toml"})
    EXPECT_EQ(mustRun({"train", "--config", recipe, "--help"}).text, mustRun(help).text);
}

/// Of flags that a recipe gives, messages say where they stand.
TEST(ConfigBytesTest, RefusesWithThePlace) {
  TemporaryFolder folder;
  const std::string model = ZooEntry("mlp-digits").model();
  auto refuse = [&](const std::string &text, const Arguments &flags = {}) {
    const std::string recipe = folder.write("r.toml", text);
    const Outcome outcome = runTool(join({"train", model, "-o", folder / "x", "--config", recipe}, flags));
    EXPECT_EQ(outcome.status, 2) << text;
    const std::string begin = "ortc: error: " + recipe + ":";
    return outcome.errors.starts_with(begin) ? outcome.errors.substr(begin.size()) : outcome.errors;
  };
  EXPECT_EQ(refuse("[train]\nlos = 'mse'"), "2: 'los' is no flag of ortc train; did you mean 'loss'?\n");
  EXPECT_EQ(refuse("[train]\n\nclip-norm = -1"),
            "3: --clip-norm: '-1' must be a number above 0 that float32 has: 1.4e-45 to 3.4e38\n");
  // Of a flag that is given several times, the one that is wrong.
  EXPECT_EQ(refuse("[train]\nfreeze = [\n  'a',\n  '(',\n]").substr(0, 16), "4: --freeze: '('");
  EXPECT_EQ(
      refuse("[train.binding.a]\nshape = 'batch=2'\n[train.binding.b]\nshape = 'batch'\n").substr(0, 11),
      "4: --shape:");
  EXPECT_EQ(refuse("[train.binding.a]\nshape = 'batch=2'\n[train.binding.'b/c']\n").substr(0, 13),
            "3: --binding:");
  EXPECT_EQ(refuse("[train]\n", {"--clip-norm", "-1"}),
            "ortc: error: --clip-norm: '-1' must be a number above 0 that float32 has: 1.4e-45 to 3.4e38\n");
  EXPECT_EQ(refuse("[train]\nclip-norm = 1", {"--clip-norm", "-1"}),
            "ortc: error: --clip-norm: '-1' must be a number above 0 that float32 has: 1.4e-45 to 3.4e38\n");
  EXPECT_EQ(refuse("[train]\n", {"--config", folder / "other.toml"}), "ortc: error: --config: given twice\n");
  EXPECT_EQ(runTool({"train", model, "--compile-to", "import", "--write-config", model}).errors,
            "ortc: error: --write-config " + model + " would overwrite the model " + model +
                "; name another file\n");
  const std::string names = folder.write("names.txt", "0.*\n"), recipe = folder.write("w.toml", "[train]\n"),
                    lion = folder.write("lion.onnx", readFile(sourcePath("functions/lion.onnx"))),
                    loss = folder.write("loss.onnx", readFile(sourcePath("functions/log_cosh.onnx")));
  for (const auto &[flag, value, file] : {std::tuple("--freeze", "@" + names, names),
                                          {"--config", recipe, recipe},
                                          {"--optimizer", "onnx:" + lion + ":lr=0.1", lion},
                                          {"--loss", "onnx:" + loss, loss},
                                          {"--loss", "far=onnx:" + loss + ":weight=0.5", loss}})
    EXPECT_EQ(runTool({"train", model, "-o", folder / "x", flag, value, "--write-config", file}).errors,
              "ortc: error: --write-config " + file + " would overwrite " + flag + " " + file +
                  "; name another file\n");
}
