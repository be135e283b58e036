// Shared by all convolution kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/contraction/Contraction.h"
#include "compiler/backends/cpu/contraction/Microkernel.h"
#include "compiler/backends/cpu/contraction/VectorAccess.h"
#include "compiler/backends/cpu/conv/SourceBlock.h"
#include "compiler/backends/emit/LoopBuilder.h"
#include "compiler/kernels/conv/ConvForm.h"

namespace ortc::cpu {

/// Features that a block of columns holds at most.
inline constexpr int64_t kConvColumns = 64;

/// A convolution kernel to be made.
struct ConvSpec {
  std::string name;
  mlir::Operation *op = nullptr;
  llvm::SmallVector<emit::KernelBuffer> buffers; ///< in ABI order
  /// Those of the operation, then what the epilogue touches; without epilogue operand 2 is the result.
  llvm::SmallVector<kernels::ConvOperand> operands;
  std::array<mlir::Type, 2> narrow; ///< as in ConvForm
  emit::Epilogue epilogue;
  bool rollEpilogue = false; ///< as in ContractionSpec
  Numerics numerics = Numerics::Fast;
  const KernelChoices *choices = nullptr; ///< as in ContractionSpec
};

class ConvEmitter : public emit::LoopBuilder {
public:
  ConvEmitter(mlir::ModuleOp module, const ConvSpec &spec, const Target &target);

protected:
  /// Creates the kernel function once `info.chunks` (of one part) and the workspace are known. Behind it
  /// `info.chunks` is that of all parts; `kernel.chunk` counts within a part, and `kernel.buffers` are views
  /// of what the part has of them, at an offset.
  void begin(mlir::ModuleOp module, int64_t workspaceBytes);

  /// Fills the zero border of the workspace block that never changes, once per chunk.
  void clearBlock(const SourceBlock &block);
  /// Copies the rows of image `n` that grid block `blockIndex` needs; rows outside the image become zero.
  void fillBlock(const SourceBlock &block, mlir::Value image, mlir::Value n, mlir::Value blockIndex);

  /// Position of the element (row, rest..., channel 0) of the source: `row` counts from the first row of the block when
  /// it is copied, else from the top of the image.
  mlir::Value sourceOffset(const SourceBlock &block, mlir::Value n, mlir::ArrayRef<mlir::Value> position);

  mlir::Value operandBuffer(unsigned operand) { return kernel.buffers[spec.operands[operand].buffer]; }
  /// Elements of any buffer; those of narrow operands as f32.
  mlir::Value load(mlir::Value buffer, mlir::Value at, int64_t width);
  mlir::Value loadScalar(mlir::Value buffer, mlir::Value at);
  mlir::Value loadLive(mlir::Value buffer, emit::Offset at, LaneRange range);
  mlir::Value offsetValue(const emit::Offset &offset);
  mlir::Value linear(mlir::ArrayRef<int64_t> sizes, mlir::ArrayRef<mlir::Value> indices);
  void copyRun(mlir::Value from, mlir::Value at, mlir::Value to, mlir::Value place, int64_t count);
  void zeroRun(mlir::Value buffer, mlir::Value at, int64_t count);
  mlir::Value multiplyAdd(mlir::Value a, mlir::Value b, mlir::Value sum);
  /// The epilogue on a vector of results of which the first `live` exist (all without it); `position` is that of its
  /// first element in the result. For every element once, unless all buffers are distinct: the result may lie over what
  /// the epilogue reads.
  void storeResult(mlir::ArrayRef<mlir::Value> position, mlir::Value sums, std::optional<int64_t> live = {});
  /// Fetches the cache line of `buffer` that holds element `at`, inside of it or not, into the cache of this level.
  void fetch(mlir::Value buffer, mlir::Value at, bool writes, unsigned level = 1);
  /// Fetches the operands that storeResult will touch at `position`, without those that all positions share.
  void fetchResult(mlir::ArrayRef<mlir::Value> position);

  mlir::Value widened(mlir::Value buffer, mlir::Value value);

  const ConvSpec &spec;
  const Target &target;
  kernels::ConvShape shape;
  mlir::FloatType element;
  int64_t elementBytes, lanes, columns; // columns: of one register tile
  int64_t bytesRead = 0, bytesWritten = 0;
  bool fma;
  KernelInfo info;
  KernelFunction kernel;
  mlir::Value blockBuffer; // the workspace's block, null when no block is copied
};

/// Rows of register tiles that cover `count` rows evenly with at most `most` rows each: {size, how many of it}, larger
/// ones first.
llvm::SmallVector<std::pair<int64_t, int64_t>, 2> evenTiles(int64_t count, int64_t most);

} // namespace ortc::cpu
