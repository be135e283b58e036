// The cost model's arithmetic, on figures that can be checked by hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/cost/CostModel.h"
#include "compiler/backends/cpu/Target.h"

#include <gtest/gtest.h>

using namespace ortc::cpu;

namespace {

/// 100 GFLOP/s, 40 GB/s in a cache of 1 MB, 10 GB/s beyond; calls are free.
CostModel makeModel() {
  CostModel model;
  model.machine.flopRate = 100e9;
  model.machine.rates = {{1e6, 40e9}, {1e9, 10e9}};
  model.callSeconds = 0;
  return model;
}

TEST(CostModelTest, TheSlowestOfThreeDecides) {
  CostModel model = makeModel();
  EXPECT_DOUBLE_EQ(estimateSeconds({1000000000, 0, 1000, 0}, false, model), 0.01); // arithmetic
  EXPECT_DOUBLE_EQ(estimateSeconds({1000, 0, 400000, 0}, false, model), 1e-5);     // a cache
  EXPECT_DOUBLE_EQ(estimateSeconds({1000, 0, 100000000, 0}, false, model), 0.01);  // memory
  EXPECT_DOUBLE_EQ(estimateSeconds({1000, 1000000000, 1000, 0}, false, model),
                   0.02); // operations, two flops' time each
}

TEST(CostModelTest, DoublesHaveHalfTheLanes) {
  CostModel model = makeModel();
  EXPECT_DOUBLE_EQ(estimateSeconds({1000000000, 0, 1000, 0}, true, model), 0.02);
  EXPECT_DOUBLE_EQ(estimateSeconds({1000, 0, 100000000, 0}, true, model),
                   0.01); // bytes are counted as they are
}

TEST(CostModelTest, ACallIsNeverFree) {
  CostModel model = getCostTable(findTarget("x86-64-v4")->machine);
  EXPECT_DOUBLE_EQ(estimateSeconds({}, false, model), model.callSeconds);
  EXPECT_GT(model.callSeconds, 0);
}

TEST(CostModelTest, TableHasWiderAndNarrowerLevels) {
  CostModel narrow = getCostTable(findTarget("x86-64")->machine),
            wide = getCostTable(findTarget("x86-64-v3")->machine);
  EXPECT_FALSE(wide.isMeasured);
  EXPECT_DOUBLE_EQ(narrow.machine.flopRate, 28e9); // 8 a cycle
  EXPECT_DOUBLE_EQ(wide.machine.flopRate, 112e9);  // 32 a cycle
  double before = 1e30;
  for (const ortc::CopyRate &rate : wide.machine.rates) {
    EXPECT_LT(rate.bytesPerSecond, before);
    before = rate.bytesPerSecond;
  }
}

} // namespace
