// Attention as kernels of GPUs: its results and gradients beside those of plain sums in double precision.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "test/e2e/AttentionModel.h"
#include "test/e2e/Device.h"
#include "test/e2e/DeviceImages.h"
#include "test/e2e/MatrixFaults.h"
#include "test/e2e/Models.h"
#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;

namespace {

struct Shape : AttentionSizes {
  const char *name;
  const char *precision = "f32";
  /// Of the largest gradient. In f32 scores of a few units lose 1e-7 of themselves, which the exponential and the sums
  /// of some hundred keys make a few 1e-6; bf16 and f16 round probabilities and gradients to 2^-9 and 2^-12.
  double tolerance = 1e-5;
  size_t kernels = 3; ///< attention, the gradient of queries, that of keys and values
};

struct Reference {
  std::vector<double> queries, keys, values; ///< gradients
};

std::vector<float> draw(size_t count, unsigned seed, float scale) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random);
  return values;
}

/// Of the mean of squares of what attention gives.
Reference differentiate(const Shape &s, const AttentionNumbers &numbers, const std::vector<float> &mask) {
  const auto &[q, k, v] = numbers;
  Reference gradient{std::vector<double>(q.size()), std::vector<double>(k.size()),
                     std::vector<double>(v.size())};
  const double scale = 1 / std::sqrt(static_cast<double>(s.depth));
  const auto count = static_cast<double>(s.batch * s.heads * s.rows * s.columns);
  std::vector<double> p(s.keys), change(s.keys), out(s.columns), back(s.columns);
  for (int64_t batch = 0; batch < s.batch; ++batch)
    for (int64_t head = 0; head < s.heads; ++head)
      for (int64_t row = 0; row < s.rows; ++row) {
        int64_t group = batch * s.keyHeads + head / (s.heads / s.keyHeads);
        int64_t query = ((batch * s.heads + head) * s.rows + row) * s.depth;
        auto key = [&](int64_t j) { return (group * s.keys + j) * s.depth; };
        auto value = [&](int64_t j) { return (group * s.keys + j) * s.columns; };
        double largest = -INFINITY, sum = 0;
        for (int64_t j = 0; j < s.keys; ++j) {
          p[j] = 0;
          for (int64_t d = 0; d < s.depth; ++d)
            p[j] += static_cast<double>(q[query + d]) * k[key(j) + d] * scale;
          p[j] += s.hasMask ? mask[batch * s.keys + j] : 0;
          if (s.isCausal && j > row)
            p[j] = -INFINITY;
          largest = std::max(largest, p[j]);
        }
        const int64_t position = std::max_element(p.begin(), p.end()) - p.begin();
        for (double &each : p)
          sum += each = std::exp(each - largest);
        for (double &each : p)
          each /= sum;
        double total = 0, largestChange = 0;
        for (int64_t e = 0; e < s.columns; ++e) {
          out[e] = 0;
          for (int64_t j = 0; j < s.keys; ++j)
            out[e] += p[j] * v[value(j) + e];
          back[e] = 2 * (out[e] + (s.addsLargest ? largest : 0)) / count;
          largestChange += s.addsLargest ? back[e] : 0;
          total += out[e] * back[e];
        }
        for (int64_t j = 0; j < s.keys; ++j) {
          change[j] = 0;
          for (int64_t e = 0; e < s.columns; ++e) {
            gradient.values[value(j) + e] += p[j] * back[e];
            change[j] += back[e] * v[value(j) + e];
          }
          change[j] = (p[j] * (change[j] - total) + (j == position ? largestChange : 0)) * scale;
          for (int64_t d = 0; d < s.depth; ++d) {
            gradient.queries[query + d] += change[j] * k[key(j) + d];
            gradient.keys[key(j) + d] += change[j] * q[query + d];
          }
        }
      }
  return gradient;
}

class DeviceAttentionTest : public testing::TestWithParam<Shape> {
protected:
  /// Draws the numbers of a shape; the arguments that compile it.
  std::vector<std::string> prepare(const Shape &s) {
    numbers.q = draw(s.batch * s.heads * s.rows * s.depth, 1, 1);
    numbers.k = draw(s.batch * s.keyHeads * s.keys * s.depth, 2, 1.5f);
    numbers.v = draw(s.batch * s.keyHeads * s.keys * s.columns, 3, 1);
    mask.resize(s.batch * s.keys);
    for (int64_t i = 0; i < s.batch * s.keys; ++i)
      mask[i] = i % s.keys >= s.keys - 7 - i / s.keys ? -INFINITY : 0.25f * static_cast<float>(i % 3);
    std::vector<std::string> arguments{"train",    folder.write("model.onnx", makeAttentionModel(s, numbers)),
                                       "--loss",   "mse",
                                       "--target", "sm_80",
                                       "--quiet",  "--gradients",
                                       "--train",  "q",
                                       "--train",  "k",
                                       "--train",  "v"};
    if (std::string(s.precision) != "f32")
      arguments.insert(arguments.end(), {"--precision", s.precision});
    return arguments;
  }

  /// Gradients by name; none where something is reported.
  std::map<std::string, std::vector<float>> run(const Shape &s) {
    Device device;
    Session session(folder / "artifact", &device.host);
    std::vector<float> nothing(numbers.q.size()), label(s.batch * s.heads * s.rows * s.columns);
    bool isGood =
        ortc_write(session.get(), "nothing", nothing.data(), nothing.size() * 4) == ORTC_OK &&
        ortc_write(session.get(), "label", label.data(), label.size() * 4) == ORTC_OK &&
        (!s.hasMask || ortc_write(session.get(), "mask", mask.data(), mask.size() * 4) == ORTC_OK) &&
        ortc_gradients_step(session.get(), nullptr) == ORTC_OK;
    std::map<std::string, std::vector<float>> gradients;
    for (auto [name, like] : {std::pair{"q", &numbers.q}, {"k", &numbers.k}, {"v", &numbers.v}}) {
      std::vector<float> &gradient = gradients[name];
      gradient.resize(like->size());
      isGood =
          isGood && ortc_read_gradient(session.get(), name, gradient.data(), gradient.size() * 4) == ORTC_OK;
    }
    return isGood ? gradients : std::map<std::string, std::vector<float>>();
  }

  AttentionNumbers numbers;
  std::vector<float> mask;
  TemporaryFolder folder;
};

TEST_P(DeviceAttentionTest, GradientsAreThoseOfSums) {
  const Shape &s = GetParam();
  std::vector<std::string> arguments = prepare(s);
  std::vector<std::string> shown = arguments;
  shown.insert(shown.end(), {"--compile-to", "fuse"});
  std::string fused = mustRun(shown).text;
  size_t kernels = 0; // of the entry that has most
  for (size_t at = fused.find("func.func"), end; at != std::string::npos; at = end) {
    end = fused.find("func.func", at + 1);
    std::string function = fused.substr(at, end - at);
    size_t found = 0;
    for (size_t i = function.find("plan.kernel  attention"); i != std::string::npos;
         i = function.find("plan.kernel  attention", i + 1))
      ++found;
    kernels = std::max(kernels, found);
  }
  EXPECT_GE(kernels, s.kernels);
  arguments.insert(arguments.end(), {"-o", folder / "artifact"});
  mustRun(arguments);

  std::map<std::string, std::vector<float>> gradients = run(s);
  Reference reference = differentiate(s, numbers, mask);
  for (auto [name, wanted] :
       {std::pair{"q", &reference.queries}, {"k", &reference.keys}, {"v", &reference.values}}) {
    const std::vector<float> &gradient = gradients[name];
    ASSERT_EQ(gradient.size(), wanted->size()) << "the step failed";
    double most = 0, error = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      most = std::max(most, std::fabs((*wanted)[i]));
      error = std::max(error, std::fabs(gradient[i] - (*wanted)[i]));
    }
    EXPECT_LE(error, s.tolerance * most) << name;
    EXPECT_GT(most, 0) << name;
  }
}

const Shape kShapes[] = {
    {{1, 2, 2, 192, 192, 64, 64, true, false}, "Causal"},
    {{2, 1, 1, 100, 90, 40, 24, false, true}, "Ragged"},
    {{1, 4, 2, 96, 128, 32, 32, true, true}, "Groups"},
    {{1, 2, 2, 64, 200, 16, 48, false, false}, "OtherKeys"},
    // Where scores are compared with their largest one, gradients of queries and keys are no kernels of attention.
    {{1, 2, 2, 64, 96, 8, 16, false, false, true}, "Largest", "f32", 1e-5, 2},
    {{1, 1, 1, 128, 128, 128, 96, true, false}, "WideBf16", "bf16", 2e-2},
    {{1, 4, 1, 70, 66, 64, 64, false, true}, "GroupsF16", "f16", 4e-3},
};

/// Logarithms of weights are mixed. A factor of each row is met first in the last pass over the keys.
TEST(DeviceScoresTest, LogarithmsAreMixed) {
  constexpr int64_t kRows = 70, kKeys = 100, kDepth = 16;
  std::vector<float> q = draw(kRows * kDepth, 1, 1), k = draw(kDepth * kKeys, 2, 1),
                     v = draw(kKeys * kDepth, 3, 1), factors = draw(kRows, 4, 1);
  proto::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto *graph = model.mutable_graph();
  graph->set_name("g");
  auto input = [&](const char *name, const std::vector<int64_t> &dims) {
    describe(graph->add_input(), name, proto::TensorProto::FLOAT, dims);
  };
  input("q", {kRows, kDepth}), input("k", {kDepth, kKeys}), input("v", {kKeys, kDepth}),
      input("r", {kRows, 1});
  describe(graph->add_output(), "y", proto::TensorProto::FLOAT, {kRows, kDepth});
  auto node = [&](const char *op, const std::vector<const char *> &from, const char *to) {
    auto *added = graph->add_node();
    added->set_op_type(op);
    for (const char *name : from)
      added->add_input(name);
    added->add_output(to);
  };
  node("MatMul", {"q", "k"}, "s"), node("LogSoftmax", {"s"}, "l"), node("Mul", {"l", "r"}, "w"),
      node("MatMul", {"w", "v"}, "y");
  TemporaryFolder folder;
  mustRun({"train", folder.write("model.onnx", model.SerializeAsString()), "-o", folder / "artifact",
           "--loss", "none", "--target", "sm_80", "--quiet"});
  Device device;
  Session session(folder / "artifact", &device.host);
  for (auto [name, values] : {std::pair{"q", &q}, {"k", &k}, {"v", &v}, {"r", &factors}})
    ASSERT_EQ(ortc_write(session.get(), name, values->data(), values->size() * 4), ORTC_OK)
        << session.message();
  ASSERT_EQ(ortc_predict_step(session.get()), ORTC_OK) << session.message();
  std::vector<float> y(kRows * kDepth);
  ASSERT_EQ(ortc_read(session.get(), "y", y.data(), y.size() * 4), ORTC_OK) << session.message();
  double most = 0, error = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<double> s(kKeys);
    double sum = 0;
    for (int64_t j = 0; j < kKeys; ++j) {
      for (int64_t d = 0; d < kDepth; ++d)
        s[j] += static_cast<double>(q[row * kDepth + d]) * k[d * kKeys + j];
      sum += std::exp(s[j]);
    }
    for (int64_t e = 0; e < kDepth; ++e) {
      double wanted = 0;
      for (int64_t j = 0; j < kKeys; ++j)
        wanted += (s[j] - std::log(sum)) * factors[row] * v[j * kDepth + e];
      most = std::max(most, std::fabs(wanted));
      error = std::max(error, std::fabs(y[row * kDepth + e] - wanted));
    }
  }
  EXPECT_LE(error, 1e-5 * most); // as above
}

class DeviceAttentionFaultsTest : public DeviceAttentionTest {};

/// Of forward attention and of both kernels of its gradient.
TEST_P(DeviceAttentionFaultsTest, EveryFaultIsNoticed) {
  const Shape &s = GetParam();
  std::vector<std::string> arguments = prepare(s);
  arguments.insert(arguments.end(), {"-o", folder / "artifact"});
  mustRun(arguments);
  EnvironmentVariable threads("ORTC_EMULATOR_THREADS", "1");
  std::vector<Fault> faults = listMatrixFaults(imagesOf(folder / "artifact/model.ortc").front().bytes);
  std::map<std::string, std::vector<float>> wanted;
  {
    EnvironmentVariable counts("ORTC_EMULATOR_COUNT", folder / "counts.json");
    wanted = run(s);
  }
  ASSERT_FALSE(wanted.empty());
  // Those of kernels that other entries have are not met.
  const std::string launched = readFile(folder / "counts.json");
  std::erase_if(faults, [&](const Fault &fault) {
    return launched.find('"' + fault.text.substr(0, fault.text.find(':')) + '"') == std::string::npos;
  });
  for (const Fault &fault : faults) {
    EnvironmentVariable mutation("ORTC_EMULATOR_MUTATE", fault.text);
    testing::internal::CaptureStderr();
    auto found = run(s);
    testing::internal::GetCapturedStderr();
    EXPECT_NE(found, wanted) << fault.text << ": " << fault.instruction;
  }
  std::printf("%s: %zu faults\n", s.name, faults.size());
  EXPECT_GE(faults.size(), 100u);
}

const Shape kFaultShapes[] = {{{1, 1, 1, 64, 96, 32, 32, true, false}, "Causal"},
                              {{1, 1, 1, 128, 128, 32, 32, true, false}, "Bf16", "bf16"}};

INSTANTIATE_TEST_SUITE_P(Faults, DeviceAttentionFaultsTest, testing::ValuesIn(kFaultShapes),
                         [](const auto &info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(Shapes, DeviceAttentionTest, testing::ValuesIn(kShapes),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
