// Faults that tests put into kernels when a module is loaded.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "test/gpu/emulator/parse/Ptx.h"

namespace ortc::emulator {

/// Changes the kernels that `mutations` names, several of them separated by ';':
///   KERNEL:LINE:remove       the instruction of that line of the PTX
///   KERNEL:barrier:N         the n-th barrier, from 1
///   KERNEL:access:N:OFFSET   adds OFFSET to the address of the n-th ld or st that is not of a parameter
/// Kernels of other modules are left out. Throws ParseError when a kernel has no such instruction.
void mutate(Module &module, const std::string &mutations);

} // namespace ortc::emulator
