// How much a kernel does, whatever the machine.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

namespace ortc::kernels {

/// The counts of one call.
struct KernelWork {
  /// Additions, subtractions, multiplications and divisions of floating-point numbers, an fma as two, and one for
  /// each mathematical function.
  int64_t flops = 0;
  /// The work in simple operations where that is not `flops`: what functions expand to included, comparisons and
  /// steps through indices, too.
  int64_t cost = 0;
  int64_t bytesRead = 0, bytesWritten = 0; ///< of the buffers, each element once
};

} // namespace ortc::kernels
