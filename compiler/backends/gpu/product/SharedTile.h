// One side of a product's tile in shared memory, as the numbers that a core multiplies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile has lines of neighbours as the operand has them in memory: along the depth, a line for each row or column of
// the product; otherwise a line for each step of the depth, unless numbers are transposed on their way. A core that
// reads only along the depth reads such lines number by number. A line consists of chunks, as many bytes as the core
// reads at once. The places of chunks within 128 bytes are swizzled by the number of the line, so that threads that
// fill or read a tile do not meet in a bank. For products of groups, lines longer than 128 bytes are cut into panels,
// one after the other.
#pragma once

#include "compiler/backends/gpu/product/MatrixTile.h"

namespace ortc::gpu {

/// Alignment of tiles whose fragments warps load: their chunks are swizzled by numbers of lines, not by addresses.
inline constexpr int64_t kLineAlignment = 128;

class SharedTile {
public:
  /// `place`: a pointer to the tile of the first stage. `firstIndex`: the row or column of the product that the tile
  /// begins with.
  SharedTile(ThreadBuilder &b, const ProductShape &shape, const MatrixPlan &plan, Side side,
             mlir::Value place, mlir::Value firstIndex);

  /// The stage after this one. A stage is given as its distance in bytes from the first one.
  static mlir::Value nextStage(ThreadBuilder &b, const MatrixPlan &plan, mlir::Value stage);

  /// Begins to copy the depth from `start` on into a stage, by all threads of the block.
  void copy(ProductAccess &access, mlir::Value start, mlir::Value stage);

  /// Load and store do the same in two steps. Between them, vectors of kUnit elements are in registers; `store` splits
  /// them into parts.
  llvm::SmallVector<mlir::Value> load(ProductAccess &access, mlir::Value start);
  void store(mlir::ValueRange units, mlir::Value stage);
  /// The result of `load` for zeros.
  llvm::SmallVector<mlir::Value> zeros();

  /// Where the warp that begins at `firstOfWarp` of the tile reads: all that a stage does not change.
  void prepareFragments(mlir::Value firstOfWarp);
  /// The fragment of rows or columns from kFragment * `number` of the warp's on, at depth kFragment * `step`.
  llvm::SmallVector<mlir::Value> loadFragment(mlir::Value stagePlace, int64_t number, int64_t step,
                                              int64_t part);
  /// For `loadFragment`.
  mlir::Value placeOf(mlir::Value stage);
  /// Whether lines of the tile are along the depth.
  bool areLinesAlongDepth() const { return layout.isAlongDepth || isTransposed(); }

  // Products of groups read lines of 128 bytes: one of the whole depth for each row or column, or else one of a panel
  // for each step.

  /// Bytes from the first of `count` rows or columns to the next one after them. `count` is a multiple of those of a
  /// panel.
  int64_t bytesOfRun(int64_t count) const {
    return layout.isAlongDepth ? count * kLineBytes : count * numberBytes() / kLineBytes * panelBytes();
  }
  /// Bytes from kFragment steps of the depth to the next.
  int64_t bytesOfSteps() const {
    return layout.isAlongDepth ? kFragment * numberBytes() : kFragment * kLineBytes;
  }
  /// Bytes from a panel to the next. A panel has a line for each step.
  int64_t panelBytes() const { return plan.tile.depth * kLineBytes; }

private:
  /// Elements that a thread loads at a time.
  static constexpr int64_t kUnit = 4;
  /// Bytes of a panel's line, within which chunks are swizzled.
  static constexpr int64_t kLineBytes = 128;

  int64_t numberBytes() const { return bytesOf(plan.format.number); }
  /// Bytes of a chunk, the unit of swizzling.
  int64_t chunkBytes() const { return plan.core->chunkBytesOf(plan.format.number); }
  int64_t chunk() const { return chunkBytes() / numberBytes(); }
  /// Whether lines of the operand lie across the depth, but those of the tile along it.
  bool isTransposed() const { return !layout.isAlongDepth && !plan.readsAcross; }
  /// Whether fragments are read number by number.
  bool isReadByNumber() const { return !areLinesAlongDepth() && !plan.core->readsAcrossDepth; }
  int64_t lines() const { return areLinesAlongDepth() ? extent : plan.tile.depth; }
  int64_t lineElements() const { return areLinesAlongDepth() ? plan.tile.depth : extent; }
  int64_t lineBytes() const { return lineElements() * numberBytes(); }
  int64_t partBytes() const { return lines() * lineBytes(); }
  int64_t parts() const { return plan.format.partsOf(side); }
  /// The number that is xored with the chunks of a line to swizzle them.
  mlir::Value swizzleOf(mlir::Value line);
  int64_t swizzleOf(int64_t line) const;
  /// Chunks that are swizzled among each other.
  int64_t swizzledChunks() const { return std::min(lineBytes(), kLineBytes) / chunkBytes(); }
  void prepareNumbers(mlir::Value firstOfWarp);
  llvm::SmallVector<mlir::Value> loadNumbers(mlir::Value stagePlace, int64_t number, int64_t step,
                                             int64_t part);
  /// The offset of a chunk within a part.
  mlir::Value offsetOf(mlir::Value line, mlir::Value chunk);
  /// Units (or chunks) of `elements` that each thread moves.
  int64_t movesOf(int64_t elements) const;
  /// The element that a thread moves first: its line, and its place there. In a transposed tile a line is a step of
  /// the depth.
  struct Origin {
    mlir::Value line, element;
  };
  /// The elements that it moves at a time: pieces of one line, counted from the origin. Neighbouring threads have
  /// neighbouring pieces.
  struct Unit {
    int64_t line = 0;
    llvm::SmallVector<int64_t> pieces;
  };
  Origin originOf(int64_t elements, int64_t piece);
  Unit unitOf(int64_t move, int64_t elements, int64_t piece) const;
  /// In a transposed tile a thread moves blocks: kUnit neighbours of each of `blockSteps` steps of the depth.
  Origin originOfBlocks();
  int64_t blockSteps() const;
  int64_t elementOfBlock(int64_t number) const; ///< from the origin on
  /// Elements of a piece. Few if they are not loaded together, so that a warp loads from few lines of memory.
  int64_t pieceOf() const { return layout.run >= kUnit ? kUnit : 2; }
  /// The places of what a thread moves of a stage.
  struct Walk {
    ProductAccess &access;
    mlir::Value start;
    Origin origin;
    /// where they follow from the first one, which `pointer` leads to
    std::optional<ElementStrides> strides = {};
    mlir::Value pointer = {}, inside = {};
    mlir::Type stored = {};
  };
  /// A pointer to an element of type `stored`, with the condition that it is within the product; null: it always is.
  struct Place {
    mlir::Value pointer, inside;
    mlir::Type stored;
  };
  Walk walkFrom(ProductAccess &access, mlir::Value start, const Origin &origin);
  /// The same for copies, whose places have to be some even where nothing is copied.
  Walk walkOfCopies(ProductAccess &access, mlir::Value start, const Origin &origin);
  std::optional<ElementStrides> stridesOf(const ProductAccess &access) const;
  Place placeIn(const Walk &walk, int64_t line, int64_t element);
  ElementPlace locate(const Walk &walk, int64_t line, int64_t element);
  /// The condition that an element is within the sides of the product, and `inside`.
  mlir::Value limit(const Walk &walk, int64_t line, int64_t element, mlir::Value inside);
  /// Appends `run` neighbours, loaded together.
  void loadRun(const Walk &walk, int64_t line, int64_t element, int64_t run,
               llvm::SmallVectorImpl<mlir::Value> &elements);
  /// The place of an element in shared memory: in the line `further` lines after `line`.
  mlir::Value targetOf(mlir::Value stagePlace, mlir::Value line, int64_t further, mlir::Value element);
  /// Writes neighbours of a line of the tile, all of their parts.
  void storeRun(mlir::Value target, llvm::SmallVector<mlir::Value> rest);
  void storeTransposed(mlir::ValueRange units, mlir::Value stagePlace);
  bool isStoredAsItIs() const;
  mlir::Type unitElement();

  ThreadBuilder &b;
  const ProductShape &shape;
  const MatrixPlan &plan;
  Side side;
  const OperandLayout layout;
  int64_t extent;
  mlir::Value place, firstIndex, thread;
  /// By what of the chunk's number a line does not change, all of a lane's; of numbers, by what a chunk's is swizzled
  /// with.
  llvm::SmallVector<mlir::Value> fragments;
};

/// Begins to copy both sides' depth from `range.begin` on into a stage, if that is below `range.end`, as one group of
/// copies; the group is empty otherwise, so that groups can be counted.
void copyStage(ThreadBuilder &b, ProductAccess &access, IndexRange range, mlir::Value stage, SharedTile &rows,
               SharedTile &columns);

/// The next bf16 parts of two f32 numbers, as `MatrixCore::roundPair` gives them. Unless they are the last ones, `low`
/// and `high` become the remainders, for further parts.
mlir::Value takeParts(ThreadBuilder &b, const MatrixCore &core, mlir::Value &low, mlir::Value &high,
                      bool areLast);

} // namespace ortc::gpu
