// Arithmetic of 64 bits for processors of 32.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace llvm {
class Module;
}

namespace ortc::cpu {

/// Writes out what LLVM would make calls of a library of: divisions of i64, and conversions between i64 and floats, of
/// scalars and of vectors. Divisions become calls of a function within the module. Results are those of the operations,
/// bit for bit. For targets with Isa::expandsLong, on optimised code.
void expandLongIntegers(llvm::Module &module);

} // namespace ortc::cpu
