// No fault in attention for AMD's matrix cores goes unnoticed by fibres.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/fibres/AttentionProgram.h"
#include "test/gpu/fibres/FibreKernel.h"

using namespace ortc;
using namespace ortc::fibres;

namespace {

/// Several steps of keys, and two blocks of rows whose scores a mask hides in part.
constexpr AttentionShape kFull{"f32", 1, 1, 1, 80, 96, 64, 32, true},
    kNarrow{"bf16", 1, 1, 1, 80, 96, 32, 32, true, false, false, "bf16"};

struct Way {
  const char *processor;
  const AttentionShape &shape;
};
void PrintTo(const Way &way, std::ostream *stream) { *stream << way.processor << " " << way.shape.name; }

class FibreAttentionFaultsTest : public testing::TestWithParam<Way> {
protected:
  static void check(const std::string &text) {
    FibreKernel kernel(text, plan::KernelKind::attention, GetParam().processor, Numerics::Fast);
    checkFaults(kernel, {Fault::barrier, Fault::product, Fault::swizzle, Fault::load, Fault::store});
  }
  static AttentionProgram program() { return AttentionProgram(GetParam().shape); }
};

TEST_P(FibreAttentionFaultsTest, OfForwardAreNoticed) { check(program().forward()); }
TEST_P(FibreAttentionFaultsTest, OfTheGradientOfQueriesAreNoticed) { check(program().queryGradient()); }
TEST_P(FibreAttentionFaultsTest, OfTheGradientsOfKeysAndValuesAreNoticed) { check(program().keyGradients()); }

const Way kWays[] = {{"gfx90a", kFull}, {"gfx1100", kFull}, {"gfx1100", kNarrow}};

INSTANTIATE_TEST_SUITE_P(Ways, FibreAttentionFaultsTest, testing::ValuesIn(kWays), [](const auto &info) {
  return std::string(info.param.processor) + "_" + info.param.shape.name;
});

} // namespace
