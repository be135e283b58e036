// No fault in a product for AMD's matrix cores goes unnoticed by fibres.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/fibres/FibreKernel.h"

using namespace ortc;
using namespace ortc::fibres;

namespace {

/// One way of a product through shared memory, of three stages of the depth or more.
struct Way {
  const char *name, *processor, *element;
  int64_t depth;
  bool isTurned;                  ///< the lines of both operands are steps of the depth
  std::vector<Fault::Kind> kinds; ///< that there must be, besides those of all products
};
void PrintTo(const Way &way, std::ostream *stream) { *stream << way.name; }

class FibreProductFaultsTest : public testing::TestWithParam<Way> {
protected:
  static std::string programOf(const Way &way) {
    std::string size = "64", depth = std::to_string(way.depth), element = way.element;
    std::string sizes = way.isTurned ? depth + "x" + size : size + "x" + depth;
    std::string stored = "tensor<" + sizes + "x" + element + ">", wide = "tensor<" + sizes + "xf32>",
                result = "tensor<64x64xf32>", code, x = "%x", w = "%w";
    if (element != "f32") {
      code = "%xw = arith.extf %x : " + stored + " to " + wide + "\n%ww = arith.extf %w : " + stored +
             " to " + wide + "\n";
      x = "%xw", w = "%ww";
    }
    std::string contracted = way.isTurned ? "[0] x [0]" : "[1] x [1]";
    return "func.func @k(%x: " + stored + ", %w: " + stored + ") -> " + result + " {\n" + code +
           "%d = nn.dot " + x + ", " + w + " batch = [] x [] contract = " + contracted + " : " + wide + ", " +
           wide + " -> " + result + "\nreturn %d : " + result + "\n}";
  }
};

TEST_P(FibreProductFaultsTest, EveryFaultIsNoticed) {
  const Way &way = GetParam();
  FibreKernel kernel(programOf(way), plan::KernelKind::contraction, way.processor, Numerics::Fast);
  std::vector<Fault::Kind> kinds{Fault::barrier, Fault::product, Fault::swizzle, Fault::load, Fault::store};
  kinds.insert(kinds.end(), way.kinds.begin(), way.kinds.end());
  checkFaults(kernel, kinds);
}

/// f32 of RDNA 3 is bf16 parts, whose sums begin anew every 32 steps.
const Way kWays[] = {
    {"gfx90a_f32", "gfx90a", "f32", 80, false, {}},
    {"gfx90a_bf16_turned", "gfx90a", "bf16", 96, true, {}},
    {"gfx942_f32_turned", "gfx942", "f32", 80, true, {}},
    {"gfx942_f16", "gfx942", "f16", 96, false, {}},
    {"gfx1100_bf16", "gfx1100", "bf16", 96, false, {}},
    {"gfx1100_f16_turned", "gfx1100", "f16", 96, true, {}},
    {"gfx1100_f32", "gfx1100", "f32", 96, false, {Fault::sum, Fault::part}},
    {"gfx1100_f32_turned", "gfx1100", "f32", 96, true, {Fault::sum, Fault::part}},
};

INSTANTIATE_TEST_SUITE_P(Ways, FibreProductFaultsTest, testing::ValuesIn(kWays),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
