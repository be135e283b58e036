// Index arithmetic in the width of pointers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace llvm {
class Module;
}

namespace ortc::cpu {

/// Computes in i32 what `module` computes in i64 and is proven to lie in the range of i32: counters of loops with known
/// bounds, and offsets. Numbers that are loaded or drawn may have any value, and stay what they are. For targets with
/// Isa::expandsLong, before LLVM's own passes, which remove the conversions between both.
void narrowIndices(llvm::Module &module);

} // namespace ortc::cpu
