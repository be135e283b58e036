// Products on tensor cores are as exact as sums of fused multiply-adds, on every generation of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <random>

#include "test/e2e/Device.h"
#include "test/e2e/DeviceImages.h"
#include "test/e2e/Models.h"
#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;

namespace {

constexpr int64_t kRows = 64, kColumns = 72;

/// An artifact that multiplies two inputs, [rows, depth] and [depth, columns], or the second one transposed.
class DeviceProductTest : public testing::Test {
protected:
  void compile(int64_t depth, bool isTransposed, const std::vector<std::string> &flags) {
    proto::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    auto *graph = model.mutable_graph();
    graph->set_name("g");
    describe(graph->add_input(), "a", proto::TensorProto::FLOAT, {kRows, depth});
    describe(graph->add_input(), "b", proto::TensorProto::FLOAT,
             isTransposed ? std::vector{kColumns, depth} : std::vector{depth, kColumns});
    describe(graph->add_output(), "c", proto::TensorProto::FLOAT, {kRows, kColumns});
    std::string right = "b";
    if (isTransposed) {
      auto *node = graph->add_node();
      node->set_op_type("Transpose");
      node->add_input("b"), node->add_output("turned");
      right = "turned";
    }
    auto *node = graph->add_node();
    node->set_op_type("MatMul");
    node->add_input("a"), node->add_input(right), node->add_output("c");
    std::vector<std::string> arguments{"train",    folder.write("model.onnx", model.SerializeAsString()),
                                       "-o",       folder / "artifact",
                                       "--loss",   "none",
                                       "--target", "sm_80",
                                       "--quiet"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    mustRun(arguments);
  }

  std::vector<float> multiply(const std::vector<float> &a, const std::vector<float> &b) {
    Device device;
    Session session(folder / "artifact", &device.host);
    std::vector<float> c(kRows * kColumns);
    EXPECT_EQ(ortc_write(session.get(), "a", a.data(), a.size() * 4), ORTC_OK) << session.message();
    EXPECT_EQ(ortc_write(session.get(), "b", b.data(), b.size() * 4), ORTC_OK) << session.message();
    EXPECT_EQ(ortc_predict_step(session.get()), ORTC_OK) << session.message();
    EXPECT_EQ(ortc_read(session.get(), "c", c.data(), c.size() * 4), ORTC_OK) << session.message();
    return c;
  }

  bool usesTensorCores() {
    return imagesOf(folder / "artifact/model.ortc").front().bytes.find("mma.sync") != std::string::npos;
  }

  TemporaryFolder folder;
};

struct Operands {
  const char *name;
  std::function<float(std::mt19937 &)> draw;
};

float drawNormal(std::mt19937 &random) { return std::normal_distribution<float>()(random); }

const Operands kOperands[] = {
    {"normal", drawNormal},
    {"positive", [](std::mt19937 &random) { return std::fabs(drawNormal(random)) + 0.1f; }},
    {"of 16 binades",
     [](std::mt19937 &random) {
       return std::ldexp(drawNormal(random), std::uniform_int_distribution<int>(-8, 8)(random));
     }},
};

/// The largest error of `result` for the sum of the products' magnitudes.
double errorOf(const std::vector<float> &a, const std::vector<float> &b, int64_t depth, int64_t stepOfB,
               int64_t columnOfB, const std::function<float(int64_t row, int64_t column)> &result) {
  double worst = 0;
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < kColumns; ++column) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < depth; ++k) {
        double product = double(a[row * depth + k]) * double(b[k * stepOfB + column * columnOfB]);
        sum += product, magnitude += std::fabs(product);
      }
      worst = std::max(worst, std::fabs(result(row, column) - sum) / magnitude);
    }
  return worst;
}

/// f32 stays f32: as a chain of fused multiply-adds along the depth, which is what cores without products have.
TEST_F(DeviceProductTest, SixProductsAreAsExactAsFusedMultiplyAdds) {
  for (int64_t depth : {64, 96, 250, 1024, 8192})
    for (bool isTransposed : {false, true}) {
      compile(depth, isTransposed, {});
      ASSERT_TRUE(usesTensorCores());
      const int64_t stepOfB = isTransposed ? 1 : kColumns, columnOfB = isTransposed ? depth : 1;
      for (const Operands &operands : kOperands) {
        SCOPED_TRACE(std::string(operands.name) + ", depth " + std::to_string(depth) +
                     (isTransposed ? ", transposed" : ""));
        std::mt19937 random(static_cast<unsigned>(depth));
        std::vector<float> a(kRows * depth), b(kColumns * depth);
        for (auto *values : {&a, &b})
          for (float &value : *values)
            value = operands.draw(random);
        double chain = errorOf(a, b, depth, stepOfB, columnOfB, [&](int64_t row, int64_t column) {
          float sum = 0;
          for (int64_t k = 0; k < depth; ++k)
            sum = std::fma(a[row * depth + k], b[k * stepOfB + column * columnOfB], sum);
          return sum;
        });
        for (const char *generation : {"80", "90", "100"}) {
          EnvironmentVariable variable("ORTC_EMULATOR_SM", generation);
          std::vector<float> c = multiply(a, b);
          double error = errorOf(a, b, depth, stepOfB, columnOfB,
                                 [&](int64_t row, int64_t column) { return c[row * kColumns + column]; });
          EXPECT_LE(error, chain) << "sm_" << generation;
          if (std::getenv("ORTC_SHOW_ERRORS"))
            std::printf("%-14s depth %5d sm_%-3s %.2e of a chain's %.2e\n", operands.name, int(depth),
                        generation, error, chain);
        }
      }
    }
}

/// To 10 bits behind the first one, halves away from zero.
float roundToTf32(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + (1u << 12)) & ~((1u << 13) - 1));
}

/// Products of rounded numbers are exact in a tensor core. It adds 4 (A100) or 8 of them to a sum at a time, cuts each
/// term to 24 bits behind the largest one's first bit (H100: 25), and the sum to 23.
TEST_F(DeviceProductTest, Tf32RoundsOperandsAndNothingElse) {
  for (int64_t depth : {64, 250, 1024, 8192})
    for (bool isTransposed : {false, true}) {
      compile(depth, isTransposed, {"--precision", "tf32"});
      const std::string code = imagesOf(folder / "artifact/model.ortc").front().bytes;
      EXPECT_NE(code.find("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"), std::string::npos);
      EXPECT_EQ(code.find("bf16"), std::string::npos);
      const int64_t stepOfB = isTransposed ? 1 : kColumns, columnOfB = isTransposed ? depth : 1;
      for (const Operands &operands : kOperands) {
        SCOPED_TRACE(std::string(operands.name) + ", depth " + std::to_string(depth) +
                     (isTransposed ? ", transposed" : ""));
        std::mt19937 random(static_cast<unsigned>(depth));
        std::vector<float> a(kRows * depth), b(kColumns * depth);
        for (auto *values : {&a, &b})
          for (float &value : *values)
            value = operands.draw(random);
        std::vector<float> roundedA, roundedB;
        std::transform(a.begin(), a.end(), std::back_inserter(roundedA), roundToTf32);
        std::transform(b.begin(), b.end(), std::back_inserter(roundedB), roundToTf32);
        for (auto [generation, added, bits] : {std::tuple("80", 4, 24), {"90", 8, 25}}) {
          EnvironmentVariable variable("ORTC_EMULATOR_SM", generation);
          std::vector<float> c = multiply(a, b);
          auto result = [&](int64_t row, int64_t column) { return c[row * kColumns + column]; };
          const double ofStep = (added + 1) * std::ldexp(1, -bits) + std::ldexp(1, -23);
          const double ofSums = std::ceil(double(depth) / added) * ofStep;
          const double sums = errorOf(roundedA, roundedB, depth, stepOfB, columnOfB, result);
          const double all = errorOf(a, b, depth, stepOfB, columnOfB, result);
          EXPECT_LE(sums, ofSums) << "sm_" << generation;
          EXPECT_LE(all, ofSums + std::ldexp(1, -10) + std::ldexp(1, -22)) << "sm_" << generation;
          if (std::getenv("ORTC_SHOW_ERRORS"))
            std::printf("%-14s depth %5d sm_%-3s %.2e, of sums %.2e of %.2e\n", operands.name, int(depth),
                        generation, all, sums, ofSums);
        }
      }
    }
}

TEST_F(DeviceProductTest, Tf32IsRefusedWhereThereIsNone) {
  struct Refusal {
    std::vector<std::string> flags;
    const char *message;
  };
  const char *ofProcessor =
      "--precision tf32 is for the tensor cores of NVIDIA's GPUs, and x86-64 has no products of "
      "TF32; name only targets such as --target sm_80, or give another --precision\n";
  const Refusal refusals[] = {
      {{"--target", "x86-64"}, ofProcessor},
      {{"--target", "sm_80", "--target", "x86-64"}, ofProcessor},
      {{"--target", "gfx942"},
       "--precision tf32 is for the tensor cores of NVIDIA's GPUs, and gfx942 has no products of TF32; name "
       "only targets such as --target sm_80, or give another --precision\n"},
      {{"--target", "sm_80", "--numerics", "portable"},
       "--precision tf32 rounds operands for tensor cores, and --numerics portable gives the same bits on "
       "every target, which have none in common; leave one of both out\n"}};
  for (const Refusal &each : refusals) {
    std::vector<std::string> arguments{
        "train", ZooEntry("mlp-digits").model(), "-o", folder / "refused", "--loss", "none", "--precision",
        "tf32"};
    arguments.insert(arguments.end(), each.flags.begin(), each.flags.end());
    Outcome outcome = runTool(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.errors.find(each.message), std::string::npos) << outcome.errors;
    EXPECT_FALSE(std::filesystem::exists(folder / "refused"));
  }
}

/// A product that is not finite in f32 is not finite here, and nobody takes it for a number.
TEST_F(DeviceProductTest, InfinitiesAndNanStayNotFinite) {
  const int64_t depth = 64;
  compile(depth, false, {});
  for (float special : {INFINITY, -INFINITY, NAN}) {
    std::vector<float> a(kRows * depth, 1), b(kColumns * depth, 1);
    a[3 * depth + 5] = special;
    std::vector<float> c = multiply(a, b);
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t column = 0; column < kColumns; ++column)
        EXPECT_EQ(std::isfinite(c[row * kColumns + column]), row != 3) << row << ", " << column;
  }
}

} // namespace
