// What this machine can do at most, measured.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_BENCHMARKS_KERNELS_MACHINE_H
#define ORTC_BENCHMARKS_KERNELS_MACHINE_H

namespace ortc::benchmarks {

/// f32 GFLOP/s of one core doing nothing but fused multiply-adds on its widest vectors of at most `lanes` lanes.
/// Takes about a millisecond. Zero when the CPU has no fma.
double measureFmaPeak(int lanes);

/// GB/s of one core copying memory far larger than the caches (bytes read plus bytes written).
double measureCopyBandwidth();

} // namespace ortc::benchmarks

#endif // ORTC_BENCHMARKS_KERNELS_MACHINE_H
