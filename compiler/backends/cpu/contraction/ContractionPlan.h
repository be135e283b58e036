// How a contraction is cut: which dims become vector lanes, rows, blocks and chunks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/contraction/Contraction.h"

#include <optional>

namespace ortc::cpu {

/// A run of columns of one tile shape.
struct ContractionStrip {
  int64_t begin = 0, end = 0; ///< columns
  int64_t vectors = 1;        ///< of the tile
  int64_t tail = 0;           ///< live lanes of the last vector; the lane count when it is full
  int64_t rows = 1;           ///< of the tile
};

/// Everything the emitter decides before it emits.
struct ContractionPlan : kernels::ContractionAxes {
  int64_t lanes = 1;
  bool usesFma = true; ///< sums need no register for a product

  bool packLanes = false;     ///< copy the lane operand to the workspace, block by block
  bool packOnce = false;      ///< for all outer indices of a chunk, which share it
  ContractionStrip strips[2]; ///< main strip and edge; empty ones have begin == end
  /// rows of the main strip that are copied tile by tile before going along the panels
  int64_t packedRows = 0;

  /// Rows of a narrow operand that are extended at once, before they are broadcast element by element; 0: none.
  int64_t widenedRows = 0;

  /// Whether a tile fetches the rows of the next one, and where its results will be.
  bool fetchesRows = false, fetchesResults = false;

  int64_t outerPerChunk = 1, rowChunk = 0, laneChunk = 0;
  int64_t outerChunks = 1, rowChunks = 1, laneChunks = 1;

  int64_t packedElements = 0;     ///< workspace for the packed operand
  int64_t packedRowElements = 0;  ///< workspace for packed or widened rows
  int64_t widenedPitch = 0;       ///< between widened rows
  int64_t packedTileElements = 0; ///< of them for one tile, with a vector to spare
  int64_t partialElements = 0;    ///< workspace for partial sums
  int64_t partialPitch = 0;
  int64_t tileElements = 0; ///< workspace for the sums of a tile on their way to a rolled epilogue

  /// The strip that most columns are in.
  const ContractionStrip &mainStrip() const { return strips[0].end > 0 ? strips[0] : strips[1]; }
};

inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t roundUp(int64_t a, int64_t b) { return ceilDiv(a, b) * b; }

/// The parts of a plan that change no order of sums, and may be chosen otherwise.
struct ContractionChoice {
  int64_t rows = 1, vectors = 1;                  ///< of the tile of most columns
  int64_t depth = 1;                              ///< ContractionPlan::kBlock
  int64_t outer = 1, rowChunk = 1, laneChunk = 1; ///< of a chunk: outer indices, rows, columns
  bool packLanes = false;
  int64_t packedRows = 0;

  bool operator==(const ContractionChoice &) const = default;
};

/// The operand that decides about the direction of lanes: the first one written, C without epilogue.
unsigned findOutput(const ContractionSpec &spec);

/// The plan of the cost table. Orders of sums depend on the shape alone.
ContractionPlan planContraction(const ContractionSpec &spec, const Target &target);

/// The plan with another choice; nothing where the choice is impossible.
std::optional<ContractionPlan> planContraction(const ContractionSpec &spec, const Target &target,
                                               const ContractionChoice &choice);

/// Estimated cycles of the tiles of one outer index and one k.
double estimateTiles(const ContractionPlan &plan, const Target &target);

/// Columns of a chunk are multiples of this: whole panels.
int64_t laneUnitOf(const ContractionPlan &plan);
/// Rows of a chunk are multiples of this: whole tiles of all heights.
inline constexpr int64_t kRowUnit = 48;
/// Outer indices share nothing: times as many chunks of them as are enough.
inline constexpr int64_t kOuterChunks = 4;

/// Emits the kernel for the shapes that `usesDotKernel` names (DotKernel.cpp).
KernelInfo emitDotKernel(mlir::OpBuilder &builder, mlir::ModuleOp module, const ContractionSpec &spec,
                         const Target &target);

} // namespace ortc::cpu
