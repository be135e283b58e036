// What this machine can do at most, measured, and the time that work takes at that speed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ortc {

/// f32 FLOP/s of one core that does nothing but arithmetic on vectors of `lanes` lanes (a multiply-add counts as two):
/// fused multiply-adds from 8 lanes on, multiplications and additions below. Takes about a millisecond. Zero where the
/// machine does not have them.
double measureFlopRate(int lanes);

/// Times copies of one core.
class CopyTimer {
public:
  /// Takes and touches memory for working sets of up to `most` bytes.
  explicit CopyTimer(size_t most);
  /// Bytes read plus bytes written in a second, while source and target together take `bytes`. Takes some milliseconds.
  double measure(size_t bytes);

private:
  std::vector<char> from, to;
};

/// How fast working sets of up to `bytes` are copied.
struct CopyRate {
  double bytes, bytesPerSecond;
};

/// The limits of some cores together.
struct Machine {
  int threads = 1;
  double flopRate = 0; ///< f32; 0: not known
  std::vector<CopyRate>
      rates; ///< by growing working set, never rising; the last one is that of memory. Empty: not known

  /// The rate at which something with this many bytes can be read and written. It takes them to be as near as they
  /// fit: nothing is said about where they were before.
  double getCopyRate(double bytes) const;
  /// Seconds that this work takes at least: the longer of arithmetic and reading and writing. Half of the bytes have to
  /// fit in a cache to get its rate, as what is written may lie where something was read.
  double getBound(double flops, double bytes) const;
};

/// Measures `threads` cores at the same time, in a fraction of a second. `lanes`: of the vectors (measureFlopRate).
Machine measureMachine(int lanes, int threads);

/// f32 lanes of the vectors that code for this architecture and these features has (format.h).
int countLanes(uint32_t architecture, uint64_t features);

} // namespace ortc
