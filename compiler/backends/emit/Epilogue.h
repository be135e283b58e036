// The elementwise operations behind a contraction or convolution as code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/MathExpansion.h"
#include "compiler/kernels/contraction/FusedEpilogue.h"

#include <functional>

namespace ortc::emit {

/// Handed to the epilogue: one vector of accumulators (or one alone) and access to the operands at its position.
class EpilogueAccess {
public:
  virtual ~EpilogueAccess() = default;
  /// Elements of `operand` at the position of the lanes, as a vector of `lanes()` elements of the buffer's element
  /// type (broadcast where the operand does not move with the lanes). Lanes beyond the edge hold zero or anything.
  virtual mlir::Value load(mlir::OpBuilder &builder, mlir::Location loc, unsigned operand) = 0;
  /// Stores the live lanes.
  virtual void store(mlir::OpBuilder &builder, mlir::Location loc, unsigned operand, mlir::Value value) = 0;
  virtual int64_t lanes() const = 0; ///< 0: all values are scalars
};

/// Called once per vector of finished accumulators (of `accumulatorType`) with builder and location of the place.
/// Must store every written operand. Has no other effect than these loads and stores.
using Epilogue =
    std::function<void(mlir::OpBuilder &, mlir::Location, EpilogueAccess &, mlir::Value accumulator)>;

/// The code of an epilogue; null where it stores the result as it is.
Epilogue codeOf(std::shared_ptr<const kernels::FusedEpilogue> analysis, MathOptions options);
/// The same where sums have another type than the result, to which they are rounded: null only where they are stored as
/// they are.
Epilogue codeOf(std::shared_ptr<const kernels::FusedEpilogue> analysis, mlir::Type accumulatorType,
                MathOptions options);

} // namespace ortc::emit
