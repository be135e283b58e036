// Convolutions and their gradients of bf16 and f16 operands that are extended to f32, against the evaluator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/conv/ConvCheck.h"

using namespace ortc::cpu::test;

namespace {

/// By every algorithm.
const Conv kConvs[] = {{2, {9, 9}, 16, {3, 3}, 32, {}, {1, 1}},                 // Winograd
                       {2, {11, 14}, 12, {3, 3}, 20, {2, 2}, {1, 1}},           // dense
                       {2, {9, 8}, 24, {1, 1}, 72},                             // a product
                       {2, {9, 8}, 24, {1, 1}, 40, {2, 2}},                     // a product of some points
                       {2, {32, 30}, 3, {3, 3}, 16, {}, {1, 1}},                // a first layer
                       {2, {7, 7}, 12, {3, 3}, 18, {}, {1, 1}, {}, {}, 3},      // groups
                       {2, {9, 9}, 36, {3, 3}, 36, {2, 2}, {1, 1}, {}, {}, 36}, // depthwise
                       {2, {8, 8}, 32, {3, 3}, 64, {}, {1, 1}, {}, {}, 16},     // narrow groups
                       {1, {7, 8, 9}, 4, {3, 2, 2}, 5}};                        // three dimensions

/// How many products are summed.
double summedBy(const Conv &c, Kind kind) {
  double filter = 1, output = double(c.batch);
  for (int64_t size : c.filter)
    filter *= double(size);
  for (int64_t size : outputOf(c))
    output *= double(size);
  return kind == Kind::FilterGrad
             ? output
             : filter * double(kind == Kind::Forward ? c.channels : c.features) / double(c.groups);
}

TEST(NarrowConvTest, BothOperands) {
  for (const Conv &given : kConvs)
    for (Kind kind : kAllKinds) {
      Conv c = complete(given);
      compareWithEvaluator(narrowProgramOf(c, kind, "bf16"), generate, 1.2e-7 * (4 + summedBy(c, kind)),
                           Coverage::Targets);
    }
}

TEST(NarrowConvTest, OneOperandAndOtherTypes) {
  for (const Conv &given : kConvs)
    for (Kind kind : kAllKinds) {
      Conv c = complete(given);
      bool first = turnOf(programOf(c, kind, "f32"), 2) == 0;
      compareWithEvaluator(narrowProgramOf(c, kind, "f16", first, !first), generate,
                           1.2e-7 * (4 + summedBy(c, kind)), Coverage::Widest);
    }
}

} // namespace
