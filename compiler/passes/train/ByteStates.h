// States of optimizers in eight bits a value.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tim Dettmers, Mike Lewis, Sam Shleifer, Luke Zettlemoyer: 8-bit Optimizers via Block-wise Quantization
// (arXiv:2110.02861), as the package bitsandbytes has it: blocks of 256 values in the order of the file, of each the
// largest magnitude as f32, and of each value the code of what is nearest to its share of that.
#pragma once

#include "compiler/passes/train/Optimizers.h"

#include <array>
#include <optional>
#include <string>

namespace ortc::train {

/// The values of the codes, in ascending order: create_dynamic_map() of bitsandbytes. Powers of ten from 1e-6 to 1 are
/// cut into 1, 2, 4, ... 64 means, with both signs, or into 2, 4, ... 128; then 0 and 1.
std::array<float, 256> createDynamicMap(bool isSigned);

/// A tensor of a parameter's shape as rows of 256 values; the last row ends in zeros.
class Blocks {
public:
  static constexpr int64_t kSize = 256, kLeast = 4096;

  /// `axes` as in UpdateStep.
  Blocks(nn::TensorBuilder &b, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> axes);

  int64_t getCount() const { return count; }
  mlir::Value cut(mlir::Value tensor) const;
  mlir::Value join(mlir::Value rows) const;

private:
  nn::TensorBuilder &b;
  llvm::SmallVector<int64_t> shape, axes;
  int64_t elements = 1, count;
  bool isMoved;
};

/// Whether the optimizer keeps states in bytes, where tensors are large enough.
bool keepsBytes(const OptimizerDefinition &optimizer);

/// The name of a state's largest magnitudes.
std::string nameLargest(llvm::StringRef state);

/// Runs the formula, on rows where there are `blocks`, whose results are whole tensors again. Fails where the step is
/// refused.
mlir::LogicalResult applyFormula(const OptimizerDefinition &optimizer, const std::optional<Blocks> &blocks,
                                 UpdateStep &step);

/// i8 codes, and the largest magnitude of each row.
struct ByteState {
  mlir::Value codes, largest;
};

/// Rows of `element` from their codes.
mlir::Value decode(nn::TensorBuilder &b, const ByteState &state, bool isSigned, mlir::Type element);
/// The nearest codes, the lower of two; a row with a NaN has NaN for its largest magnitude.
ByteState encode(nn::TensorBuilder &b, mlir::Value rows, bool isSigned);

} // namespace ortc::train
