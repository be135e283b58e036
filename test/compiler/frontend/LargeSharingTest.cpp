//===- LargeSharingTest.cpp - shared initializers of large models ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/frontend/SharedInitializersFixture.h"

#include <sys/resource.h>

#include <ctime>

using namespace ortc;
using namespace ortc::frontend;
using namespace ortc::frontend::test;

namespace {

using LargeSharingTest = SharedInitializersTest;

/// How much time of the processor, and how much more memory, `work` takes.
struct Cost {
  double seconds, mebibytes;
};
template <typename Work> Cost measure(Work work) {
  auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024; // KiB
  };
  double before = peak();
  std::clock_t start = std::clock();
  work();
  return {static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, peak() - before};
}

/// What is linear takes a tenth of it, or less.
constexpr double kMostSeconds = 8;

TEST_F(LargeSharingTest, EqualTensorsOfManyModulesTakeLinearTime) {
  std::string value = "x";
  for (int i = 0; i < 10000; ++i) {
    std::string number = std::to_string(i), next = i == 9999 ? "y" : "h" + number;
    addValues("onnx::Add_" + number, {3}, {0, 0, 0});
    addNode(graph, "Add", {value, "onnx::Add_" + number}, {next}, "/l." + number + "/Add");
    value = next;
  }
  EXPECT_LT(measure([&] { ASSERT_EQ(resolve(), ""); }).seconds, kMostSeconds);
  EXPECT_EQ(model->getProto().graph().initializer_size(), 10000);
}

TEST_F(LargeSharingTest, ManyCopiesTakeLinearTime) {
  std::string value = "x";
  for (int i = 0; i < 40000; ++i) {
    std::string number = std::to_string(i), next = i == 39999 ? "y" : "h" + number;
    addValues("val_" + number, {3, 3}, randomValues(9, static_cast<unsigned>(i / 2)));
    addNode(graph, "MatMul", {value, "val_" + number}, {next}, "m" + number);
    value = next;
  }
  EXPECT_LT(measure([&] { ASSERT_EQ(resolve(), ""); }).seconds, kMostSeconds);
  EXPECT_EQ(model->getProto().graph().initializer_size(), 20000);
}

TEST_F(LargeSharingTest, ManyNormsTakeLinearTime) {
  addValues("val_0", {3}, {0, 0, 0});
  std::string value = "x";
  for (int i = 0; i < 60000; ++i) {
    std::string number = std::to_string(i), next = i == 59999 ? "y" : "h" + number;
    addValues("onnx::I_" + number, {3}, {1, 1, 1});
    addNode(graph, "InstanceNormalization", {value, "onnx::I_" + number, "val_0"}, {next}, "n" + number);
    value = next;
  }
  EXPECT_LT(measure([&] { ASSERT_EQ(resolve(), ""); }).seconds, kMostSeconds);
  EXPECT_EQ(listConstants(*model).size(), 60001u);
}

TEST_F(LargeSharingTest, ManyEmbeddingsTakeLinearTime) {
  addInitializer(graph, "rows", {2})->set_raw_data(std::string(16, '\0'));
  graph->mutable_initializer(0)->set_data_type(proto::TensorProto::INT64);
  auto *sum = graph->add_node();
  sum->set_op_type("Sum");
  sum->add_output("y");
  for (int i = 0; i < 6000; ++i) { // the last one is a copy
    std::string number = std::to_string(i);
    addValues("table." + number, {3, 3}, randomValues(9, static_cast<unsigned>(i == 5999 ? 17 : i)));
    addNode(graph, "Gather", {"table." + number, "rows"}, {"g" + number}, "gather" + number);
    sum->add_input("g" + number);
  }
  EXPECT_LT(measure([&] { ASSERT_EQ(resolve(), ""); }).seconds, kMostSeconds);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0],
            "'table.5999' is a copy of 'table.17', an embedding; they are trained apart. If the model "
            "ties them: --tie table.5999=table.17");
}

TEST_F(LargeSharingTest, ModulesOfDeepNamesTakeLinearMemory) {
  std::string path, value = "x";
  for (int i = 0; i < 1800; ++i)
    path += ".m";
  for (int i = 0; i < 300; ++i) {
    std::string number = std::to_string(i), name = "l" + number + path + ".weight",
                next = i == 299 ? "y" : "h" + number;
    addInitializer(graph, name, {3});
    addNode(graph, "Add", {value, name}, {next}, "/l" + number + path + "/Add");
    value = next;
  }
  Cost cost = measure([&] { ASSERT_EQ(resolve(), ""); });
  EXPECT_LT(cost.mebibytes, 300);
  EXPECT_LT(cost.seconds, kMostSeconds);
}

TEST_F(LargeSharingTest, ViewsThatManyNormsReadTakeLinearTime) {
  addValues("val_1", {3}, {1, 1, 1});
  addValues("val_0", {3}, {0, 0, 0});
  std::string scale = "val_1", value = "x";
  for (int i = 0; i < 10000; ++i) {
    std::string next = "view" + std::to_string(i);
    addNode(graph, "Cast", {scale}, {next}, next);
    addAttribute(graph->mutable_node(i), "to", proto::AttributeProto::INT)->set_i(proto::TensorProto::FLOAT);
    scale = next;
  }
  for (int i = 0; i < 10000; ++i) {
    std::string number = std::to_string(i), next = i == 9999 ? "y" : "h" + number;
    addNode(graph, "InstanceNormalization", {value, scale, "val_0"}, {next}, "n" + number);
    value = next;
  }
  EXPECT_LT(measure([&] { ASSERT_EQ(resolve(), ""); }).seconds, kMostSeconds);
  EXPECT_EQ(listConstants(*model), (std::set<std::string>{"val_0", "val_1"}));
}

} // namespace
