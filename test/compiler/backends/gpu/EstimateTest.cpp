// How long kernels of GPUs should take by their launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/program/ProgramCode.h"

#include "gtest/gtest.h"

using namespace ortc;
using namespace ortc::gpu;
using Gpu = kernels::ReferenceGpu;

namespace {

const Processor &reference() { return *findProcessor("sm_90"); }

GpuKernel kernelOf(int64_t blocks, int64_t threads, size_t launches = 1) {
  GpuKernel kernel;
  for (size_t i = 0; i < launches; ++i)
    kernel.launches.push_back({"kernel", blocks, threads});
  return kernel;
}

kernels::KernelWork bytesOf(int64_t bytes) {
  kernels::KernelWork work;
  work.bytesRead = bytes;
  return work;
}

} // namespace

TEST(EstimateTest, ProductsTakeTheCyclesOfTheirTiles) {
  GpuKernel kernel = kernelOf(132, 256);
  kernel.cycles = Gpu::kClock; // a second
  kernels::KernelWork work = bytesOf(1000);
  work.flops = int64_t(1) << 50; // more than the rate of f32 allows: tensor cores are faster
  EXPECT_DOUBLE_EQ(estimateSeconds(kernel, work, false, reference()), 1);
  // A processor with half the rate takes twice as long.
  const Processor &other = *findProcessor("sm_89");
  EXPECT_DOUBLE_EQ(estimateSeconds(kernel, work, false, other), reference().flopRate / other.flopRate);
}

TEST(EstimateTest, ProductsMoveTheirBytes) {
  GpuKernel kernel = kernelOf(132, 256);
  kernel.cycles = 1;
  double rate = Gpu::kBytesPerCycle * Gpu::kClock;
  EXPECT_DOUBLE_EQ(estimateSeconds(kernel, bytesOf(1 << 30), false, reference()),
                   (1 << 30) / rate + kLaunchSeconds);
}

TEST(EstimateTest, FewThreadsMoveBytesSlowly) {
  kernels::KernelWork work = bytesOf(1 << 28);
  double full = estimateSeconds(kernelOf(1 << 18, 256), work, false, reference());
  EXPECT_DOUBLE_EQ(full, kLaunchSeconds + (1 << 28) / (Gpu::kBytesPerCycle * Gpu::kClock));
  // Four blocks wait for their loads 2^28 / (1,024 x 64) times.
  double four = estimateSeconds(kernelOf(4, 256), work, false, reference());
  EXPECT_NEAR(four, kLaunchSeconds + 4096 * Gpu::kLoadLatency / Gpu::kClock, 1e-9);
  EXPECT_GT(four, 10 * full);
}

TEST(EstimateTest, EveryLaunchCounts) {
  EXPECT_DOUBLE_EQ(estimateSeconds(kernelOf(1, 32, 6), bytesOf(0), false, reference()), 6 * kLaunchSeconds);
}

TEST(EstimateTest, ArithmeticInDoublesHasItsRate) {
  kernels::KernelWork work;
  work.flops = int64_t(1) << 40;
  EXPECT_DOUBLE_EQ(estimateSeconds(kernelOf(1000, 256), work, true, reference()),
                   kLaunchSeconds + static_cast<double>(work.flops) / reference().doubleRate);
}
