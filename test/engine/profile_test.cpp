// The arithmetic of `ortc run --profile`: bounds of a machine, averages over steps, shares that add up.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/profile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <ortc/call.h>
#include <ortc/format.h>
#include <sstream>

using namespace ortc;
using namespace ortc::engine;

namespace {

/// 100 GFLOP/s; 50 GB/s up to 1 KB, 10 GB/s beyond 1 MB.
Machine makeMachine(int threads = 1) {
  Machine machine;
  machine.threads = threads;
  machine.flopRate = 100e9 * threads;
  machine.rates = {{1e3, 50e9 * threads}, {1e6, 20e9 * threads}, {1e9, 10e9 * threads}};
  return machine;
}

TEST(MachineTest, BoundIsTheLongerOfArithmeticAndMemory) {
  Machine machine = makeMachine();
  EXPECT_DOUBLE_EQ(machine.getBound(100e9, 8), 1);
  EXPECT_DOUBLE_EQ(machine.getBound(1, 500), 1e-8);
  EXPECT_DOUBLE_EQ(machine.getBound(1, 1e5), 5e-6);
  EXPECT_DOUBLE_EQ(machine.getBound(1, 2e6), 1e-4); // in place: a megabyte that is read and written
  EXPECT_DOUBLE_EQ(machine.getBound(1, 10e9), 1);
  EXPECT_DOUBLE_EQ(Machine().getBound(1e9, 1e9), 0); // not known
}

TEST(MachineTest, LanesAreThoseOfGeneratedCode) {
  EXPECT_EQ(countLanes(ORTC_ARCH_X86_64, ORTC_X86_64_V1), 4);
  EXPECT_EQ(countLanes(ORTC_ARCH_X86_64, ORTC_X86_64_V3), 8);
  EXPECT_EQ(countLanes(ORTC_ARCH_X86_64, ORTC_X86_64_V3 | uint64_t(1) << ORTC_X86_AVX512F),
            8); // none of v4's others
  EXPECT_EQ(countLanes(ORTC_ARCH_X86_64, ORTC_X86_64_V4), 16);
}

TEST(MachineTest, MeasuresInAFractionOfASecond) {
  for (int threads : {1, 2}) {
    Machine machine = measureMachine(countLanes(ORTC_ARCH_X86_64, ORTC_X86_64_V1), threads);
    EXPECT_EQ(machine.threads, threads);
    ASSERT_FALSE(machine.rates.empty());
#if defined(__x86_64__)
    EXPECT_GT(machine.flopRate, 1e8);
#endif
    double before = 1e30;
    for (const CopyRate &rate : machine.rates) {
      EXPECT_GT(rate.bytesPerSecond, 1e7);
      EXPECT_LE(rate.bytesPerSecond, before);
      before = rate.bytesPerSecond;
    }
  }
}

TEST(MachineTest, LanesFollowFromTheFeaturesOfTheCode) {
  EXPECT_EQ(countLanes(ORTC_ARCH_X86_64, ORTC_X86_64_V1), 4);
  EXPECT_EQ(countLanes(ORTC_ARCH_X86_64, ORTC_X86_64_V3), 8);
  EXPECT_EQ(countLanes(ORTC_ARCH_X86_64, ORTC_X86_64_V4), 16);
}

constexpr const char *kManifest = R"({"flags": {"precision": "f32"}, "kernels": [
  {"name": "kernel_0", "kind": "contraction", "work": "dot", "shape": "8x8 * 8x8 -> 8x8", "nodes": ["Gemm:a", "Gemm:b", "Gemm:c"],
   "updates": ["w"], "flops": 1000, "bytes": 500, "parallel": true},
  {"name": "kernel_1", "work": "elementwise", "shape": "100000", "gradients": ["Relu:r"], "flops": 10, "bytes": 100000, "parallel": false},
  {"name": "kernel_2", "work": "gather", "shape": "1", "flops": 0, "bytes": 8, "parallel": false},
  "what is this"]})";

TEST(KernelTableTest, ReadsTheManifest) {
  KernelTable table = parseKernelTable(kManifest);
  ASSERT_EQ(table.kernels.size(), 4u);
  EXPECT_EQ(table.kernels[0].place, "Gemm:a, Gemm:b and 1 more; update of w");
  EXPECT_EQ(table.kernels[1].place, "gradient of Relu:r");
  EXPECT_TRUE(table.kernels[0].isParallel);
  EXPECT_EQ(table.kernels[1].bytes, 100000);
  EXPECT_EQ(table.kernels[3].work, "");
  EXPECT_FALSE(table.isDouble);
  EXPECT_TRUE(parseKernelTable(R"({"flags": {"precision": "f64"}, "kernels": []})").isDouble);
  for (const char *other :
       {"", "[]", "{}", R"({"kernels": 3})", R"({"kernels": [{"flops": "many"}], "flags": 1})"})
    EXPECT_FALSE(parseKernelTable(other).isDouble) << other;
}

/// Two steps: kernel 0 runs 4 times for 2 us each, kernel 1 twice for 10 us.
StepTimes makeTimes() {
  StepTimes times;
  times.kernels.resize(4);
  times.kernels[0] = {8e-6, 4};
  times.kernels[1] = {20e-6, 2};
  times.steps = 2;
  times.warmUp = 1;
  times.dataSeconds = 4e-6;
  times.stepSeconds = 30e-6;
  return times;
}

TEST(ProfileTest, GivesAveragesOfAStepThatAddUp) {
  KernelTable table = parseKernelTable(kManifest);
  Profile profile = makeProfile(makeTimes(), table, makeMachine(), makeMachine(2));
  ASSERT_EQ(profile.rows.size(), 2u); // the others did not run
  const ProfileRow &slow = profile.rows[0], &fast = profile.rows[1];
  EXPECT_EQ(slow.kernel, &table.kernels[1]);
  EXPECT_DOUBLE_EQ(slow.calls, 1);
  EXPECT_DOUBLE_EQ(slow.seconds, 10e-6);
  EXPECT_DOUBLE_EQ(slow.bound, 100000 / 20e9);
  EXPECT_EQ(fast.kernel, &table.kernels[0]);
  EXPECT_DOUBLE_EQ(fast.calls, 2);
  EXPECT_DOUBLE_EQ(fast.seconds, 4e-6);
  EXPECT_DOUBLE_EQ(fast.flops, 2000);
  EXPECT_DOUBLE_EQ(fast.bound, 2 * (1000 / 200e9)); // on both cores; its memory takes as long
  EXPECT_NEAR(profile.between, 1e-6, 1e-12);
  EXPECT_DOUBLE_EQ(profile.data, 2e-6);
  EXPECT_NEAR(profile.total.seconds, 17e-6, 1e-12);
  EXPECT_NEAR(slow.seconds + fast.seconds + profile.between + profile.data, profile.total.seconds, 1e-12);

  table.isDouble = true; // half the lanes
  Profile doubles = makeProfile(makeTimes(), table, makeMachine(), makeMachine());
  EXPECT_DOUBLE_EQ(doubles.rows[1].bound, 2 * 2 * (1000 / 100e9));
}

TEST(ProfileTest, PrintsALineForEachKernel) {
  KernelTable table = parseKernelTable(kManifest);
  Profile profile = makeProfile(makeTimes(), table, makeMachine(), makeMachine(2));
  EXPECT_EQ(
      formatProfile(profile, "x86-64-v3"),
      "profile of 2 steps (1 step of warm-up left out), 2 threads, code for x86-64-v3\n"
      "machine: one core: 100 GFLOP/s; copies 50 GB/s of 1 KiB, 10 GB/s of 954 MiB\n"
      "         2 cores: 200 GFLOP/s; copies 100 GB/s of 1 KiB, 20 GB/s of 954 MiB\n"
      "\n"
      "   us/step   share   calls  GFLOP/s    GB/s  of bound  kernel\n"
      "    10.000   58.8%       1     0.00    10.0       50%  elementwise 100000 | gradient of Relu:r\n"
      "     4.000   23.5%       2     0.50    0.25        0%  dot 8x8 * 8x8 -> 8x8 | Gemm:a, Gemm:b "
      "and 1 more; update "
      "of w\n"
      "     1.000    5.9%                                     (between kernels: dispatch, checks of "
      "indices)\n"
      "     2.000   11.8%                                     (data: waiting for it, copies of the inputs)\n"
      "    17.000  100.0%       3     0.12    5.94       29%  the step\n");
  std::string one = formatProfile(profile, "x86-64-v3", 0);
  EXPECT_NE(one.find("(2 other kernels)"), std::string::npos) << one;
  EXPECT_EQ(one.find("elementwise"), std::string::npos) << one;
  StepTimes slow = makeTimes();
  slow.stepSeconds = 3;
  std::string longer = formatProfile(makeProfile(slow, table, makeMachine(), makeMachine()), "x86-64-v3");
  EXPECT_NE(longer.find("\n   ms/step"), std::string::npos) << longer;
  EXPECT_NE(longer.find("\n    0.0100    0.0%"), std::string::npos) << longer;
  EXPECT_NE(longer.find("\n  1500.002  100.0%"), std::string::npos) << longer;
  for (const auto &[key, value] : describeProfile(profile))
    EXPECT_TRUE(nlohmann::json::accept(value)) << key << ": " << value;
}

TEST(ProfilerTest, CountsCallsAndLeavesWarmUpOut) {
  Profiler profiler;
  profiler.start(20, 2); // two steps of warm-up
  auto call = [&](uint32_t kernel) {
    Profiler::trace(&profiler, kernel, ORTC_TRACE_BEGIN);
    Profiler::trace(&profiler, kernel, ORTC_TRACE_END);
  };
  for (int step = 0; step < 5; ++step) {
    profiler.beginStep();
    call(0);
    call(1);
    call(1);
    call(7); // not in the table
    profiler.endStep(1, 2);
    call(0); // evaluation, say
  }
  const StepTimes &times = profiler.getTimes();
  EXPECT_EQ(times.warmUp, 2);
  EXPECT_EQ(times.steps, 3);
  EXPECT_EQ(times.kernels[0].calls, 3);
  EXPECT_EQ(times.kernels[1].calls, 6);
  EXPECT_DOUBLE_EQ(times.dataSeconds, 3);
  EXPECT_DOUBLE_EQ(times.stepSeconds, 6);
  EXPECT_LE(times.kernels[0].seconds + times.kernels[1].seconds, 6);
  profiler.start(1, 1);
  EXPECT_EQ(profiler.getTimes().warmUp, 0);
}

} // namespace
