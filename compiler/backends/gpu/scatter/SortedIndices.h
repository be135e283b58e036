// Indices in order, with the positions that they were at.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"

namespace ortc::gpu {

/// Sorts an index tensor in the kernel's scratch, stably: runs of sorted indices are merged, many at a time, and every
/// thread finds out by binary searches where its one index goes. So each launch is a step of a whole sort, nothing
/// depends on the schedule, and the number of launches grows with the logarithm of the count.
class SortedIndices {
public:
  /// `indices`: the number of the buffer, which has `count` elements from 0 to 2^31 - 1.
  SortedIndices(KernelBuilder &kernel, unsigned indices, int64_t count)
      : kernel(kernel), indices(indices), count(count) {}

  /// Reserves the scratch and adds the launches.
  void emit();

  // In a launch after those.

  /// How many indices are less than `index`, an i32.
  mlir::Value countBelow(ThreadBuilder &b, mlir::Value scratch, mlir::Value index);
  /// The index at a place of the order, an i32.
  mlir::Value indexAt(ThreadBuilder &b, mlir::Value scratch, mlir::Value place);
  /// The position in the tensor of what is at a place of the order.
  mlir::Value positionAt(ThreadBuilder &b, mlir::Value scratch, mlir::Value place);

private:
  /// Two arrays of `count` words: the indices, and where they were.
  struct Order {
    mlir::Value indices, positions;
  };
  Order orderIn(ThreadBuilder &b, mlir::Value scratch, unsigned half);
  void emitMerge(int64_t run, int64_t fan, bool isFirst, unsigned from);

  KernelBuilder &kernel;
  unsigned indices;
  int64_t count;
  unsigned last = 0; ///< half of the scratch that has the result
};

} // namespace ortc::gpu
