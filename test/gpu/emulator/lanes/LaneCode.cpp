// Puts the parts of one set of vector instructions together.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cfenv>

#include "test/gpu/emulator/lanes/Lists.h"

namespace ortc::emulator {
namespace {

/// Rounding modes of PTX, by `mode`.
constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

void rounded(Warp &warp, const Instruction &i, uint32_t mask) {
  std::fesetround(kModes[i.mode & 3]);
  i.inner(warp, i, mask);
  std::fesetround(FE_TONEAREST);
}

} // namespace

namespace ORTC_EMULATOR_ISA {
LaneCode makeLaneCode() {
  LaneCode code = {};
  code.lists[0] = integerOperations();
  code.lists[1] = compareOperations();
  code.lists[2] = floatOperations();
  code.lists[3] = halfOperations();
  code.lists[4] = integerConversions();
  code.lists[5] = floatConversions();
  listAccesses(code);
  listAtomics(code);
  listTiles(code);
  listGroupProducts(code);
  listMbarriers(code);
  code.products = products();
  code.rounded = rounded;
  code.runWarp = runWarp;
  code.runCountedWarp = runCountedWarp;
  return code;
}
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
