// Element types as the host sees them: unsigned integers and booleans, values that go through the graph as
// they are, and narrow weights.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <gtest/gtest.h>

#include "compiler/frontend/onnx.pb.h"
#include "support/Convert.h"
#include "test/e2e/Models.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;
using engine::test::bytesOf;
using engine::test::npyOf;
using engine::test::zip;
using proto::TensorProto;

namespace {

class TypesTest : public testing::Test {
protected:
  TypesTest() {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    model.mutable_graph()->set_name("g");
  }

  void addInput(const std::string &name, int type, const std::vector<int64_t> &dims) {
    describe(model.mutable_graph()->add_input(), name, type, dims);
  }
  void addOutput(const std::string &name, int type, const std::vector<int64_t> &dims) {
    describe(model.mutable_graph()->add_output(), name, type, dims);
  }
  void addInitializer(const std::string &name, int type, const std::vector<int64_t> &dims,
                      const std::string &bytes) {
    TensorProto *tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    tensor->mutable_dims()->Add(dims.begin(), dims.end());
    tensor->set_raw_data(bytes);
  }
  proto::NodeProto *addNode(const std::string &op, const std::vector<std::string> &inputs,
                            const std::string &output) {
    proto::NodeProto *node = model.mutable_graph()->add_node();
    node->set_op_type(op);
    for (const std::string &input : inputs)
      node->add_input(input);
    node->add_output(output);
    return node;
  }

  Outcome compile(const std::vector<std::string> &flags) {
    std::vector<std::string> arguments{
        "train",  folder.write("m.onnx", model.SerializeAsString()), "-o", folder / "a", "--target", "native",
        "--quiet"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return mustRun(arguments);
  }

  /// Predicts with these npy members and opens what came out.
  void predict(const std::vector<engine::test::ZipMember> &members) {
    mustRun({"predict", folder / "a", "--data", folder.write("d.npz", zip(members)), "-o", folder / "p.npz",
             "--quiet"});
    ASSERT_TRUE(engine::openData(folder / "p.npz", predicted).isOk());
  }

  template <typename T> std::vector<T> output(const std::string &name, DataType type) {
    Array array;
    EXPECT_TRUE(predicted->load(name, array).isOk()) << name;
    EXPECT_EQ(array.type, type) << name;
    std::vector<T> values(array.bytes / sizeof(T));
    std::memcpy(values.data(), array.data, values.size() * sizeof(T));
    return values;
  }

  TemporaryFolder folder;
  proto::ModelProto model;
  std::unique_ptr<engine::DataSource> predicted;
};

TEST_F(TypesTest, UnsignedIntegersStayUnsigned) {
  const std::pair<const char *, int> types[] = {{"u1", TensorProto::UINT8},
                                                {"u2", TensorProto::UINT16},
                                                {"u4", TensorProto::UINT32},
                                                {"u8", TensorProto::UINT64}};
  for (auto [name, type] : types) {
    addInput(name, type, {2});
    addOutput(std::string("twice_") + name, type, {2});
    addNode("Add", {name, name}, std::string("twice_") + name);
  }
  addInput("flag", TensorProto::BOOL, {2});
  addOutput("not", TensorProto::BOOL, {2});
  addNode("Not", {"flag"}, "not");
  addOutput("below", TensorProto::BOOL, {2});
  addNode("Less", {"u1", "u1"}, "below");
  addOutput("float", TensorProto::FLOAT, {2});
  addNode("Cast", {"u1"}, "float")->add_attribute()->CopyFrom([] {
    proto::AttributeProto to;
    to.set_name("to");
    to.set_type(proto::AttributeProto::INT);
    to.set_i(TensorProto::FLOAT);
    return to;
  }());
  compile({"--loss", "none"});
  ASSERT_NO_FATAL_FAILURE(
      predict({{"u1.npy", npyOf("|u1", "(2,)", bytesOf(std::vector<uint8_t>{100, 5}))},
               {"u2.npy", npyOf("<u2", "(2,)", bytesOf(std::vector<uint16_t>{30000, 5}))},
               {"u4.npy", npyOf("<u4", "(2,)", bytesOf(std::vector<uint32_t>{2000000000, 5}))},
               {"u8.npy", npyOf("<u8", "(2,)", bytesOf(std::vector<uint64_t>{9000000000000000000u, 5}))},
               {"flag.npy", npyOf("|b1", "(2,)", std::string("\1\0", 2))}}));
  EXPECT_EQ(output<uint8_t>("twice_u1", DataType::UInt8), (std::vector<uint8_t>{200, 10}));
  EXPECT_EQ(output<uint16_t>("twice_u2", DataType::UInt16), (std::vector<uint16_t>{60000, 10}));
  EXPECT_EQ(output<uint32_t>("twice_u4", DataType::UInt32), (std::vector<uint32_t>{4000000000, 10}));
  EXPECT_EQ(output<uint64_t>("twice_u8", DataType::UInt64),
            (std::vector<uint64_t>{18000000000000000000u, 10}));
  EXPECT_EQ(output<uint8_t>("not", DataType::Bool), (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(output<uint8_t>("below", DataType::Bool), (std::vector<uint8_t>{0, 0}));
  // The upper half of the range can be fed.
  ASSERT_NO_FATAL_FAILURE(
      predict({{"u1.npy", npyOf("|u1", "(2,)", bytesOf(std::vector<uint8_t>{200, 255}))},
               {"u2.npy", npyOf("<u2", "(2,)", bytesOf(std::vector<uint16_t>{60000, 5}))},
               {"u4.npy", npyOf("<u4", "(2,)", bytesOf(std::vector<uint32_t>{4000000000, 5}))},
               {"u8.npy", npyOf("<u8", "(2,)", bytesOf(std::vector<uint64_t>{18000000000000000000u, 5}))},
               {"flag.npy", npyOf("|b1", "(2,)", std::string("\1\0", 2))}}));
  EXPECT_EQ(output<float>("float", DataType::Float32), (std::vector<float>{200, 255}));
}

/// Large enough for several threads: the mode is one of the processor's, and every thread has its own.
TEST_F(TypesTest, DenormalNumbersAreZeroOnEveryThreadOrNumbersOnAll) {
  const size_t count = 1 << 20;
  std::string shape = "(" + std::to_string(count) + ",)";
  addInput("x", TensorProto::FLOAT, {int64_t(count)});
  addOutput("square", TensorProto::FLOAT, {int64_t(count)});
  addOutput("twice", TensorProto::FLOAT, {int64_t(count)});
  addNode("Mul", {"x", "x"}, "square");
  addNode("Add", {"x", "x"}, "twice");
  std::string data = folder.write(
      "d.npz", zip({{"x.npy", npyOf("<f4", shape.c_str(), bytesOf(std::vector<float>(count, 1e-20f)))}}));
  for (auto [numerics, square] : {std::pair("fast", 0.0f), {"portable", 1e-20f * 1e-20f}}) {
    compile({"--loss", "none", "--numerics", numerics});
    for (const char *threads : {"1", "2"}) {
      SCOPED_TRACE(std::string(numerics) + ", threads " + threads);
      mustRun(
          {"predict", folder / "a", "--data", data, "-o", folder / "p.npz", "--threads", threads, "--quiet"});
      ASSERT_TRUE(engine::openData(folder / "p.npz", predicted).isOk());
      // 1e-40 is a float, but a denormal one.
      EXPECT_EQ(output<float>("square", DataType::Float32), std::vector<float>(count, square));
      EXPECT_EQ(output<float>("twice", DataType::Float32), std::vector<float>(count, 2e-20f));
    }
  }
}

TEST_F(TypesTest, PointersOf32BitsReachTwoGibibytes) {
  addInput("x", TensorProto::FLOAT, {600000000});
  addOutput("y", TensorProto::FLOAT, {600000000});
  addNode("Add", {"x", "x"}, "y");
  std::string file = folder.write("m.onnx", model.SerializeAsString());
  Outcome outcome = runTool({"train", file, "-o", folder / "a", "--quiet", "--loss", "none", "--target",
                             "x86-64", "--target", "armv7"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find("code for armv7: its pointers have 32 bits, and 'x' ends at byte 2400000000"),
            std::string::npos)
      << outcome.errors;
  mustRun({"train", file, "-o", folder / "a", "--loss", "none", "--target", "x86-64", "--quiet"});
}

TEST_F(TypesTest, LargeUnsignedConstantsAreExportedAsTheyWere) {
  std::string bytes(8192, '\0');
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = char(i * 7);
  addInput("x", TensorProto::UINT8, {8192});
  addInitializer("table", TensorProto::UINT8, {8192}, bytes);
  addOutput("y", TensorProto::UINT8, {8192});
  addNode("Add", {"x", "table"}, "y");
  compile({"--loss", "none"});
  mustRun({"export", folder / "a", "-o", folder / "e.onnx", "--quiet"});
  proto::ModelProto exported;
  ASSERT_TRUE(exported.ParseFromString(readFile(folder / "e.onnx")));
  EXPECT_EQ(exported.graph().initializer(0).data_type(), TensorProto::UINT8);
  EXPECT_TRUE(exported.graph().initializer(0).raw_data() == bytes);
}

TEST_F(TypesTest, FourBitConstantsArePackedAgain) {
  constexpr size_t kCount = 10001; // large enough for a tensor of the artifact, and half a byte is left over
  std::string packed((kCount + 1) / 2, '\0');
  std::vector<int8_t> want(kCount), zeros(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    unsigned bits = i * 5 % 16;
    want[i] = static_cast<int8_t>(static_cast<int>(bits) - (bits > 7 ? 16 : 0));
    packed[i / 2] = char(static_cast<unsigned char>(packed[i / 2]) | bits << i % 2 * 4);
  }
  model.set_ir_version(10);
  model.mutable_opset_import(0)->set_version(21);
  addInput("x", TensorProto::INT8, {kCount});
  addInitializer("table", TensorProto::INT4, {kCount}, packed);
  proto::AttributeProto *to = addNode("Cast", {"table"}, "bytes")->add_attribute();
  to->set_name("to");
  to->set_type(proto::AttributeProto::INT);
  to->set_i(TensorProto::INT8);
  addOutput("y", TensorProto::INT8, {kCount});
  addNode("Add", {"x", "bytes"}, "y");
  compile({"--loss", "none"});
  ASSERT_NO_FATAL_FAILURE(predict({{"x.npy", npyOf("|i1", "(10001,)", bytesOf(zeros))}}));
  EXPECT_EQ(output<int8_t>("y", DataType::Int8), want);
  mustRun({"export", folder / "a", "-o", folder / "e.onnx", "--quiet"});
  proto::ModelProto exported;
  ASSERT_TRUE(exported.ParseFromString(readFile(folder / "e.onnx")));
  EXPECT_EQ(exported.graph().initializer(0).data_type(), TensorProto::INT4);
  EXPECT_TRUE(exported.graph().initializer(0).raw_data() == packed);
}

TEST_F(TypesTest, OutputsMayBeInputsAndInitializers) {
  addInput("x", TensorProto::FLOAT, {2, 2});
  addInitializer("w", TensorProto::FLOAT, {2, 2}, bytesOf(std::vector<float>{1, 2, 3, 4}));
  addNode("MatMul", {"x", "w"}, "y");
  addOutput("y", TensorProto::FLOAT, {2, 2});
  addOutput("x", TensorProto::FLOAT, {2, 2});
  addOutput("w", TensorProto::FLOAT, {2, 2});
  engine::test::ZipMember x{"x.npy", npyOf("<f4", "(2, 2)", bytesOf(std::vector<float>{1, 0, 0, 2}))};
  for (const char *loss : {"none", "mse"}) {
    std::vector<std::string> flags{"--loss", loss};
    if (flags[1] != "none")
      flags.insert(flags.end(), {"--optimizer", "sgd:lr=0.1", "--loss-input", "y"});
    compile(flags);
    ASSERT_NO_FATAL_FAILURE(predict({x}));
    EXPECT_EQ(output<float>("x", DataType::Float32), (std::vector<float>{1, 0, 0, 2})) << loss;
    EXPECT_EQ(output<float>("w", DataType::Float32), (std::vector<float>{1, 2, 3, 4})) << loss;
    EXPECT_EQ(output<float>("y", DataType::Float32), (std::vector<float>{1, 2, 6, 8})) << loss;
  }
}

TEST_F(TypesTest, OneOutputTwiceIsRefused) {
  addInput("x", TensorProto::FLOAT, {2});
  addNode("Relu", {"x"}, "y");
  addOutput("y", TensorProto::FLOAT, {2});
  addOutput("y", TensorProto::FLOAT, {2});
  Outcome outcome = runTool(
      {"train", folder.write("m.onnx", model.SerializeAsString()), "-o", folder / "a", "--loss", "none"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find("two outputs are named 'y'"), std::string::npos) << outcome.errors;
}

/// The value of a float that is stored as float16 or bfloat16.
double rounded(double value, int type) {
  if (type == TensorProto::FLOAT16)
    return halfToFloat(floatToHalf(float(value)));
  float single = float(value);
  uint32_t bits;
  std::memcpy(&bits, &single, 4);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
  std::memcpy(&single, &bits, 4);
  return single;
}

std::string narrowBytes(const std::vector<double> &values, int type) {
  std::string bytes;
  for (double value : values) {
    float single = float(rounded(value, type));
    uint32_t bits;
    std::memcpy(&bits, &single, 4);
    bytes += bytesOf(type == TensorProto::FLOAT16 ? floatToHalf(single) : uint16_t(bits >> 16));
  }
  return bytes;
}

class NarrowTest : public TypesTest, public testing::WithParamInterface<int> {};

// y = x (s w), mse, SGD, against the same in float64. Every update is far below the distance of two narrow numbers:
// without a wide master nothing would ever change. Both uses of the factor s add to its gradient.
TEST_P(NarrowTest, WeightsHaveWideMasters) {
  int type = GetParam();
  const std::vector<double> x = {0.5, -1, 0.25, 1, 0.75, -0.5, -0.25, 1, 1, 0.5, 0.5, -1}; // [4, 3]
  const std::vector<double> label = {1, 0, 0.5, -0.5, 0, 1, -1, 0.25};                     // [4, 2]
  std::vector<double> w = {1, -1.5, 1.25, 0.75, -1, 1.75};                                 // [3, 2]
  double s = 1;
  addInput("x", TensorProto::FLOAT, {4, 3});
  addInitializer("w", type, {3, 2}, narrowBytes(w, type));
  addInitializer("s", type, {1}, narrowBytes({s}, type));
  auto castTo = [&](const char *input, const char *output) {
    proto::AttributeProto *to = addNode("Cast", {input}, output)->add_attribute();
    to->set_name("to");
    to->set_type(proto::AttributeProto::INT);
    to->set_i(type);
  };
  castTo("x", "narrow");
  addNode("Mul", {"w", "s"}, "scaled");
  addNode("MatMul", {"narrow", "scaled"}, "h");
  addNode("Mul", {"h", "s"}, "y");
  addOutput("y", type, {4, 2});
  compile({"--loss", "mse", "--optimizer", "sgd:lr=1e-4", "--train", "w|s"});
  constexpr int kSteps = 40;
  std::vector<float> xs(x.begin(), x.end()), labels(label.begin(), label.end());
  std::string data = folder.write("t.npz", zip({{"x.npy", npyOf("<f4", "(4, 3)", bytesOf(xs))},
                                                {"label.npy", npyOf("<f4", "(4, 2)", bytesOf(labels))}}));
  mustRun({"run", folder / "a", "--data", data, "--steps", std::to_string(kSteps), "--no-shuffle", "--quiet",
           "--save", folder / "s.safetensors"});
  const std::vector<double> start = w;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> dw(6, 0);
    double ds = 0, narrowS = rounded(s, type);
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 2; ++j) {
        double h = 0;
        for (int k = 0; k < 3; ++k)
          h += x[i * 3 + k] * rounded(w[k * 2 + j], type) * narrowS;
        double dy = 2 * (h * narrowS - label[i * 2 + j]) / 8;
        ds += 2 * dy * h;
        for (int k = 0; k < 3; ++k)
          dw[k * 2 + j] += dy * narrowS * narrowS * x[i * 3 + k];
      }
    for (int k = 0; k < 6; ++k)
      w[k] -= 1e-4 * dw[k];
    s -= 1e-4 * ds;
  }
  auto saved = loadValues(folder / "s.safetensors");
  // Gradients go through narrow values: a few units in the last of their 8 or 11 bits.
  double tolerance = type == TensorProto::FLOAT16 ? 0.005 : 0.03, largest = 0;
  for (int k = 0; k < 6; ++k)
    largest = std::max(largest, std::fabs(w[k] - start[k]));
  ASSERT_EQ(saved["w"].data.size(), 6u);
  for (int k = 0; k < 6; ++k)
    EXPECT_NEAR(saved["w"].data[k] - start[k], w[k] - start[k], tolerance * largest) << k;
  EXPECT_NEAR(saved["s"].data[0] - 1, s - 1, tolerance * std::fabs(s - 1));
  EXPECT_GT(largest, 1e-4);

  mustRun({"export", folder / "a", "--load", folder / "s.safetensors", "-o", folder / "e.onnx", "--quiet"});
  proto::ModelProto exported;
  ASSERT_TRUE(exported.ParseFromString(readFile(folder / "e.onnx")));
  EXPECT_EQ(exported.graph().initializer(0).data_type(), type);
  EXPECT_EQ(exported.graph().initializer(0).raw_data(), narrowBytes(saved["w"].data, type));
}

INSTANTIATE_TEST_SUITE_P(Types, NarrowTest,
                         testing::Values(int(TensorProto::FLOAT16), int(TensorProto::BFLOAT16)));

} // namespace
