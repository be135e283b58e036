// `ortc flags`, and help of the program: what it says is what it takes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "test/tools/Process.h"
#include "tools/ortc/flags/Flags.h"

using namespace ortc::test;
using Json = nlohmann::json;

namespace {

Ended run(const Arguments &arguments) { return Process(ORTC_TOOL, arguments).wait(); }

Json listFlags() {
  const Ended ended = run({"flags", "--json"});
  EXPECT_EQ(ended.status, 0) << ended.text;
  return Json::parse(ended.text);
}

} // namespace

TEST(FlagsToolTest, TheProgramTakesEveryFlagOfTheTable) {
  size_t count = 0;
  const Json table = listFlags();
  for (const Json &command : table["commands"])
    for (const Json &flag : command["flags"]) {
      const std::string name = "--" + flag["name"].get<std::string>();
      Arguments arguments{command["name"], name};
      if (flag["type"] != "switch")
        arguments.back() += "=?";
      arguments.push_back("--frobnicate");
      const Ended ended = run(arguments);
      EXPECT_NE(ended.status, 0) << command["name"] << " " << name;
      EXPECT_EQ(ended.text.find("unknown flag '" + name + "'"), std::string::npos)
          << command["name"] << ": " << ended.text;
      ++count;
    }
  EXPECT_GT(count, 200u);
}

TEST(FlagsToolTest, HelpIsShort) {
  const Json table = listFlags();
  for (const Json &command : table["commands"]) {
    const std::string name = command["name"];
    const Ended ended = run({name, "--help"});
    EXPECT_EQ(ended.status, 0) << name;
    EXPECT_EQ(run({"help", name}).text, ended.text);
    std::istringstream lines(ended.text);
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count)
      EXPECT_LE(line.size(), 100u) << name << ": " << line;
    EXPECT_LE(count, 70u) << name;
  }
}

TEST(FlagsToolTest, HelpOfAFlagHasTheTablesOfTheCompiler) {
  const std::string losses = run({"train", "--help-loss"}).text,
                    optimizers = run({"train", "--help-optimizer"}).text;
  EXPECT_NE(losses.find("\n  cross_entropy (default)\n"), std::string::npos) << losses;
  EXPECT_NE(losses.find("\n        label_smoothing=0: "), std::string::npos) << losses;
  EXPECT_NE(optimizers.find("\n  sgd (default)\n"), std::string::npos) << optimizers;
  EXPECT_NE(optimizers.find("\n  adamw\n"), std::string::npos) << optimizers;
  EXPECT_EQ(run({"help", "train", "optimizer"}).text, optimizers);
  EXPECT_EQ(run({"help", "train", "--optimizer"}).text, optimizers);
  EXPECT_NE(run({"run", "--help-lr-schedule"}).text.find("\n  cosine\n"), std::string::npos);
  EXPECT_NE(run({"run", "--help-metric"}).text.find("\n  topk\n"), std::string::npos);
  EXPECT_NE(run({"train", "--help-all"}).text.find("\n  --dump-ir DIR"), std::string::npos);
  const Ended unknown = run({"train", "--help-los"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.text, "ortc: error: unknown flag '--los'; did you mean '--loss'?\n");
}

/// That of main.cpp; help, pages and completions of a shell have it from there.
TEST(FlagsToolTest, TheTableHasTheOrderOfHelp) {
  std::vector<std::string> shown, table;
  const Json help = listFlags();
  for (const Json &command : help["commands"])
    shown.push_back(command["name"]);
  for (const ortc::tool::CommandRow &command : ortc::tool::listCommands())
    table.emplace_back(command.name);
  EXPECT_EQ(shown, table);
}

/// CLI11 would take the next argument for a value, and drop what it has no place for.
TEST(FlagsToolTest, EveryArgumentIsTakenOrRefused) {
  const std::pair<Arguments, const char *> cases[] = {
      {{"train", "m.onnx", "-o", "x", "--report=", "--quiet"}, "--report needs a value"},
      {{"ops", "--", "--foo"},
       "unexpected argument '--foo'; flags stand after the command; ortc ops --help lists what there is"},
      {{"help", "train", "loss", "extra"},
       "unexpected argument 'extra'; ortc help takes a command and a flag"},
      {{"eval", "artifact", "--data", "a.npz", "b.npz"},
       "unexpected argument 'b.npz': --data takes one value; quotes keep a shell from making several of a "
       "pattern: --data '*.npz'"},
      {{"eval", "artifact", "--data=a.npz", "b.npz"},
       "unexpected argument 'b.npz'; ortc eval --help lists what there is"},
      {{"eval", "artifact", "--quiet", "b.npz"},
       "unexpected argument 'b.npz'; ortc eval --help lists what there is"},
      {{"--quiet", "ops"},
       "unexpected argument '--quiet'; flags stand after the command; ortc ops --help lists what there is"}};
  for (const auto &[arguments, message] : cases) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.status, 2);
    EXPECT_EQ(ended.text, std::string("ortc: error: ") + message + "\n");
  }
}

TEST(FlagsToolTest, WordsAreThoseOfTheCompiler) {
  const Json table = listFlags();
  for (const Json &command : table["commands"])
    for (const Json &flag : command["flags"])
      if (command["name"] == "train" && (flag["name"] == "loss" || flag["name"] == "optimizer")) {
        EXPECT_GE(flag["words"].size(), 15u) << flag;
        EXPECT_EQ(flag.value("repeats", false), flag["name"] == "loss");
      }
  EXPECT_EQ(run({"flags", "train", "clip-norm"}).text,
            "ortc: error: --clip-norm has no table of words; ortc help train clip-norm explains it\n");
  EXPECT_EQ(run({"flags", "trian"}).text, "ortc: error: unknown command 'trian'; did you mean 'train'?\n");
  EXPECT_EQ(run({"flags", "--json", "--man"}).text,
            "ortc: error: --json, --markdown and --man exclude each other; choose one\n");
  EXPECT_EQ(run({"flags", "train", "loss", "--json"}).text,
            "ortc: error: --json has all flags of a command; leave loss out\n");
  EXPECT_EQ(run({"flags", "train", "loss", "--markdown"}).text, run({"flags", "train", "loss"}).text);
  EXPECT_NE(run({"flags"}).text.find("\ntrain --clip-norm X: Clip the norm of all gradients together\n"),
            std::string::npos);
}

TEST(FlagsToolTest, ChoicesAreWhatTheCompilerTakes) {
  const Json table = listFlags();
  for (const Json &command : table["commands"])
    for (const Json &flag : command["flags"])
      if (command["name"] == "train" && flag["type"] == "choice" && flag["name"] != "compile-to")
        for (const Json &word : flag["words"]) {
          const std::string given = "--" + flag["name"].get<std::string>() + "=" + word.get<std::string>();
          const Ended ended = run({"train", "/no/such.onnx", "-o", "/no/such", given});
          EXPECT_EQ(ended.text.find("'" + word.get<std::string>() + "'"), std::string::npos)
              << given << ": " << ended.text;
        }
}
