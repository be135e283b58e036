// Writing nn.scan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/nn/TensorBuilder.h"

namespace ortc::nn {

/// What the body of a loop is given in one iteration.
struct ScanArguments {
  llvm::SmallVector<mlir::Value> carried, slices, invariants;
};

/// Builds a loop of `count` iterations; `body` gives the next carried values, then items to be stacked.
/// Returns the last carried values, then the stacked ones.
mlir::ResultRange buildScan(TensorBuilder &builder, int64_t count, bool reverse, mlir::ValueRange inits,
                            mlir::ValueRange sequences, mlir::ValueRange invariants,
                            llvm::function_ref<llvm::SmallVector<mlir::Value>(const ScanArguments &)> body);

} // namespace ortc::nn
