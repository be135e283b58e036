// What a walk may spend before there is a program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models of a few nodes, or of many small ones, that ask for more work or memory at compile time than any
// program is worth. What they need is refused before it is made, or left to the program; what is within the
// budget costs linear time.
#include "compiler/legalize/Legalize.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/onnx/OnnxDialect.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <sys/resource.h>

using namespace mlir;
using namespace ortc;
using namespace ortc::legalize;

namespace {

/// Legalises the graph; the message with which it is refused, or "".
class BudgetTest : public testing::Test {
protected:
  std::string legalizeText(const std::string &text) {
    context.loadDialect<onnx::OnnxDialect>();
    source = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    if (!source)
      return "no IR: " + text;
    target = ModuleOp::create(UnknownLoc::get(&context));
    report = LegalizeReport();
    std::clock_t begun = std::clock(); // of the processor: other programs that run meanwhile do not count
    bool isDone = succeeded(ortc::legalize::legalize(*source, *target, {}, report));
    seconds = double(std::clock() - begun) / CLOCKS_PER_SEC;
    return isDone ? "" : report.message();
  }

  /// Legalises `text(n)` and `text(4 * n)`, which must take about four times as long. What is below `kFloor` is noise.
  /// On a busy machine a measurement may be off, so it has three tries: what takes quadratic time, sixteen times as
  /// long, fails them all if the larger takes 1.6 s or more.
  template <typename Text> void expectLinear(Text text, int n, const std::string &message = "") {
    constexpr double kFloor = 0.2;
    constexpr int kTries = 3;
    double small = 0, most = 0;
    for (int i = 0; i < kTries && (i == 0 || seconds >= most); ++i) {
      ASSERT_EQ(legalizeText(text(n)), message);
      small = seconds;
      most = 8 * std::max(small, kFloor);
      ASSERT_EQ(legalizeText(text(4 * n)), message);
    }
    EXPECT_LT(seconds, most) << n << " take " << small << " s";
  }

  bool isTrained(const std::string &name) {
    return llvm::any_of(report.initializers,
                        [&](const InitializerReport &each) { return each.name == name && each.trained(); });
  }

  template <typename Op> int64_t count() {
    int64_t found = 0;
    target->walk([&](Op) { ++found; });
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> source, target;
  LegalizeReport report;
  double seconds = 0;
};

/// The most memory that this process has held so far.
int64_t peakKilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// A graph with the input %x (tensor<2x2xf32>) that gives %y.
std::string graph(const std::string &nodes, const std::string &input = "tensor<2x2xf32>") {
  return "onnx.graph \"g\" [\"x\"] [[]] -> [\"y\"] [!onnx.any] [[]] {\n^bb0(%x: " + input +
         "):\n  %none = onnx.none\n" + nodes + "  onnx.return %y : !onnx.any\n}\n";
}

std::string initializer(const std::string &name, const std::string &value, const std::string &type) {
  return "  %" + name + " = onnx.initializer \"" + name + "\" dense<" + value + "> : " + type + "\n";
}

/// `%result = op(operands)`; the types of operands are any.
std::string node(const std::string &result, const std::string &op, int since,
                 const std::vector<std::string> &operands, const std::string &types,
                 const std::string &attributes = "") {
  std::string names;
  for (const std::string &operand : operands)
    names += (names.empty() ? "%" : ", %") + operand;
  return "  %" + result + " = onnx.node \"" + op + "\" since " + std::to_string(since) + " (" + names +
         ") {" + attributes + "} -> [\"" + result + "\"] : (" + types + ") -> !onnx.any\n";
}

const std::string kRange =
    initializer("start", "0.0", "tensor<f32>") + initializer("step", "1.0", "tensor<f32>");

std::string range(const std::string &result, const std::string &limit) {
  return node(result, "Range", 11, {"start", limit, "step"}, "tensor<f32>, tensor<f32>, tensor<f32>");
}

// Two ranges of 2^24 numbers are within what all nodes together may list, three are not.
TEST_F(BudgetTest, NumbersOfAllNodesAreCounted) {
  std::string text =
      kRange + initializer("limit", "16777216.0", "tensor<f32>") + range("a", "limit") + range("b", "limit");
  std::string sum = node("c", "Add", 14, {"a", "b"}, "!onnx.any, !onnx.any");
  EXPECT_EQ(legalizeText(graph(text + sum + node("y", "Neg", 13, {"c"}, "!onnx.any"))), "");
  EXPECT_LT(seconds, 30);
  EXPECT_NE(legalizeText(graph(text + sum + range("d", "limit") +
                               node("y", "Add", 14, {"c", "d"}, "!onnx.any, !onnx.any")))
                .find("Range (since opset 11) 'd': it needs 16777216 numbers at compile time; a model may "
                      "need 41943040, of which "
                      "8388608 are left: make it smaller, or compute its result outside the model and feed "
                      "it as an input"),
            std::string::npos);
}

// Each node that needs an initializer to be constant is found in the same walk.
TEST_F(BudgetTest, ConstantInitializersTakeOneMoreWalk) {
  std::string text, sum, types;
  constexpr int kNodes = 4000;
  for (int i = 0; i < kNodes; ++i) {
    std::string number = std::to_string(i);
    text += initializer("scales" + number, "[1.0, 2.0]", "tensor<2xf32>");
    text += node("r" + number, "Resize", 19, {"x", "none", "scales" + number},
                 "tensor<2x2xf32>, none, tensor<2xf32>");
    sum += (sum.empty() ? "%r" : ", %r") + number;
    types += types.empty() ? "!onnx.any" : ", !onnx.any";
  }
  text += "  %y = onnx.node \"Sum\" since 13 (" + sum + ") {} -> [\"y\"] : (" + types + ") -> !onnx.any\n";
  EXPECT_EQ(legalizeText(graph(text)), "");
  EXPECT_LT(seconds, 30);
}

// 2,000 sums over 2^18 numbers look at 2^30: the first ones are computed, the rest is left to the program.
TEST_F(BudgetTest, FoldingEnds) {
  std::string text = kRange + initializer("limit", "262144.0", "tensor<f32>") +
                     initializer("axis", "0", "tensor<i64>") + range("t0", "limit");
  constexpr int kNodes = 2000;
  for (int i = 0; i < kNodes; ++i)
    text += node(i + 1 == kNodes ? "y" : "t" + std::to_string(i + 1), "CumSum", 14,
                 {"t" + std::to_string(i), "axis"}, "!onnx.any, tensor<i64>");
  EXPECT_EQ(legalizeText(graph(text)), "");
  EXPECT_LT(seconds, 30);
  EXPECT_GT(count<nn::CumSumOp>(), 1000);
  EXPECT_LT(count<nn::CumSumOp>(), 1990);
}

// Arithmetic on shapes is computed however much has been spent: chains of ever smaller tensors leave nothing
// that could be.
TEST_F(BudgetTest, ShapesAreKnownWhenFoldingHasEnded) {
  std::string text =
      kRange + initializer("axis", "0", "tensor<i64>") +
      initializer("sizes", "[1024, 256]", "tensor<2xi64>") + initializer("two", "[2, 2]", "tensor<2xi64>") +
      initializer("four", "[4]", "tensor<1xi64>") + initializer("flat", "[-1]", "tensor<1xi64>");
  std::vector<std::string> parts;
  std::string types;
  for (int size : {262144, 4096, 512, 64, 8, 2}) {
    std::string name = "r" + std::to_string(size), last = name;
    text +=
        initializer("limit" + name, std::to_string(size) + ".0", "tensor<f32>") + range(name, "limit" + name);
    for (int i = 0; i < 150; ++i) {
      std::string next = name + "_" + std::to_string(i);
      text += node(next, "CumSum", 14, {last, "axis"}, "!onnx.any, tensor<i64>");
      last = next;
    }
    parts.push_back(last);
    types += types.empty() ? "!onnx.any" : ", !onnx.any";
  }
  text += node("matrix", "Reshape", 19, {parts[0], "sizes"}, "!onnx.any, tensor<2xi64>") +
          node("s", "Shape", 19, {"matrix"}, "!onnx.any") +
          node("half", "Div", 14, {"s", "two"}, "!onnx.any, tensor<2xi64>") +
          node("shape", "Concat", 13, {"half", "four"}, "!onnx.any, tensor<1xi64>", "axis = 0 : i64") +
          node("cube", "Reshape", 19, {"matrix", "shape"}, "!onnx.any, !onnx.any") +
          node("vector", "Reshape", 19, {"cube", "flat"}, "!onnx.any, tensor<1xi64>");
  parts[0] = "vector";
  text += node("y", "Concat", 13, parts, types, "axis = 0 : i64");
  EXPECT_EQ(legalizeText(graph(text)), "");
  EXPECT_GT(count<nn::CumSumOp>(), 0);
}

TEST_F(BudgetTest, ItemsOfSequencesAreCounted) {
  std::string text = node("s", "SplitToSequence", 11, {"x"}, "tensor<1073741824x2xf32>") +
                     node("y", "SequenceLength", 11, {"s"}, "!onnx.any");
  EXPECT_NE(legalizeText(graph(text, "tensor<1073741824x2xf32>"))
                .find("SplitToSequence (since opset 11) 's': it comes to 1073741824 nodes; bodies of loops "
                      "that are taken apart and items of sequences may come to 20000"),
            std::string::npos);
}

// Each insertion copies a sequence.
TEST_F(BudgetTest, CopiesOfSequencesAreCounted) {
  std::string text = node("s0", "SplitToSequence", 11, {"x"}, "tensor<15000x2xf32>");
  for (int i = 0; i < 1000; ++i)
    text += node("s" + std::to_string(i + 1), "SequenceErase", 11, {"s" + std::to_string(i)}, "!onnx.any");
  text += node("y", "SequenceLength", 11, {"s1000"}, "!onnx.any");
  EXPECT_NE(legalizeText(graph(text, "tensor<15000x2xf32>")).find("SequenceErase (since opset 11)"),
            std::string::npos);
  EXPECT_LT(seconds, 30);
}

// Nodes that pass on a sequence share it.
TEST_F(BudgetTest, SequencesAreNotCopiedWithoutNeed) {
  std::string text = node("s0", "SplitToSequence", 11, {"x"}, "tensor<15000x2xf32>");
  for (int i = 0; i < 10000; ++i)
    text += node("s" + std::to_string(i + 1), "Identity", 19, {"s" + std::to_string(i)}, "!onnx.any");
  text += node("y", "SequenceLength", 11, {"s10000"}, "!onnx.any");
  int64_t before = peakKilobytes();
  EXPECT_EQ(legalizeText(graph(text, "tensor<15000x2xf32>")), "");
  EXPECT_LT(peakKilobytes() - before, 1 << 20);
  EXPECT_LT(seconds, 30);
}

// A map with many results makes as many sequences.
TEST_F(BudgetTest, SequencesOfAMapAreCounted) {
  constexpr int kResults = 2000;
  std::string results, names, types, values;
  for (int i = 0; i < kResults; ++i) {
    const char *comma = i ? ", " : "";
    results += comma + ("%r" + std::to_string(i));
    names += comma + ("\"r" + std::to_string(i) + "\"");
    types += comma + std::string("!onnx.any");
    values += comma + std::string("%u");
  }
  std::string nothing;
  for (int i = 0; i < kResults; ++i)
    nothing += i ? ", []" : "[]";
  std::string text = node("s", "SplitToSequence", 11, {"x"}, "tensor<6000x2xf32>") + "  " + results +
                     " = onnx.node \"SequenceMap\" since 17 (%s) {} -> [" + names +
                     "] graphs [\"body\"] {\n    onnx.graph \"b\" [\"t\"] [[]] -> [" + names + "] [" + types +
                     "] [" + nothing + "] {\n    ^bb0(%t: !onnx.any):\n" +
                     node("u", "Neg", 13, {"t"}, "!onnx.any") + "    onnx.return " + values + " : " + types +
                     "\n    }\n  } : (!onnx.any) -> (" + types + ")\n" +
                     node("y", "SequenceLength", 11, {"r0"}, "!onnx.any");
  EXPECT_NE(legalizeText(graph(text, "tensor<6000x2xf32>"))
                .find("SequenceMap (since opset 17) 'r0': it needs 48000000 numbers at compile time"),
            std::string::npos)
      << report.message();
}

/// y = x + b0 + b1 + ...
std::string manyBiases(int count) {
  std::string text, last = "x", type = "tensor<2x2xf32>";
  for (int i = 0; i < count; ++i) {
    std::string bias = "b" + std::to_string(i), next = i + 1 == count ? "y" : "h" + std::to_string(i);
    text += initializer(bias, "[1.0, 2.0]", "tensor<2xf32>") +
            node(next, "Add", 14, {last, bias}, type + ", tensor<2xf32>");
    last = next;
    type = "!onnx.any";
  }
  return graph(text);
}

TEST_F(BudgetTest, ParametersTakeLinearTime) { expectLinear(manyBiases, 8000); }

TEST_F(BudgetTest, RunningStatisticsTakeLinearTime) {
  expectLinear(
      [](int count) {
        std::string text, last = "x", type = "tensor<2x2xf32>", channels = "tensor<2xf32>";
        for (int i = 0; i < count; ++i) {
          std::string number = std::to_string(i), next = i + 1 == count ? "y" : "h" + number;
          std::vector<std::string> operands = {last};
          for (const char *kind : {"scale", "bias", "mean", "var"}) {
            operands.push_back(kind + number);
            text += initializer(operands.back(), "[1.0, 2.0]", channels);
          }
          text += node(next, "BatchNormalization", 15, operands,
                       type + ", " + channels + ", " + channels + ", " + channels + ", " + channels,
                       "training_mode = 1 : i64");
          last = next;
          type = "!onnx.any";
        }
        return graph(text);
      },
      2000);
}

// The layers of a model that share their statistics.
TEST_F(BudgetTest, SharedStatisticsTakeLinearTime) {
  expectLinear(
      [](int count) {
        std::string text, last = "x", type = "tensor<2x2xf32>", channels = "tensor<2xf32>";
        for (const char *kind : {"scale", "bias", "mean", "var"})
          text += initializer(kind, "[1.0, 2.0]", channels);
        for (int i = 0; i < count; ++i) {
          std::string next = i + 1 == count ? "y" : "h" + std::to_string(i);
          text += node(next, "BatchNormalization", 15, {last, "scale", "bias", "mean", "var"},
                       type + ", " + channels + ", " + channels + ", " + channels + ", " + channels,
                       "training_mode = 1 : i64");
          last = next;
          type = "!onnx.any";
        }
        return graph(text);
      },
      4000);
}

/// A chain of nodes, and an output of each that no program can have.
std::string manyUnsupported(int count) {
  std::string names = "\"y\"", types = "!onnx.any", dims = "[]", values = "%y", text, last = "x",
              type = "tensor<2x2xf32>";
  for (int i = 0; i < count; ++i) {
    std::string number = std::to_string(i), next = i + 1 == count ? "y" : "h" + number;
    text += node(next, "Neg", 13, {last}, type);
    text += "  %o" + number + " = onnx.node \"Nope\" of \"custom\" since 0 (%" + next + ") {} -> [\"o" +
            number + "\"] : (!onnx.any) -> !onnx.any\n";
    names += ", \"o" + number + "\"";
    types += ", !onnx.any";
    dims += ", []";
    values += ", %o" + number;
    last = next;
    type = "!onnx.any";
  }
  return "onnx.graph \"g\" [\"x\"] [[]] -> [" + names + "] [" + types + "] [" + dims +
         "] {\n^bb0(%x: tensor<2x2xf32>):\n" + text + "  onnx.return " + values + " : " + types + "\n}\n";
}

TEST_F(BudgetTest, OutputsAreLeftOutInLinearTime) {
  expectLinear(manyUnsupported, 4000);
  ASSERT_EQ(report.dropped.size(), 16000u);
  for (int i : {0, 15999}) {
    std::string name = "o" + std::to_string(i);
    EXPECT_EQ(report.dropped[i].name, name);
    EXPECT_EQ(report.dropped[i].reason,
              "custom.Nope '" + name +
                  "': no such operator in the standard, and no model-local function "
                  "of that name");
  }
}

/// `count` views of the initializer c, one of the other, of which the last is a bound.
std::string boundBehindViews(int count) {
  std::string text = initializer("c", "0.5", "tensor<f32>"), last = "c", type = "tensor<f32>";
  for (int i = 0; i < count; ++i) {
    text += node("c" + std::to_string(i), "Identity", 16, {last}, type);
    last = "c" + std::to_string(i);
    type = "!onnx.any";
  }
  return graph(text + node("y", "Max", 13, {"x", last}, "tensor<2x2xf32>, " + type));
}

// What a search does not reach is no constant of a formula.
TEST_F(BudgetTest, SearchesForFormulasEnd) {
  EXPECT_EQ(legalizeText(boundBehindViews(60)), "");
  EXPECT_FALSE(isTrained("c"));
  EXPECT_EQ(legalizeText(boundBehindViews(100)), "");
  EXPECT_TRUE(isTrained("c"));
  expectLinear(boundBehindViews, 8000);
}

// Numbers are added to what lies behind as many views.
TEST_F(BudgetTest, ViewsBeforeSumsTakeLinearTime) {
  expectLinear(
      [](int count) {
        std::string text, last = "x", type = "tensor<2x2xf32>";
        for (int i = 0; i < count; ++i) {
          text += node("v" + std::to_string(i), "Identity", 16, {last}, type);
          last = "v" + std::to_string(i);
          type = "!onnx.any";
        }
        std::string sums, types;
        for (int i = 0; i < count; ++i) {
          std::string number = std::to_string(i);
          text += initializer("c" + number, "0.0001", "tensor<f32>") +
                  node("s" + number, "Add", 14, {last, "c" + number}, "!onnx.any, tensor<f32>");
          sums += (i ? ", %s" : "%s") + number;
          types += i ? ", !onnx.any" : "!onnx.any";
        }
        return graph(text + "  %y = onnx.node \"Sum\" since 13 (" + sums + ") {} -> [\"y\"] : (" + types +
                     ") -> !onnx.any\n");
      },
      2000);
}

// All numbers of one sum, whose result many nodes read.
TEST_F(BudgetTest, SumsOfNumbersTakeLinearTime) {
  expectLinear(
      [](int count) {
        std::string text, numbers, numberTypes, results, resultTypes;
        for (int i = 0; i < count; ++i) {
          text += initializer("c" + std::to_string(i), "0.0001", "tensor<f32>");
          numbers += ", %c" + std::to_string(i);
          numberTypes += ", tensor<f32>";
        }
        text += "  %s = onnx.node \"Sum\" since 13 (%x" + numbers + ") {} -> [\"s\"] : (tensor<2x2xf32>" +
                numberTypes + ") -> !onnx.any\n";
        for (int i = 0; i < count; ++i) {
          text += node("r" + std::to_string(i), "Neg", 13, {"s"}, "!onnx.any");
          results += (i ? ", %r" : "%r") + std::to_string(i);
          resultTypes += i ? ", !onnx.any" : "!onnx.any";
        }
        return graph(text + "  %y = onnx.node \"Sum\" since 13 (" + results + ") {} -> [\"y\"] : (" +
                     resultTypes + ") -> !onnx.any\n");
      },
      2000);
}

// The elements of a tensor are compared once, however many values it is added to.
TEST_F(BudgetTest, ElementsAreComparedOnce) {
  auto take = [&](int width) {
    std::string shape = "tensor<" + std::to_string(width) + "xf32>";
    // Where the elements of an attribute lie is in the file of the model, or in a resource like this one,
    // aligned to 4 bytes.
    std::string resource =
        "{-# dialect_resources: { builtin: { z: \"0x04000000" + std::string(8 * width, '0') + "\" } } #-}\n";
    std::string text = "  %z = onnx.initializer \"z\" dense_resource<z> : " + shape + "\n", last = "x",
                type = "tensor<1x1xf32>";
    for (int i = 0; i < 8000; ++i) {
      std::string number = std::to_string(i), next = i + 1 == 8000 ? "y" : "h" + number;
      text += initializer("v" + number, "[2.0]", "tensor<1xf32>") +
              node("s" + number, "Add", 14, {"v" + number, "z"}, "tensor<1xf32>, " + shape) +
              node(next, "Mul", 14, {last, "s" + number}, type + ", !onnx.any");
      last = next;
      type = "!onnx.any";
    }
    EXPECT_EQ(legalizeText(graph(text, "tensor<1x1xf32>") + resource), "");
    return seconds;
  };
  double narrow = take(2);
  EXPECT_LT(take(1 << 22), 4 * std::max(narrow, 0.3)) << narrow;
}

} // namespace
