// Products by groups of warps have the bits of products by warps, in artifacts as ortc writes them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>
#include <random>

#include "test/e2e/Device.h"
#include "test/e2e/DeviceImages.h"
#include "test/e2e/Models.h"
#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// Two operands, either of them transposed, and the product and threads of a block that groups make of them.
struct Case {
  const char *name, *precision;
  int64_t rows, columns, depth;
  bool isFirstTransposed, isSecondTransposed;
  const char *product;
  int64_t threads;
};
void PrintTo(const Case &c, std::ostream *stream) { *stream << c.name; }

class DeviceGroupProductTest : public testing::TestWithParam<Case> {
protected:
  std::string write() {
    const Case &c = GetParam();
    proto::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    auto *graph = model.mutable_graph();
    graph->set_name("g");
    describe(graph->add_input(), "a", proto::TensorProto::FLOAT,
             c.isFirstTransposed ? std::vector{c.depth, c.rows} : std::vector{c.rows, c.depth});
    describe(graph->add_input(), "b", proto::TensorProto::FLOAT,
             c.isSecondTransposed ? std::vector{c.columns, c.depth} : std::vector{c.depth, c.columns});
    describe(graph->add_output(), "c", proto::TensorProto::FLOAT, {c.rows, c.columns});
    auto *node = graph->add_node();
    node->set_op_type("Gemm");
    node->add_input("a"), node->add_input("b"), node->add_output("c");
    for (auto [name, value] : {std::pair("transA", c.isFirstTransposed), {"transB", c.isSecondTransposed}}) {
      auto *attribute = node->add_attribute();
      attribute->set_name(name), attribute->set_type(proto::AttributeProto::INT);
      attribute->set_i(value);
    }
    return folder.write("model.onnx", model.SerializeAsString());
  }

  /// The folder of an artifact for this target.
  std::string compile(const std::string &target) {
    mustRun({"train", write(), "-o", folder / target, "--loss", "none", "--target", target, "--precision",
             GetParam().precision, "--quiet"});
    return folder / target;
  }

  std::vector<float> multiply(const std::string &artifact) {
    const Case &c = GetParam();
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    Device device;
    Session session(artifact, &device.host);
    for (auto [name, size] : {std::pair("a", c.rows * c.depth), {"b", c.depth * c.columns}}) {
      std::vector<float> values(size);
      for (float &value : values)
        value = normal(random);
      EXPECT_EQ(ortc_write(session.get(), name, values.data(), values.size() * 4), ORTC_OK);
    }
    std::vector<float> result(c.rows * c.columns);
    EXPECT_EQ(ortc_predict_step(session.get()), ORTC_OK) << session.message();
    EXPECT_EQ(ortc_read(session.get(), "c", result.data(), result.size() * 4), ORTC_OK);
    return result;
  }

  EnvironmentVariable processor{"ORTC_EMULATOR_SM", "90"};
  TemporaryFolder folder;
};

TEST_P(DeviceGroupProductTest, BitsAreThoseOfWarps) {
  const std::string ofGroups = compile("sm_90a"), ofWarps = compile("sm_90");
  const Image image = imagesOf(ofGroups + "/model.ortc").front();
  EXPECT_NE(image.bytes.find(GetParam().product), std::string::npos);
  EXPECT_NE(image.bytes.find(".maxntid " + std::to_string(GetParam().threads)), std::string::npos);
  EXPECT_EQ(imagesOf(ofWarps + "/model.ortc").front().bytes.find("wgmma"), std::string::npos);
  EXPECT_EQ(multiply(ofGroups), multiply(ofWarps));
}

TEST(DeviceGroupProductRefusalTest, NewerProcessorsAreToldWhatTheyNeed) {
  TemporaryFolder folder;
  const ZooEntry entry("mlp-digits");
  mustRun({"train", entry.model(), "-o", folder / "a", "--shape", "batch=16", "--loss", "cross_entropy",
           "--target", "sm_90a", "--quiet"});
  // A processor that is no target itself runs the code of the newest one before it.
  for (auto [processor, target] : {std::pair{"100", "100"}, {"87", "86"}, {"121", "120"}}) {
    EnvironmentVariable emulated("ORTC_EMULATOR_SM", processor);
    Outcome refused = runTool({"run", folder / "a", "--data", entry.data(), "--device", "cuda"});
    EXPECT_EQ(refused.status, 2);
    std::string expected = "the artifact has code for sm_90a, not for cuda (sm_" + std::string(processor) +
                           "); compile it with --target sm_" + target;
    EXPECT_NE(refused.errors.find(expected), std::string::npos) << refused.errors;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, DeviceGroupProductTest,
    testing::Values(Case{"bf16", "bf16", 1024, 2048, 320, true, false, "m64n128k16.f32.bf16", 256},
                    Case{"f16", "f16", 1024, 2048, 320, true, true, "m64n128k16.f32.f16", 256}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
