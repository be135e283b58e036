// Shapes of products and convolutions, as benchmarks and libraries read them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

namespace ortc::benchmarks {

/// C[batch][m][n] = sum over k of A[batch][m][k] B[batch][k][n]; a transposed operand is stored with its last two
/// dimensions exchanged.
struct Product {
  int64_t m, n, k;
  bool transposeA, transposeB;
  int64_t batch;
};

struct Plane {
  int64_t height, width;
  Plane(int64_t side) : height(side), width(side) {}
  Plane(int64_t height, int64_t width) : height(height), width(width) {}
};

/// Activations are [batch][height][width][channels], filters [window][channels / groups][features].
struct Convolution {
  const char *name;
  int64_t batch;
  Plane size;
  int64_t channels;
  Plane window;
  int64_t features, stride;
  Plane padding;
  int64_t groups;

  Plane resultSize() const {
    auto along = [&](int64_t extent, int64_t taps, int64_t border) {
      return (extent + 2 * border - taps) / stride + 1;
    };
    return {along(size.height, window.height, padding.height),
            along(size.width, window.width, padding.width)};
  }
};

enum class ConvolutionKind { Forward, InputGrad, FilterGrad };

} // namespace ortc::benchmarks
