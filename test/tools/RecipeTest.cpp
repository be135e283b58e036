// Recipes: what is read, what is refused, and what is written.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "test/engine/data_files.h"
#include "tools/ortc/flags/Recipe.h"
#include "tools/ortc/flags/Toml.h"

using namespace ortc;
using namespace ortc::tool;
using engine::test::TemporaryFolder;

namespace {

using Lines = std::vector<std::string>;

/// The arguments of a recipe.
Lines read(const std::string &text, const char *command = "train") {
  Expected<Recipe> recipe = parseRecipe(text, "r.toml", *findCommand(command));
  if (!recipe)
    return {recipe.getStatus().getMessage()};
  Lines arguments;
  for (const GivenFlag &flag : recipe->flags)
    arguments.push_back(std::string(flag.row->name) +
                        (flag.row->type == FlagType::Switch ? "" : "=" + flag.value));
  return arguments;
}

/// Why a recipe is refused.
std::string refuse(const std::string &text, const char *command = "train") {
  Expected<Recipe> recipe = parseRecipe(text, "r.toml", *findCommand(command));
  return recipe ? "" : recipe.getStatus().getMessage();
}

/// Flags of a command line as --write-config sees them.
std::vector<GivenFlag> give(const std::vector<std::pair<const char *, const char *>> &flags) {
  std::vector<GivenFlag> given;
  for (auto [name, value] : flags)
    given.push_back({findCommand("train")->find(name), value});
  return given;
}

} // namespace

TEST(RecipeTest, ReadsValuesAsTheyAreWritten) {
  EXPECT_EQ(
      read("# a recipe\n"
           "[train]\n"
           "loss = \"mse\" # a comment\n"
           "clip-norm = 1.50\r\n"
           "seed = 18446744073709551615\n"
           "accumulate = 4\n"
           "loss-scale = 1e3\n"
           "gradients = true\n"
           "no-source = false\n"
           "freeze = [\n  'conv\\.w', # one\n  \"a\\\"\\u00e4\\U0001F600\",\n]\n"
           "\"batch-norm\" = 'train'\n"),
      (Lines{"loss=mse", "clip-norm=1.50", "seed=18446744073709551615", "accumulate=4", "loss-scale=1e3",
             "gradients", "freeze=conv\\.w", "freeze=a\"\xc3\xa4\xf0\x9f\x98\x80", "batch-norm=train"}));
}

TEST(RecipeTest, BindingsKeepTheirShapes) {
  EXPECT_EQ(read("[train.binding.'two words']\n"
                 "shape = [\"batch=2\", \"seq=3\"]\n"
                 "[train.binding.bare]\n"
                 "[train]\n"
                 "shape = \"width=4\"\n"),
            (Lines{"shape=width=4", "binding=two words", "shape=batch=2", "shape=seq=3", "binding=bare"}));
}

TEST(RecipeTest, CommandsTakeTheFlagsThatTheyShare) {
  const char *text = "[train]\nclip-norm = 1\nquiet = true\nlr = 1\n";
  EXPECT_EQ(refuse(text), "r.toml:4: 'lr' is no flag of ortc train; ortc train --help lists them");
  text = "[train]\nclip-norm = 1\nquiet = true\nshape = 'a=1'\n[plan]\nclip-norm = "
         "2\n[train.binding.b]\nshape = 'a=2'\n"
         "[run]\nthreads = 3\nepochs = 2\n";
  EXPECT_EQ(read(text, "plan"), (Lines{"shape=a=1", "binding=b", "shape=a=2", "clip-norm=2"}));
  EXPECT_EQ(read(text, "check"), (Lines{"shape=a=1", "binding=b", "shape=a=2"}));
  EXPECT_EQ(read(text, "eval"), (Lines{"threads=3"}));
  EXPECT_EQ(read(text, "run"), (Lines{"threads=3", "epochs=2"}));
  EXPECT_EQ(read("[train]\nshape = 'a=1'\n[plan]\nshape = 'a=2'\n[train.binding.b]\nshape = 'a=3'", "plan"),
            (Lines{"shape=a=2"}));
}

TEST(RecipeTest, RefusesNamesWithTheNearest) {
  EXPECT_EQ(refuse("[train]\n\nlos = 'mse'"),
            "r.toml:3: 'los' is no flag of ortc train; did you mean 'loss'?");
  EXPECT_EQ(refuse("[train]\nclip_norm = 1"),
            "r.toml:2: 'clip_norm' is no flag of ortc train; did you mean 'clip-norm'?");
  EXPECT_EQ(refuse("[trian]\nloss = 'mse'"),
            "r.toml:1: 'trian' is no command that takes a recipe; did you mean 'train'?");
  EXPECT_EQ(refuse("[run]\nepoch = 1"), "r.toml:2: 'epoch' is no flag of ortc run; did you mean 'epochs'?")
      << "of another command";
  EXPECT_EQ(refuse("[help]"), "r.toml:1: 'help' is no command that takes a recipe");
  EXPECT_EQ(refuse("loss = 'mse'"),
            "r.toml:1: 'loss' stands in front of the first table; the flags of ortc train go below [train]");
  EXPECT_EQ(refuse("[train.bindings.a]\nshape = 'a=1'"),
            "r.toml:1: [train.bindings...] has no meaning; there are [train] and [train.binding.NAME]");
  EXPECT_EQ(refuse("[run.x]"), "r.toml:1: [run.x] has no meaning; there is [run]");
  EXPECT_EQ(refuse("[train]\nbinding = 'a'"),
            "r.toml:2: a binding is a table of its own: [train.binding.NAME] with a shape");
  EXPECT_EQ(refuse("[train.binding.a]\nloss = 'mse'"),
            "r.toml:2: 'loss' is no key of a binding; it has a shape");
  EXPECT_EQ(refuse("[train]\nconfig = 'a.toml'"),
            "r.toml:2: 'config' is for the command line, and has no meaning in a recipe");
}

TEST(RecipeTest, RefusesOtherTypes) {
  EXPECT_EQ(refuse("[train]\nclip-norm = '1'"),
            "r.toml:2: clip-norm is '1', a string, but it takes a number: clip-norm = 0.5");
  EXPECT_EQ(refuse("[run]\nepochs = 1.5"),
            "r.toml:2: epochs is 1.5, but it takes a whole number: epochs = 1");
  EXPECT_EQ(refuse("[train]\ngradients = 1"),
            "r.toml:2: gradients is 1, but it takes true or false: gradients = true");
  EXPECT_EQ(refuse("[train]\nloss = true"),
            "r.toml:2: loss is true, but it takes a string or a list of them: loss = \"SPEC\"");
  EXPECT_EQ(refuse("[train]\nfreeze = ['a', 1]"),
            "r.toml:2: freeze is 1, but it takes a string or a list of them: freeze = \"REGEX|@FILE\"");
  EXPECT_EQ(
      refuse("[train]\noptimizer = ['sgd']"),
      "r.toml:2: optimizer is a list, but the flag is given once; it takes a string: optimizer = \"SPEC\"");
  EXPECT_EQ(
      refuse("[train]\nmemory-budget = 1.5"),
      "r.toml:2: memory-budget is 1.5, but it takes a whole number or a string: memory-budget = \"512MiB\"");
  EXPECT_EQ(refuse("[train]\naccumulate = true"),
            "r.toml:2: accumulate is true, but it takes a whole number or a string: accumulate = 8");
  EXPECT_EQ(refuse("[train]\nloss-scale = false"),
            "r.toml:2: loss-scale is false, but it takes a number or a string: loss-scale = \"dynamic\"");
}

TEST(RecipeTest, RefusesWhatIsGivenTwice) {
  EXPECT_EQ(refuse("[train]\nseed = 1\n\nseed = 2"),
            "r.toml:4: 'seed' is given twice, first in line 2; leave one of them out");
  EXPECT_EQ(refuse("[train]\n[run]\n[train]"),
            "r.toml:3: this table is given twice, first in line 1; join them");
}

TEST(RecipeTest, RefusesOtherSyntax) {
  const std::pair<const char *, const char *> cases[] = {
      {"[train", "1: ']' is expected at the end of a table's name, but there is nothing"},
      {"[[train]]", "1: recipes have no lists of tables ([[...]])"},
      {"[train] x", "1: 'x' follows a table's name on the same line"},
      {"[train]\n= 1", "2: a key is expected, but there is '= 1'"},
      {"[train]\nseed 1", "2: '=' is expected after the key 'seed', but there is '1'"},
      {"[train]\nseed =", "2: nothing is no string in quotes, number, true, false or list of them"},
      {"[train]\nloss = mse", "2: 'mse' is no string in quotes, number, true, false or list of them"},
      {"[train]\nseed = 007", "2: '007' is no string in quotes, number, true, false or list of them"},
      {"[train]\nseed = 1_000", "2: '1_000' is no string in quotes, number, true, false or list of them"},
      {"[train]\nloss = {a = 1}", "2: '{a = 1}' is no string in quotes, number, true, false or list of them"},
      {"[train]\nloss = 'a", "2: a string has no end: ' is missing"},
      {"[train]\nloss = 'a\n'", "2: a string has no end: ' is missing"},
      {"[train]\nloss = '''a'''", "2: a string of several lines has no meaning here"},
      {"[train]\nloss = \"\\d\"",
       "2: '\\d' is no escape of TOML; a backslash is \\\\, or stands in a string between single quotes"},
      {"[train]\nloss = \"\\ud800\"", "2: an escape is no character of Unicode"},
      {"[train]\nloss = \"\\u0000\"", "2: a zero byte has no meaning in a recipe"},
      {"[train]\nloss = ''", "2: loss is empty, but it takes a string or a list of them: loss = \"SPEC\""},
      {"[train]\n[train.binding.'']", "2: a binding has an empty name; write [train.binding.NAME]"},
      {"[train]\nloss = ['a' 'b']", "2: ',' or ']' is expected in a list, but there is ''b']'"},
      {"[train]\nloss = [['a']]", "2: a list in a list has no meaning here"},
      {"[train]\nloss = 'a' 'b'", "2: ''b'' follows a value on the same line"}};
  for (auto [text, message] : cases)
    EXPECT_EQ(refuse(text), std::string("r.toml:") + message) << text;
}

TEST(RecipeTest, TheCommandLineWins) {
  TemporaryFolder folder;
  const std::string file =
      folder.write("r.toml", "[train]\noptimizer = 'adam'\nfreeze = ['a', 'b']\nclip-norm = 1\n"
                             "output = 'o'\nshape = 'x=1'\ngradients = true\n");
  auto add = [&](Lines arguments) {
    Recipe recipe;
    Status status = addRecipe(*findCommand("train"), arguments, recipe);
    EXPECT_TRUE(status.isOk()) << status.getMessage();
    return arguments;
  };
  EXPECT_EQ(add({"m.onnx", "--config", file}),
            (Lines{"--optimizer=adam", "--freeze=a", "--freeze=b", "--clip-norm=1", "--output=o",
                   "--shape=x=1", "--gradients", "m.onnx", "--config", file}));
  EXPECT_EQ(add({"--config=" + file, "-o", "p", "--freeze", "c", "--optimizer=sgd", "--binding", "b"}),
            (Lines{"--clip-norm=1", "--gradients", "--config=" + file, "-o", "p", "--freeze", "c",
                   "--optimizer=sgd", "--binding", "b"}));
  EXPECT_EQ(add({"m.onnx"}), Lines{"m.onnx"});
}

TEST(RecipeTest, FilesThatCannotBeReadAreNamed) {
  TemporaryFolder folder;
  Recipe recipe;
  auto fail = [&](const std::string &file) {
    Lines arguments{"--config", file};
    return addRecipe(*findCommand("train"), arguments, recipe);
  };
  EXPECT_EQ(fail("/no/such.toml").getMessage(),
            "--config: /no/such.toml: cannot be opened: No such file or directory");
  EXPECT_EQ(fail("/dev/null").getMessage(), "--config: /dev/null is no regular file");
  const std::string large = folder.write("large.toml", std::string((1 << 20) + 1, ' '));
  EXPECT_EQ(fail(large).getMessage(),
            "--config: " + large + " has 1048577 bytes, but a recipe has at most 1048576");
}

TEST(RecipeTest, WritesWhatItReads) {
  const std::vector<GivenFlag> given = give({{"output", "out"},
                                             {"shape", "w=1"},
                                             {"loss", "a=mse@x"},
                                             {"loss", "b=l1@y"},
                                             {"clip-norm", ".5"},
                                             {"clip-value", "2."},
                                             {"seed", "007"},
                                             {"accumulate", "4:by=tokens"},
                                             {"loss-scale", "1e3"},
                                             {"memory-budget", "065536"},
                                             {"gradients", ""},
                                             {"freeze", "a\\.b\"c"},
                                             {"freeze", "it's\\"},
                                             {"binding", "one two"},
                                             {"shape", "batch=1"},
                                             {"shape", "seq=2"},
                                             {"binding", "b"},
                                             {"config", "r.toml"},
                                             {"write-config", "w.toml"}});
  const std::string text = formatRecipe(*findCommand("train"), given);
  EXPECT_EQ(text, "[train]\n"
                  "output = \"out\"\n"
                  "shape = \"w=1\"\n"
                  "loss = [\n  \"a=mse@x\",\n  \"b=l1@y\",\n]\n"
                  "freeze = [\n  'a\\.b\"c',\n  \"it's\\\\\",\n]\n"
                  "seed = 7\n"
                  "clip-norm = 0.5\n"
                  "clip-value = 2.0\n"
                  "accumulate = \"4:by=tokens\"\n"
                  "loss-scale = 1e3\n"
                  "gradients = true\n"
                  "memory-budget = \"065536\"\n" // strings are kept as they are
                  "\n[train.binding.\"one two\"]\n"
                  "shape = [\n  \"batch=1\",\n  \"seq=2\",\n]\n"
                  "\n[train.binding.b]\n");
  Expected<Recipe> again = parseRecipe(text, "r.toml", *findCommand("train"));
  ASSERT_TRUE(bool(again)) << again.getStatus().getMessage();
  EXPECT_EQ(formatRecipe(*findCommand("train"), again->flags), text);
}

/// The words of a line of a shell, without its quotes.
static Lines splitWords(const std::string &line) {
  Lines words;
  bool isWord = false;
  char quote = 0;
  for (char letter : line) {
    if (quote ? letter == quote : letter == '\'' || letter == '"') {
      quote = quote ? 0 : letter;
    } else if (!quote && letter == ' ') {
      isWord = false;
    } else {
      if (!isWord)
        words.emplace_back();
      isWord = true;
      words.back() += letter;
    }
  }
  return words;
}

TEST(RecipeTest, HoldsTheCommandsOfTheExamples) {
  const CommandRow &train = *findCommand("train");
  size_t count = 0;
  for (const auto &file : std::filesystem::recursive_directory_iterator(ORTC_DOCS "/examples/recipes")) {
    std::istringstream stream(file.is_regular_file() ? engine::test::readFile(file.path()) : "");
    for (std::string line; std::getline(stream, line);) {
      if (!line.starts_with("ortc train "))
        continue;
      const Lines words = splitWords(line);
      std::map<std::string, Lines> wanted, found;
      std::vector<GivenFlag> given;
      for (size_t i = 3; i < words.size(); ++i) {
        const std::string name = words[i] == "-o" ? "output" : words[i].substr(2);
        const FlagRow *row = train.find(name);
        ASSERT_TRUE(row) << line;
        given.push_back({row, row->type == FlagType::Switch ? "" : words[++i]});
        wanted[name].push_back(given.back().value);
      }
      Expected<Recipe> recipe = parseRecipe(formatRecipe(train, given), "r.toml", train);
      ASSERT_TRUE(bool(recipe)) << recipe.getStatus().getMessage();
      for (const GivenFlag &flag : recipe->flags)
        found[flag.row->name].push_back(flag.value);
      EXPECT_EQ(found, wanted) << line;
      ++count;
    }
  }
  EXPECT_GE(count, 5u);
}

TEST(TomlTest, NumbersAreThoseOfTheStandard) {
  for (const char *text : {"0", "-0", "+1", "42"})
    EXPECT_TRUE(isTomlInteger(text)) << text;
  for (const char *text : {"", "-", "01", "1.0", "1e3", "a", "1 "})
    EXPECT_FALSE(isTomlInteger(text)) << text;
  for (const char *text : {"0", "1.5", "-0.1e-3", "1e+3", "1E3"})
    EXPECT_TRUE(isTomlFloat(text)) << text;
  for (const char *text : {".5", "1.", "1.e3", "1e", "01.5", "nan", "inf", "1e3.5"})
    EXPECT_FALSE(isTomlFloat(text)) << text;
}

TEST(TomlTest, StringsReadBack) {
  for (const std::string text : {"plain", "a\"b", "a\\b", "a'b\\", "tab\tline\n", "\x7f\x01", ""}) {
    Expected<TomlFile> file = parseToml("x = " + formatTomlString(text));
    ASSERT_TRUE(bool(file)) << text;
    EXPECT_EQ(file->entries.front().value.text, text);
  }
  EXPECT_EQ(formatTomlKey("a-b_1"), "a-b_1");
  EXPECT_EQ(formatTomlKey("a.b"), "\"a.b\"");
  EXPECT_EQ(formatTomlKey(""), "\"\"");
}
