// Shared initializers of large models.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/frontend/SharedInitializersFixture.h"

#include <sys/resource.h>

#include <algorithm>
#include <ctime>

using namespace ortc;
using namespace ortc::frontend;
using namespace ortc::frontend::test;

namespace {

class LargeSharingTest : public SharedInitializersTest {
protected:
  /// Looks for what is shared in the model that `build` makes for a count, and fails where four times the
  /// count takes much more than four times the time of the processor: what is quadratic takes sixteen.
  template <typename Build> void expectLinear(int count, Build build) {
    double seconds[2];
    for (int i : {0, 1}) {
      startModel();
      build(i ? count : count / 4);
      std::clock_t start = std::clock();
      ASSERT_EQ(resolve(), "");
      seconds[i] = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    }
    EXPECT_LT(seconds[1], 9 * std::max(seconds[0], 0.02)) << "a quarter: " << seconds[0];
  }

  static std::string next(int i, int count, const char *prefix) {
    return i == count - 1 ? "y" : prefix + std::to_string(i);
  }
};

/// Peak of the memory so far, in MiB.
double findPeak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024; // KiB
}

TEST_F(LargeSharingTest, EqualTensorsOfManyModulesTakeLinearTime) {
  expectLinear(10000, [&](int count) {
    std::string value = "x";
    for (int i = 0; i < count; ++i) {
      std::string number = std::to_string(i), result = next(i, count, "h");
      addValues("onnx::Add_" + number, {3}, {0, 0, 0});
      addNode(graph, "Add", {value, "onnx::Add_" + number}, {result}, "/l." + number + "/Add");
      value = result;
    }
  });
  EXPECT_EQ(model->getProto().graph().initializer_size(), 10000);
}

TEST_F(LargeSharingTest, ManyCopiesTakeLinearTime) {
  expectLinear(20000, [&](int count) {
    std::string value = "x";
    for (int i = 0; i < count; ++i) {
      std::string number = std::to_string(i), result = next(i, count, "h");
      addValues("val_" + number, {3, 3}, randomValues(9, static_cast<unsigned>(i / 2)));
      addNode(graph, "MatMul", {value, "val_" + number}, {result}, "m" + number);
      value = result;
    }
  });
  EXPECT_EQ(model->getProto().graph().initializer_size(), 10000);
}

TEST_F(LargeSharingTest, ManyNormsTakeLinearTime) {
  expectLinear(20000, [&](int count) {
    addValues("val_0", {3}, {0, 0, 0});
    std::string value = "x";
    for (int i = 0; i < count; ++i) {
      std::string number = std::to_string(i), result = next(i, count, "h");
      addValues("onnx::I_" + number, {3}, {1, 1, 1});
      addNode(graph, "InstanceNormalization", {value, "onnx::I_" + number, "val_0"}, {result}, "n" + number);
      value = result;
    }
  });
  EXPECT_EQ(listConstants(*model).size(), 20001u);
}

TEST_F(LargeSharingTest, ManyEmbeddingsTakeLinearTime) {
  expectLinear(6000, [&](int count) {
    addInitializer(graph, "rows", {2})->set_raw_data(std::string(16, '\0'));
    graph->mutable_initializer(0)->set_data_type(proto::TensorProto::INT64);
    auto *sum = graph->add_node();
    sum->set_op_type("Sum");
    sum->add_output("y");
    for (int i = 0; i < count; ++i) { // the last one is a copy
      std::string number = std::to_string(i);
      addValues("table." + number, {3, 3}, randomValues(9, static_cast<unsigned>(i == count - 1 ? 17 : i)));
      addNode(graph, "Gather", {"table." + number, "rows"}, {"g" + number}, "gather" + number);
      sum->add_input("g" + number);
    }
  });
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
                result = next(i, 300, "h");
    addInitializer(graph, name, {3});
    addNode(graph, "Add", {value, name}, {result}, "/l" + number + path + "/Add");
    value = result;
  }
  double before = findPeak();
  ASSERT_EQ(resolve(), "");
  EXPECT_LT(findPeak() - before, 300);
}

TEST_F(LargeSharingTest, ViewsThatManyNormsReadTakeLinearTime) {
  expectLinear(10000, [&](int count) {
    addValues("val_1", {3}, {1, 1, 1});
    addValues("val_0", {3}, {0, 0, 0});
    std::string scale = "val_1", value = "x";
    for (int i = 0; i < count; ++i) {
      std::string result = "view" + std::to_string(i);
      addNode(graph, "Cast", {scale}, {result}, result);
      addAttribute(graph->mutable_node(i), "to", proto::AttributeProto::INT)
          ->set_i(proto::TensorProto::FLOAT);
      scale = result;
    }
    for (int i = 0; i < count; ++i) {
      std::string result = next(i, count, "h");
      addNode(graph, "InstanceNormalization", {value, scale, "val_0"}, {result}, "n" + std::to_string(i));
      value = result;
    }
  });
  EXPECT_EQ(listConstants(*model), (std::set<std::string>{"val_0", "val_1"}));
}

} // namespace
