// Sums that threads hand to each other through memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/ThreadBuilder.h"

namespace ortc::gpu {

/// The type of an array of such sums: truth values are bytes, others are as they are.
mlir::Type storedSumType(ThreadBuilder &b, mlir::Type sum);
void storeSum(ThreadBuilder &b, mlir::Value sum, mlir::Value array, mlir::Value at);
/// `type`: of the sum.
mlir::Value loadSum(ThreadBuilder &b, mlir::Type type, mlir::Value array, mlir::Value at);

} // namespace ortc::gpu
