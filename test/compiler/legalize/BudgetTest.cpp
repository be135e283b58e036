//===- BudgetTest.cpp - what a walk may spend before there is a program ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models of a few nodes, or of many small ones, that ask for more work or memory at compile time than any program is worth.
// What they need is refused before it is made, or left to the program; what is within the budget costs linear time.
#include "compiler/legalize/Legalize.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/onnx/OnnxDialect.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <chrono>

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
    LegalizeReport report;
    auto begun = std::chrono::steady_clock::now();
    bool isDone = succeeded(ortc::legalize::legalize(*source, *target, {}, report));
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    return isDone ? "" : report.message();
  }

  template <typename Op> int64_t count() {
    int64_t found = 0;
    target->walk([&](Op) { ++found; });
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> source, target;
  double seconds = 0;
};

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

// Arithmetic on shapes is computed however much has been spent: chains of ever smaller tensors leave nothing that could be.
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

} // namespace
