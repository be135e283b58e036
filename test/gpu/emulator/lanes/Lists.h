// What the files of one set of vector instructions contribute to its LaneCode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/gpu/emulator/lanes/Lanes.h"

namespace ortc::emulator::ORTC_EMULATOR_ISA {

OperationList integerOperations();
OperationList compareOperations();
OperationList floatOperations();
OperationList halfOperations();
OperationList integerConversions();
OperationList floatConversions();
void listAccesses(LaneCode &code);
void listAtomics(LaneCode &code);
OperationList products();
void listTiles(LaneCode &code);
void listGroupProducts(LaneCode &code);
void listMbarriers(LaneCode &code);
void runWarp(Warp &warp);
void runCountedWarp(Warp &warp);

} // namespace ortc::emulator::ORTC_EMULATOR_ISA
