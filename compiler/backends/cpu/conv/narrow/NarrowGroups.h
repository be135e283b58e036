// Convolutions of few channels a group.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A depthwise convolution, or any other whose groups are narrower than a vector: lanes run across the groups.
// Nothing is copied. Results along the last dimension are computed in tiles whose taps are known, so that the
// code leaves out taps outside the image. Taps of the other dimensions are loops over those that hit the
// image.
#pragma once

#include "compiler/backends/cpu/conv/ConvEmitter.h"

namespace ortc::cpu {

/// Channels of a group that one pass sums over.
inline constexpr int64_t kNarrowChannels = 4;

/// What is read and written so many bytes later is fetched: as much as comes from memory while one line is waited for.
inline constexpr int64_t kFetchDistance = 4 << 10;

/// Neighbouring results of a line, and which positions of the source line they read with which tap.
struct LineTile {
  struct Use {
    int64_t position, result, tap; ///< `result` counts from the first of the tile
    bool operator==(const Use &) const = default;
  };
  int64_t first, size;
  llvm::SmallVector<Use> uses; ///< in order of position, then result
};
/// `count` tiles of the same form, each `tile.size` results and `sourceStep` positions behind the one before.
struct LineTiles {
  LineTile tile;
  int64_t count, sourceStep;
};
/// Cuts the results of a line, walked by `phases` over a source line of `positions`, in tiles of about
/// `most`; all but the last of a run of equal tiles begin at a multiple of `period`, which the number of
/// phases divides.
llvm::SmallVector<LineTiles> tileLine(llvm::ArrayRef<kernels::Walk> phases, int64_t results,
                                      int64_t positions, int64_t period, int64_t most);

/// Source lines that one line of results reads and the one before did not, the last ones: their distances from the
/// last, in lines.
llvm::SmallVector<int64_t> newLines(const kernels::Walk &walk);

/// The channels that a vector of `width` results needs of a source with `summed` channels a group: `span` of them, from
/// `sourceChannel` on, and for the i-th channel of every group a shuffle.
class LaneMap {
public:
  LaneMap(int64_t width, int64_t results, int64_t summed)
      : width(width), results(results), summed(summed),
        span(width >= results ? width / results * summed : summed) {}
  mlir::Value sourceChannel(emit::LoopBuilder &builder, mlir::Value channel) const;
  mlir::Value spread(emit::LoopBuilder &builder, mlir::Value source, int64_t i) const;

  int64_t width, results, summed, span;
};

} // namespace ortc::cpu
