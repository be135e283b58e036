// No fault that the emulator puts into a product on tensor cores goes unnoticed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>
#include <random>

#include "test/e2e/Device.h"
#include "test/e2e/DeviceImages.h"
#include "test/e2e/MatrixFaults.h"
#include "test/e2e/Models.h"
#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// One way of a product through shared memory.
struct Way {
  const char *name;
  std::vector<std::string> flags;
  int64_t rows, columns, depth;
  bool isTransposed; ///< the second operand
};
void PrintTo(const Way &way, std::ostream *stream) { *stream << way.name; }

class DeviceProductFaultsTest : public testing::TestWithParam<Way> {
protected:
  DeviceProductFaultsTest() {
    const Way &way = GetParam();
    proto::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    auto *graph = model.mutable_graph();
    graph->set_name("g");
    describe(graph->add_input(), "a", proto::TensorProto::FLOAT, {way.rows, way.depth});
    describe(graph->add_input(), "b", proto::TensorProto::FLOAT,
             way.isTransposed ? std::vector{way.columns, way.depth} : std::vector{way.depth, way.columns});
    describe(graph->add_output(), "c", proto::TensorProto::FLOAT, {way.rows, way.columns});
    auto *node = graph->add_node();
    node->set_op_type("Gemm");
    node->add_input("a"), node->add_input("b"), node->add_output("c");
    auto *attribute = node->add_attribute();
    attribute->set_name("transB"), attribute->set_type(proto::AttributeProto::INT);
    attribute->set_i(way.isTransposed);
    std::vector<std::string> arguments{"train",    folder.write("model.onnx", model.SerializeAsString()),
                                       "-o",       folder / "artifact",
                                       "--loss",   "none",
                                       "--target", "sm_80",
                                       "--quiet"};
    arguments.insert(arguments.end(), way.flags.begin(), way.flags.end());
    mustRun(arguments);
    std::mt19937 random(1);
    for (auto [values, size] :
         {std::pair(&a, way.rows * way.depth), std::pair(&b, way.depth * way.columns)}) {
      values->resize(size);
      for (float &value : *values)
        value = 0.25f + float(random() >> 8) / float(1 << 25);
    }
  }

  /// The results, or nothing where the emulator reports something.
  std::vector<float> multiply(const std::string &fault) {
    EnvironmentVariable mutation("ORTC_EMULATOR_MUTATE", fault);
    Device device;
    Session session(folder / "artifact", &device.host);
    std::vector<float> c(GetParam().rows * GetParam().columns);
    bool isGood = ortc_write(session.get(), "a", a.data(), a.size() * 4) == ORTC_OK &&
                  ortc_write(session.get(), "b", b.data(), b.size() * 4) == ORTC_OK &&
                  ortc_predict_step(session.get()) == ORTC_OK &&
                  ortc_read(session.get(), "c", c.data(), c.size() * 4) == ORTC_OK;
    return isGood ? c : std::vector<float>();
  }

  TemporaryFolder folder;
  std::vector<float> a, b;
};

TEST_P(DeviceProductFaultsTest, EveryFaultIsNoticed) {
  EnvironmentVariable threads("ORTC_EMULATOR_THREADS", "1");
  std::vector<Fault> faults = listMatrixFaults(imagesOf(folder / "artifact/model.ortc").front().bytes);
  const std::vector<float> wanted = multiply("");
  ASSERT_FALSE(wanted.empty());
  ASSERT_EQ(multiply(""), wanted);
  for (const Fault &fault : faults) {
    testing::internal::CaptureStderr();
    std::vector<float> found = multiply(fault.text);
    testing::internal::GetCapturedStderr();
    EXPECT_NE(found, wanted) << fault.text << ": " << fault.instruction;
  }
  std::printf("%s: %zu faults\n", GetParam().name, faults.size());
  EXPECT_GE(faults.size(), 30u);
}

INSTANTIATE_TEST_SUITE_P(Ways, DeviceProductFaultsTest,
                         testing::Values(Way{"f32", {}, 128, 64, 192, false},
                                         Way{"f32_transposed", {}, 64, 64, 160, true},
                                         Way{"bf16_copied", {"--precision", "bf16"}, 64, 64, 192, false},
                                         Way{"f16_copied", {"--precision", "f16"}, 64, 64, 192, true},
                                         Way{"f32_ragged", {}, 65, 67, 70, false},
                                         Way{"tf32", {"--precision", "tf32"}, 128, 64, 192, false},
                                         Way{"tf32_transposed", {"--precision", "tf32"}, 64, 64, 160, true}),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
