// Where kernels for AMD's GPUs read their arguments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace llvm {
class Module;
}

namespace ortc::gpu {

/// Loads the arguments of kernels that have many of them in each block that uses them, or before its loops. LLVM loads
/// all before the first branch, into scalar registers, of which there are about a hundred. For optimised code of AMD's
/// processors.
void loadArgumentsWhereUsed(llvm::Module &code);

} // namespace ortc::gpu
