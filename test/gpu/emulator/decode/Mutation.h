// Faults that tests put into kernels when a module is loaded.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "test/gpu/emulator/parse/Ptx.h"

namespace ortc::emulator {

/// Changes the kernels that `mutations` names, several of them separated by ';'. One is KERNEL:WHICH:N or
/// KERNEL:WHICH:N:CHANGE. The n-th instruction of the kernel that is WHICH, from 1, is meant; WHICH is
///   barrier      a barrier of the block
///   access       an ld or st that is not of a parameter
///   OPCODE       the opcode, or its beginning up to a point: xor, xor.b32, cp.async.wait_group, ldmatrix
/// or, instead of WHICH:N, LINE of the PTX. CHANGE is
///   remove         or nothing: there is no such instruction
///   pass           its result is its first operand: no swizzle by xor, no sum by add
///   OFFSET         added to its first address, such as the destination of cp.async; without an address to its
///                  last number, such as the groups that cp.async.wait_group leaves
///   source:OFFSET  added to its second address: the source of cp.async
/// Kernels of other modules are left out. Throws ParseError when a kernel has no such instruction.
void mutate(Module &module, const std::string &mutations);

} // namespace ortc::emulator
