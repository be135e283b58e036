// Attention and its gradients on AMD's matrix cores, against the evaluator's in f64.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/fibres/AttentionProgram.h"
#include "test/gpu/fibres/FibreKernel.h"

using namespace ortc;
using namespace ortc::fibres;
using plan::KernelKind;

namespace {

class FibreAttentionTest : public testing::TestWithParam<AttentionShape> {
protected:
  /// All results, one behind the other.
  void compare(const std::vector<char> &outputs, llvm::ArrayRef<evaluator::HostTensor> results,
               const std::string &processor) {
    size_t at = 0;
    for (auto [number, wanted] : llvm::enumerate(results)) {
      double most = 0, error = 0;
      for (int64_t i = 0; i < wanted.size(); ++i, at += sizeof(float)) {
        float got;
        std::memcpy(&got, outputs.data() + at, sizeof(got));
        ASSERT_TRUE(std::isfinite(got)) << "element " << i << " of result " << number << " on " << processor;
        most = std::max(most, std::fabs(wanted.getFloat(i)));
        error = std::max(error, std::fabs(got - wanted.getFloat(i)));
      }
      EXPECT_LE(error, GetParam().tolerance * most) << "result " << number << " on " << processor;
      EXPECT_GT(most, 0) << "result " << number;
    }
    EXPECT_EQ(at, outputs.size());
  }

  void checkKernel(const std::string &text) {
    for (llvm::StringRef processor : {"gfx90a", "gfx942", "gfx1100"}) {
      FibreKernel kernel(text, KernelKind::attention, processor, Numerics::Fast);
      EXPECT_TRUE(kernel.multipliesMatrices()) << processor.str();
      auto results = kernel.program.evaluate();
      ASSERT_TRUE(succeeded(results)) << text;
      std::vector<char> first;
      for (Order order : {Order::Forward, Order::Reverse, Order::Shuffled}) {
        std::vector<char> outputs = kernel.run(order);
        compare(outputs, *results, processor.str());
        if (HasFailure())
          return;
        if (first.empty())
          first = outputs;
        ASSERT_TRUE(first == outputs) << "other bits in another order on " << processor.str();
      }
    }
  }
};

TEST_P(FibreAttentionTest, Forward) { checkKernel(AttentionProgram(GetParam()).forward()); }
TEST_P(FibreAttentionTest, GradientOfQueries) { checkKernel(AttentionProgram(GetParam()).queryGradient()); }
TEST_P(FibreAttentionTest, GradientsOfKeysAndValues) {
  checkKernel(AttentionProgram(GetParam()).keyGradients());
}

const AttentionShape kShapes[] = {
    {"Causal", 1, 2, 1, 192, 192, 64, 64, true},
    {"Ragged", 2, 1, 1, 100, 90, 40, 24, false, true},
    {"Groups", 1, 2, 2, 96, 128, 32, 32, true, true},
    {"OtherKeys", 1, 2, 1, 64, 200, 16, 48},
    {"Dropout", 1, 2, 1, 70, 99, 32, 64, true, false, true},
    {"KeysAcross", 1, 1, 1, 70, 100, 16, 16, false, false, false, "f32", 1e-5, true},
    {"WideBf16", 1, 1, 1, 128, 128, 128, 96, true, false, false, "bf16", 2e-2},
    {"DropoutBf16", 1, 1, 2, 100, 72, 64, 64, false, true, true, "bf16", 2e-2},
    {"GroupsF16", 1, 1, 4, 70, 66, 64, 64, false, true, false, "f16", 4e-3},
};

INSTANTIATE_TEST_SUITE_P(Shapes, FibreAttentionTest, testing::ValuesIn(kShapes),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
