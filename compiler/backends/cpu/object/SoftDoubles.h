// Arithmetic of f64 for processors whose registers of floats have 32 bits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace llvm {
class Module;
}

namespace ortc::cpu {

/// Writes out the operations of f64 that LLVM would make calls of a library of, of scalars and of vectors of fixed
/// length: they become calls of integer functions within the module, which has only those it needs. So do conversions
/// between i64 and all floats. Results are those of IEEE 754, rounded to nearest even, subnormal ones included,
/// whatever the processor does with those of f32. NaN is quiet and has no payload. Loads, stores, phis, selects and
/// arguments stay f64. A remainder (frem) is left alone. For targets with Isa::softDoubles, on optimised code.
void expandDoubles(llvm::Module &module);

} // namespace ortc::cpu
