// What one core can do at most, measured.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace ortc::benchmarks {

/// What limits a kernel, and so what its speed is compared with.
enum class Limit {
  Arithmetic, ///< fused multiply-adds
  Copy,       ///< one stream read, one written
  Triad,      ///< a[i] = b[i] + s * c[i]
};

/// Time of this thread on a CPU: what other programs take away meanwhile does not count.
double threadSeconds();

/// GFLOP/s on vectors of `lanes` lanes, or GB/s of memory that no cache holds (bytes that the loop names): of one core,
/// now. Copy and triad are the best of several ways to write them, past the caches among others.
double measureRate(Limit limit, int lanes);

} // namespace ortc::benchmarks
