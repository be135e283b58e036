// Reading a grid at places that data decide.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is read between the elements of a grid is a sum over the elements around it, its taps. Places and
// weights have the shape [positions..., taps]; where every tap lies inside the grid after clamping, so that
// the gather is in range whatever the data are. Weights are differentiable in the places; indices are not, as
// rounding down is constant.
#pragma once

#include "compiler/legalize/Node.h"

namespace ortc::legalize {

/// What kinds of neighbourhood an axis has: two elements weighted by distance, or four by Keys' cubic with a = -0.75.
enum class Interpolation { linear, cubic };

/// How a coordinate beyond the grid is met: as zero, as the nearest element, or mirrored at the border (which
/// runs through the outer elements, or half an element outside them).
enum class Padding { zeros, border, reflectElements, reflectEdges };

struct Taps {
  Value index;  ///< integers in range of the axes seen so far
  Value weight; ///< null: 1
  Value inside; ///< i1: elsewhere the element counts as zero; null: everywhere
};

/// The integer type for indices of `count` elements.
Type indexType(TensorBuilder &b, int64_t count);
/// Taps with whole coordinates `x` [..., taps] along an axis, without weights.
Taps wholeTaps(TensorBuilder &b, Value x, int64_t size, Padding padding, Type index);
/// Taps around the coordinates `x` [...] along an axis.
Taps tapsAround(Node &n, Value x, int64_t size, Interpolation kind, Padding padding, Type index);
/// Every tap of `a` with every tap of `c`, an axis of `size` elements inside those of `a`; positions are the same.
Taps crossTaps(TensorBuilder &b, const Taps &a, const Taps &c, int64_t size);
/// Images as rows of channels: [images..., channels, volume...] to [images * volume, channels].
Value channelTable(TensorBuilder &b, Value x, int64_t images, int64_t channels, int64_t volume);
/// The weighted elements of `table` [rows, channels]: [positions..., taps, channels].
Value readTaps(TensorBuilder &b, Value table, const Taps &taps);
/// Their sum: [positions..., channels].
Value sumTaps(TensorBuilder &b, Value table, const Taps &taps);

} // namespace ortc::legalize
