// No fault in attention for AMD's matrix cores goes unnoticed by fibres.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/fibres/AttentionProgram.h"
#include "test/gpu/fibres/FibreKernel.h"

#include <tuple>

using namespace ortc;
using namespace ortc::fibres;

namespace {

/// Several steps of keys, and two blocks of rows whose scores a mask hides in part.
constexpr AttentionShape kFull{"f32", 1, 1, 1, 80, 96, 64, 32, true},
    kNarrow{"bf16", 1, 1, 1, 80, 96, 64, 32, true, false, false, "bf16"};

class FibreAttentionFaultsTest
    : public testing::TestWithParam<std::tuple<const char *, const AttentionShape *>> {
protected:
  static void check(const std::string &text) {
    FibreKernel kernel(text, plan::KernelKind::attention, std::get<0>(GetParam()), Numerics::Fast);
    checkFaults(kernel, {Fault::barrier, Fault::product, Fault::swizzle, Fault::load, Fault::store});
  }
  static AttentionProgram program() { return AttentionProgram(*std::get<1>(GetParam())); }
};

TEST_P(FibreAttentionFaultsTest, OfForwardAreNoticed) { check(program().forward()); }
TEST_P(FibreAttentionFaultsTest, OfTheGradientOfQueriesAreNoticed) { check(program().queryGradient()); }
TEST_P(FibreAttentionFaultsTest, OfTheGradientsOfKeysAndValuesAreNoticed) { check(program().keyGradients()); }

INSTANTIATE_TEST_SUITE_P(Ways, FibreAttentionFaultsTest,
                         testing::Combine(testing::Values("gfx90a", "gfx1100"),
                                          testing::Values(&kFull, &kNarrow)),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param)->name;
                         });

} // namespace
