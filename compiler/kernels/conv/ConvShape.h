// The integers of a convolution.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No IR is made here. A convolution, and each phase of its input gradient, is a walk over a grid of results.
// A result sums channels of a source image over a few taps, at positions that are affine in grid position and tap.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

namespace ortc::kernels {

/// Shapes and window of one of the three convolution operations, whichever of the tensors is its result.
struct ConvShape {
  int64_t batch, channels, features, groups;           // channels and features of all groups together
  llvm::SmallVector<int64_t, 3> input, filter, output; // spatial sizes
  llvm::SmallVector<int64_t, 3> strides, low, dilations;
  /// Filter gradients of so many parts of the batch are made side by side; `batch` is that of one part.
  int64_t parts = 1;

  int64_t rank() const { return input.size(); }
  int64_t groupChannels() const { return channels / groups; }
  int64_t groupFeatures() const { return features / groups; }
  /// One channel and one feature a group: no channel is summed over.
  bool isDepthwise() const { return groups > 1 && groupChannels() == 1 && groupFeatures() == 1; }
  int64_t flops() const; ///< of all parts
};
ConvShape shapeOfConv(mlir::Operation *op);

/// How one spatial dimension is walked. Grid point q with tap t reads source position
/// q * sourceStride + base + t * tapStep, and is the result at outBase + q * outStep.
struct Walk {
  int64_t count, sourceStride, base, taps, tapStep, outBase, outStep;
  /// The filter position of tap t is filterBase - t * filterStep (input gradient), or t (forward).
  int64_t filterBase = 0, filterStep = -1;

  int64_t lowest() const { return base; }
  int64_t highest() const { return (count - 1) * sourceStride + base + (taps - 1) * tapStep; }
  bool isEmpty() const { return count <= 0 || taps <= 0; }
};

/// The walk of a forward convolution in dimension d.
Walk forwardWalk(const ConvShape &shape, int64_t d);
/// The walk of the input gradient over the positions i of the input with i % stride == phase. Without taps the gradient
/// there is zero.
Walk gradientWalk(const ConvShape &shape, int64_t d, int64_t phase);

/// A conv or conv_input_grad as walks from its source, input or gradient, to its result.
struct ConvSides {
  bool forward;
  llvm::SmallVector<int64_t, 3> source, result; // spatial sizes
  int64_t sourceChannels, resultChannels;       // of all groups together
  int64_t groupSource, groupResult;             // of a group
  llvm::SmallVector<llvm::SmallVector<Walk>>
      walks; // of every dimension, by phase; forward there is one phase
};
ConvSides sidesOf(const ConvShape &shape, bool forward);

/// All combinations of the phases of the dimensions.
llvm::SmallVector<llvm::SmallVector<Walk, 3>> phaseProduct(llvm::ArrayRef<llvm::SmallVector<Walk>> walks);

/// Whether a convolution of this shape is summed by Winograd's algorithm: 2x2 results of a tile at once, from
/// transformed tiles and filters. The order of sums follows from it, so it depends on the shape only.
bool usesWinograd(const ConvShape &shape);
/// Results of a tile along a side.
inline constexpr int64_t kWinogradTile = 2;
/// Rows of channels of Winograd's matrices are whole vectors of every target.
inline constexpr int64_t kChannelUnit = 16;

/// Whether groups are so narrow that lanes run across them: a depthwise convolution, or another with few
/// channels a group.
bool hasNarrowGroups(const ConvShape &shape);

} // namespace ortc::kernels
