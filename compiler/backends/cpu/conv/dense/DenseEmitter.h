// Shared by the dense convolution kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dense: one group, every channel meets every feature. Reductions are cut in blocks that fit the caches; the
// cuts depend on the shape only.
#pragma once

#include "compiler/backends/cpu/conv/ConvEmitter.h"

namespace ortc::cpu {

/// Some channels of some rows of one or a few images: in the workspace with a border of zeros, or the images
/// themselves.
struct ImageBlock {
  llvm::SmallVector<int64_t, 3> image;  ///< spatial sizes of an image
  llvm::SmallVector<int64_t, 3> sizes;  ///< of the block
  llvm::SmallVector<int64_t, 3> origin; ///< block index of image position 0, in dimension 0 for grid block 0
  int64_t allChannels = 1, channels = 1, channelBlocks = 1;
  int64_t images = 1;      ///< of a block
  int64_t blockPoints = 1; ///< grid points of dimension 0 that a block serves
  int64_t blocks = 1;      ///< per image
  int64_t rowStep = 1;     ///< image rows between grid points of dimension 0
  int64_t span = 1;        ///< image rows that a grid point of dimension 0 reaches over
  bool copied = false;     ///< into the workspace

  int64_t elements() const;
  /// Elements between neighbours along every dimension.
  llvm::SmallVector<int64_t> steps() const;
};

/// Blocks of the reduction: filter positions of the first dimension, and channels.
struct DepthBlocks {
  int64_t taps, channels;
};
DepthBlocks planDepth(int64_t taps, int64_t tapsInside, int64_t channels);

/// The border that the walks of all phases need, `channels` of `allChannels` at a time; cut into groups by cutGroups.
/// Some channels of images without border are copied where windows are wider than a point or points lie `furthest`
/// elements apart or more.
ImageBlock planImages(llvm::ArrayRef<llvm::SmallVector<kernels::Walk, 3>> walks,
                      llvm::ArrayRef<int64_t> image, int64_t allChannels, int64_t channels, int64_t furthest);
/// Groups of `points` grid points of dimension 0 in each of `batch` images: about `wanted` of them, of one image in
/// multiples of `unit`, or of several images (at most `mostImages`).
void cutGroups(ImageBlock &block, int64_t batch, int64_t points, int64_t wanted, int64_t mostImages,
               int64_t unit, int64_t elementBytes);

/// Rows and vectors of a register tile are not more.
inline constexpr int64_t kMostRows = 14, kMostVectors = 4;

/// Rows of a register tile: `rows` neighbours in each of `images` images.
struct TileChoice {
  int64_t rows = 1, images = 1, vectors = 1;
};
struct TileOptions {
  bool divisors;       ///< heights that divide blocks of the only dimension
  bool severalImages;  ///< a tile may have rows of several images
  bool threeVectors;   ///< panels need not divide blocks of 64 columns
  int64_t vectors = 0; ///< given ones, or 0
  int64_t mostRows = kMostRows;
};

/// A panel of columns of the operand that is loaded as vectors.
struct Panel {
  mlir::Value column;       ///< the first
  int64_t vectors, tail;    ///< live lanes of the last vector
  mlir::Value buffer, base; ///< `base`: of the panel in the workspace
  int64_t pitch;
};

class DenseEmitter : public ConvEmitter {
public:
  using ConvEmitter::ConvEmitter;

protected:
  int64_t bytesOf(int64_t elements) const { return (elements * elementBytes + 63) / 64 * 64; }
  emit::Offset offsetOf(Value value) {
    auto constant = constantOf(value);
    return constant ? emit::Offset(*constant) : emit::Offset(value);
  }
  /// `body` where a < b or the like holds.
  void guarded(mlir::arith::CmpIPredicate predicate, Value a, Value b, llvm::function_ref<void()> body);

  /// Plans the kernel: with a choice, where it is possible, or (null) as the cost table has it. Tells the choice that
  /// came of it. May be called again.
  using Planner = llvm::function_ref<KernelChoice(const KernelChoice *)>;
  /// Plans with the choice of the spec for this kernel, or without, and fills in `info.blocking`. Fails with
  /// a diagnostic where another choice comes out than went in: it is impossible.
  llvm::LogicalResult choose(llvm::StringRef algorithm, Planner plan);
  /// The number that `choice` (may be null) has for `name`.
  static int64_t wish(const KernelChoice *choice, const char *name, int64_t usual);
  /// The most rows of a tile that it says.
  static int64_t wishRows(const KernelChoice *choice, int64_t usual = kMostRows);

  /// The tile of which `count` neighbours and `columns` columns take the fewest cycles.
  TileChoice pickTile(int64_t count, int64_t images, int64_t columns, const TileOptions &options) const;
  bool fits(int64_t rows, int64_t vectors) const;
  /// `vectors` where a tile may have as many, else 0.
  int64_t possibleVectors(int64_t vectors, int64_t columns, bool mayBeThree) const;
  /// Steps of a reduction of `steps` that a tile with `sums` accumulators takes at once.
  int64_t unrollOf(int64_t sums, int64_t steps) const;

  /// Copies a channel block of the images from `firstImage` on, for grid block `blockIndex`.
  void fillImages(const ImageBlock &block, Value image, Value firstImage, Value blockIndex,
                  Value channelBlock);
  /// Of channel 0 of the block at `position` of an image.
  Value imagePlace(const ImageBlock &block, Value firstImage, Value image, Value blockIndex,
                   Value channelBlock, mlir::ArrayRef<Value> position);
  int64_t imageStep(const ImageBlock &block) const;

  /// The microkernel on the rows `live` of a tile of `vectors` vectors, whose sums are among `sums`. Rows
  /// that `operands` are asked for count the live ones only.
  void sumRows(llvm::ArrayRef<int64_t> live, int64_t vectors, llvm::MutableArrayRef<Value> sums,
               ReductionLoop run, const MicrokernelOperands &operands);
  /// Adds the live lanes of `sum` to the filter's gradient, or stores them where `isFirst` holds or is null.
  void addTo(Value place, int64_t live, Value sum, Value isFirst);

  /// The panels of `vectors` vectors in the columns `own` of `columns`: body(first column, vectors, live
  /// lanes of the last).
  void overColumns(emit::IndexRange own, int64_t columns, int64_t vectors,
                   llvm::function_ref<void(Value, int64_t, int64_t)> body);
  /// panel[place / pitch + k][i] = from[base + k * step + i] for `depth` values of k.
  void copyPanel(const Panel &panel, Value from, Value base, int64_t step, Value place, Value depth);
  /// panel[place / pitch + k][i] = from[base + i * step + k].
  void transposePanel(const Panel &panel, Value from, Value base, int64_t step, Value place, int64_t depth);
};

} // namespace ortc::cpu
