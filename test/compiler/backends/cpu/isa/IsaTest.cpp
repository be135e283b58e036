// Every target of the table has a description and a machine model that fit each other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/cpu/isa/Architecture.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/TargetParser/Triple.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace ortc::cpu;

namespace {

std::vector<Target> allTargets() {
  std::vector<Target> targets;
  for (llvm::StringRef name : targetNames())
    targets.push_back(findTarget(name).value());
  if (auto native = findTarget("native"))
    targets.push_back(*native);
  return targets;
}

TEST(IsaTest, NamesAreThoseOfTheTableAndDiffer) {
  std::set<std::string> names;
  for (llvm::StringRef name : targetNames()) {
    EXPECT_EQ(findTarget(name)->name, name);
    EXPECT_TRUE(names.insert(name.str()).second) << name.str();
  }
  EXPECT_FALSE(names.count("native")); // it has a meaning of its own
  EXPECT_FALSE(names.count("host"));
  EXPECT_FALSE(findTarget("x86-64-v9"));
}

TEST(IsaTest, RegistersAreWholeVectorsOfAllElementsOrScalars) {
  for (const Target &target : allTargets()) {
    SCOPED_TRACE(target.name);
    if (target.isa.vectorBits == 32) {
      EXPECT_EQ(target.lanes(32), 1);
      EXPECT_EQ(target.lanes(64), 1);
    } else {
      EXPECT_EQ(target.isa.vectorBits % 128, 0);
      EXPECT_EQ(target.lanes(32), 2 * target.lanes(64));
      EXPECT_GE(target.lanes(64), 2);
    }
    // Sums, a vector of B, a broadcast of A and a product are in registers together.
    EXPECT_LE(target.machine.tiles.accumulators + 3, target.isa.vectorRegisters);
    EXPECT_LE(target.machine.tiles.convVectors, target.machine.tiles.accumulators);
  }
}

TEST(IsaTest, ArchitecturesAgreeWithTheirTriples) {
  for (const Target &target : allTargets()) {
    SCOPED_TRACE(target.name);
    ASSERT_TRUE(target.isa.architecture);
    llvm::Triple triple(target.isa.triple);
    bool isModule = target.isa.architecture->isModule();
    EXPECT_EQ(triple.isOSBinFormatELF(), !isModule);
    EXPECT_EQ(triple.isArch32Bit(), target.isa.pointerBytes == 4);
    EXPECT_NE(triple.getArch(), llvm::Triple::UnknownArch);
    EXPECT_EQ(triple.getArch() == llvm::Triple::x86_64,
              target.isa.architecture->format() == ORTC_ARCH_X86_64);
    EXPECT_EQ(target.isa.architecture->elfMachine() == llvm::ELF::EM_NONE, isModule);
  }
}

TEST(IsaTest, LaterTargetsOfAnArchitectureCanMore) {
  // The loader takes the last one that it can run.
  std::vector<Target> targets = allTargets();
  for (size_t i = 0; i < targetNames().size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const Isa &earlier = targets[j].isa, &later = targets[i].isa;
      if (earlier.architecture != later.architecture)
        continue;
      EXPECT_EQ(earlier.requiredFeatures & ~later.requiredFeatures, 0u) << targets[i].name;
      EXPECT_EQ(earlier.instructions & ~later.instructions, 0u) << targets[i].name;
      EXPECT_LE(earlier.vectorBits, later.vectorBits) << targets[i].name;
    }
}

TEST(IsaTest, OnlyWhatThisMachineHasRunsHere) {
  auto native = findTarget("native");
  if (!native)
    GTEST_SKIP() << "no architecture of the table is this machine's";
  EXPECT_TRUE(canRunHere(*native));
  EXPECT_TRUE(canRunHere(*findTarget(targetNames().front())));
  native->isa.requiredFeatures = ~uint64_t(0);
  EXPECT_FALSE(canRunHere(*native));
}

TEST(IsaTest, InstructionsAreIndependent) {
  Isa isa;
  for (Instruction own : {Instruction::FusedMultiplyAdd, Instruction::Rounding, Instruction::Scaling,
                          Instruction::HalfConversion, Instruction::MatrixUnit, Instruction::PairProduct,
                          Instruction::ByteLookup}) {
    EXPECT_FALSE(isa.has(own));
    isa.set(own);
    EXPECT_TRUE(isa.has(own));
    EXPECT_EQ(llvm::popcount(isa.instructions), 1);
    isa.set(own, false);
  }
  EXPECT_EQ(isa.instructions, 0u);
}

TEST(MachineModelTest, FiguresAreThoseOfAMachine) {
  for (const Target &target : allTargets()) {
    SCOPED_TRACE(target.name);
    const MachineModel &machine = target.machine;
    EXPECT_GE(machine.l2Bytes, 64 << 10);
    EXPECT_GT(machine.core.flopRate, 0);
    ASSERT_FALSE(machine.core.rates.empty());
    for (size_t i = 1; i < machine.core.rates.size(); ++i) {
      EXPECT_GT(machine.core.rates[i].bytes, machine.core.rates[i - 1].bytes);
      EXPECT_LE(machine.core.rates[i].bytesPerSecond, machine.core.rates[i - 1].bytesPerSecond);
    }
    EXPECT_GE(machine.tiles.farVectorCycles, machine.tiles.vectorCycles);
    EXPECT_GT(machine.tiles.macsPerCycle, 0);
    EXPECT_GT(machine.tiles.loadsPerCycle, 0);
    EXPECT_GE(machine.contraction.packedShare, 1);
    EXPECT_LE(machine.matrixUnit.laneBlock, machine.matrixUnit.lanes);
    // A chunk is worth handing out where a kernel is.
    if (std::isfinite(machine.parallel.serialSeconds)) // else there is nobody to hand work to
      EXPECT_GE(machine.parallel.contractionFlops / machine.parallel.flopRate,
                machine.parallel.serialSeconds);
  }
}

TEST(IsaTest, ADescriptionHasWhatMeasurementsDependOn) {
  Target target = *findTarget("x86-64-v3");
  std::string place = describeMachine(target, Numerics::Fast);
  EXPECT_EQ(place, "x86-64-v3 haswell, 8 lanes, 16 registers, 512 KiB, fma, 2 workers");
  target.workers = 3;
  EXPECT_NE(describeMachine(target, Numerics::Fast), place);
  target.workers = 2;
  target.machine.l2Bytes = 1 << 20;
  EXPECT_NE(describeMachine(target, Numerics::Fast), place);
  target.machine.l2Bytes = 512 << 10;
  EXPECT_NE(describeMachine(target, Numerics::Portable), place);
  target.isa.tuneCpu = "znver1";
  EXPECT_NE(describeMachine(target, Numerics::Fast), place);
}

} // namespace
