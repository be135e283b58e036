// Contractions that are cut otherwise than the cost table has it: the same bits, and numbers near those of plain loops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/contraction/ContractionFixture.h"

#include "compiler/backends/cpu/contraction/ContractionChoices.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ortc::cpu;
using namespace ortc::cpu::test;

namespace {

/// C of a spec's choices, and what came of them.
struct Outcome {
  std::vector<float> c;
  KernelBlocking blocking;
};

Outcome compute(const Shape &s, const Target &target, const KernelChoices &choices,
                Numerics numerics = Numerics::Fast, bool isAside = false) {
  KernelModule m;
  ContractionSpec spec = specOf(s, m.builder.getF32Type());
  spec.numerics = numerics;
  spec.choices = &choices;
  if (isAside)
    spec.partialOperand = -1;
  Compiled compiled(spec, m, target);
  AlignedArray<float> a(s.batch * s.m * s.k), b(s.batch * s.k * s.n), c(s.batch * s.m * s.n);
  fill(a, 1);
  fill(b, 2);
  compiled.run({a.begin(), b.begin(), c.begin()});
  for (int64_t batch = 0; batch < s.batch; ++batch)
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j)
        EXPECT_NEAR(c[placeInC(s, batch, i, j)], referenceAt(s, a, b, batch, i, j), 1.2e-7 * (4 + s.k))
            << describe(s);
  return {std::vector<float>(c.begin(), c.end()), compiled.info.blocking};
}

/// Every neighbour of the table's choice, and those of one of them.
void check(const Shape &s, const Target &target, Numerics numerics = Numerics::Fast, bool isAside = false) {
  Outcome usual = compute(s, target, {}, numerics, isAside);
  std::vector<KernelChoice> choices = usual.blocking.neighbours;
  EXPECT_GE(choices.size(), 4u) << usual.blocking.key;
  choices.push_back(usual.blocking.choice);
  for (size_t i = 0, near = choices.size(); i < choices.size(); ++i) {
    if (i > near && i % 8) // of those further away some
      continue;
    Outcome other = compute(s, target, {{{usual.blocking.key, choices[i]}}, "test"}, numerics, isAside);
    EXPECT_TRUE(other.blocking.isGiven);
    EXPECT_EQ(other.blocking.key, usual.blocking.key);
    EXPECT_EQ(other.blocking.choice, choices[i]);
    EXPECT_EQ(std::memcmp(other.c.data(), usual.c.data(), usual.c.size() * 4), 0)
        << usual.blocking.key << ": " << describe(choices[i]);
    if (i < near)
      for (const KernelChoice &further : other.blocking.neighbours)
        if (!llvm::is_contained(choices, further))
          choices.push_back(further);
    if (testing::Test::HasFailure())
      return;
  }
}

TEST(ContractionChoicesTest, BitsAreThoseOfTheTable) {
  const Target target = runnableTargets().back();
  check({130, 200, 1100}, target);
  check({100, 70, 700, false, true}, target, Numerics::Portable);
  check({150, 90, 1030, true}, target, Numerics::Fast, /*isAside=*/true);
  check({60, 100, 600, true, true, true}, target);
}

TEST(ContractionChoicesTest, BatchesAndOtherVectors) {
  check({70, 50, 40, false, true, false, 6}, runnableTargets().front());
  check({40, 70, 300, true, false, false, 3}, runnableTargets().back());
}

/// A reduction over two dims inside of a block is not cut.
TEST(ContractionChoicesTest, SeveralLoopsOfABlockStayWhole) {
  KernelModule m;
  Type f32 = m.builder.getF32Type();
  constexpr int64_t kM = 64, kN = 64, kOuter = 3, kInner = 160;
  ContractionSpec spec;
  spec.name = "contraction";
  spec.accumulatorType = f32;
  spec.buffers = {{f32, kOuter * kM * kInner, false, true},
                  {f32, kOuter * kInner * kN, false, true},
                  {f32, kM * kN, true, true}};
  spec.operands = {{0, 0}, {1, 0}, {2, 0}};
  spec.m = {{kM, {kInner, 0, kN}}};
  spec.n = {{kN, {0, 1, 1}}};
  spec.k = {{kOuter, {kM * kInner, kInner * kN, 0}}, {kInner, {1, kN, 0}}};
  const Target target = runnableTargets().back();
  ContractionPlan plan = planContraction(spec, target);
  ASSERT_EQ(plan.kLoops.size(), 2u);
  ContractionChoice choice = choiceOf(plan);
  EXPECT_TRUE(planContraction(spec, target, choice));
  choice.depth = 80;
  EXPECT_FALSE(planContraction(spec, target, choice));
}

TEST(ContractionChoicesTest, ImpossibleChoicesAreRefused) {
  Shape s{130, 200, 1100, true};
  KernelModule m;
  ContractionSpec spec = specOf(s, m.builder.getF32Type());
  const Target target = runnableTargets().back();
  const ContractionPlan plan = planContraction(spec, target);
  const ContractionChoice usual = choiceOf(plan);
  ASSERT_TRUE(planContraction(spec, target, usual));
  std::vector<KernelChoice> bad;
  auto add = [&](auto change) {
    ContractionChoice choice = usual;
    change(choice);
    bad.push_back(nameChoice(choice));
  };
  add([](ContractionChoice &c) { c.rows = 99, c.vectors = 99; });
  add([](ContractionChoice &c) { c.rows = 12, c.vectors = 8; }); // more than there are registers
  for (int64_t wrong : {int64_t(0), int64_t(-1), int64_t(7), int64_t(1) << 40, INT64_MAX}) {
    if (wrong != 7)
      add([&](ContractionChoice &c) { c.rows = wrong; });
    if (wrong != 7)
      add([&](ContractionChoice &c) { c.vectors = wrong; });
    add([&](ContractionChoice &c) { c.depth = wrong; });
    add([&](ContractionChoice &c) { c.outer = wrong; });
    add([&](ContractionChoice &c) { c.rowChunk = wrong; });  // no whole tiles
    add([&](ContractionChoice &c) { c.laneChunk = wrong; }); // no whole panels
    if (wrong != 0)
      add([&](ContractionChoice &c) { c.packedRows = wrong; });
  }
  bad.push_back(nameChoice(usual));
  bad.back()["pack_columns"] = 2;
  bad.push_back(nameChoice(usual));
  bad.back().erase("depth");
  bad.push_back(nameChoice(usual));
  bad.back()["colour"] = 1;
  bad.emplace_back();
  for (const KernelChoice &choice : bad) {
    KernelModule other;
    ContractionSpec given = specOf(s, other.builder.getF32Type());
    std::string message;
    ScopedDiagnosticHandler handler(&other.context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str();
      return success();
    });
    KernelBlocking blocking;
    ASSERT_TRUE(succeeded(chooseContraction(&other.context, given, target, blocking)));
    KernelChoices choices{{{blocking.key, choice}}, "the file"};
    given.choices = &choices;
    EXPECT_TRUE(failed(emitContraction(other.builder, *other.module, given, target))) << describe(choice);
    EXPECT_EQ(message, "the file: '" + blocking.key + "' cannot be cut as " + describe(choice));
  }
  // Operands whose vectors would be gathered one by one have to be packed, rows that are apart are not.
  Shape strided{130, 200, 1100, false, true};
  ContractionSpec columns = specOf(strided, m.builder.getF32Type());
  ContractionChoice choice = choiceOf(planContraction(columns, target));
  choice.packLanes = false;
  EXPECT_FALSE(planContraction(columns, target, choice));
  choice.packLanes = true, choice.packedRows = 96;
  EXPECT_FALSE(planContraction(columns, target, choice));
}

/// The table's plan is one of the choices, for any shape and number of workers.
TEST(ContractionChoicesTest, TheTablesChoiceIsPossible) {
  KernelModule m;
  auto check = [&](const Shape &s, const Target &target) {
    ContractionSpec spec = specOf(s, m.builder.getF32Type());
    ContractionPlan plan = planContraction(spec, target);
    auto same = planContraction(spec, target, choiceOf(plan));
    ASSERT_TRUE(same) << describe(s) << " " << target.name << ", " << target.workers << " workers";
    EXPECT_EQ(same->kBlockCount, plan.kBlockCount);
    EXPECT_EQ(same->packedElements, plan.packedElements);
    EXPECT_EQ(same->packedRowElements, plan.packedRowElements);
    EXPECT_EQ(same->partialElements, plan.partialElements);
    EXPECT_EQ(same->strips[0].rows, plan.strips[0].rows);
    EXPECT_EQ(same->strips[1].rows, plan.strips[1].rows);
    EXPECT_EQ(same->outerChunks * same->rowChunks * same->laneChunks,
              plan.outerChunks * plan.rowChunks * plan.laneChunks);
  };
  for (StringRef name : targetNames())
    for (int64_t workers : {1, 2}) {
      Target target = *findTarget(name);
      target.workers = workers;
      for (int64_t rows : {1, 5, 11, 50, 300})
        for (int64_t columns : {1, 3, 20, 100, 540, 1000})
          for (int64_t k : {1, 40, 51, 600, 5000})
            for (int layout = 0; layout < 8; ++layout)
              for (int64_t batch : {1, 3})
                check({rows, columns, k, bool(layout & 1), bool(layout & 2), bool(layout & 4), batch},
                      target);
    }
}

/// Otherwise vectors of columns are stored and loaded again in every step of k.
TEST(ContractionChoicesTest, PortableTilesHaveARegisterForTheProduct) {
  KernelModule m;
  const Target target = *findTarget("x86-64-v3");
  ContractionSpec spec = specOf({64, 512, 512}, m.builder.getF32Type());
  for (Numerics numerics : {Numerics::Fast, Numerics::Portable}) {
    spec.numerics = numerics;
    const ContractionPlan plan = planContraction(spec, target);
    const ContractionStrip &tile = plan.mainStrip();
    int64_t registers = tile.rows * tile.vectors + tile.vectors + (numerics == Numerics::Fast ? 1 : 2);
    EXPECT_LE(registers, target.isa.vectorRegisters);
    EXPECT_GE(tile.rows * tile.vectors, 12);
  }
}

TEST(ContractionChoicesTest, NoMachineDecidesAboutTheOrderOfSums) {
  KernelModule m;
  const Target usual = *findTarget("x86-64-v3");
  Target small = usual;
  small.machine.l2Bytes = 64 << 10;
  small.machine.tiles.accumulators = 4;
  small.machine.contraction.laneChunk = 64;
  small.machine.contraction.gatheredStride = 64;
  small.machine.parallel.contractionFlops = 1000;
  small.workers = 7;
  bool isCutOtherwise = false;
  for (int64_t k : {40, 600, 5000}) {
    ContractionSpec spec = specOf({300, 1000, k}, m.builder.getF32Type());
    ContractionPlan plan = planContraction(spec, usual), other = planContraction(spec, small);
    EXPECT_EQ(plan.kBlock, other.kBlock);
    EXPECT_EQ(plan.kBlockCount, other.kBlockCount);
    isCutOtherwise |= !(choiceOf(plan) == choiceOf(other));
  }
  EXPECT_TRUE(isCutOtherwise); // the models are different ones
}

TEST(ContractionChoicesTest, MachinesSayWhenRowsAreGatheredAndColumnsPacked) {
  KernelModule m;
  Target usual = *findTarget("x86-64-v3"), other = usual;
  other.machine.contraction.inPlaceRows = 192;
  other.machine.contraction.gatheredStride = 4096;
  other.machine.contraction.gatheredDepth = 384;
  ContractionSpec columns = specOf({64, 512, 512}, m.builder.getF32Type());
  EXPECT_TRUE(planContraction(columns, usual).packLanes);
  EXPECT_FALSE(planContraction(columns, other).packLanes);
  ContractionSpec rows = specOf({512, 512, 64, true}, m.builder.getF32Type());
  EXPECT_GT(planContraction(rows, usual).packedRows, 0);
  EXPECT_EQ(planContraction(rows, other).packedRows, 0);
  ContractionSpec deep = specOf({1024, 256, 2048, true}, m.builder.getF32Type());
  EXPECT_EQ(planContraction(deep, usual).kBlock, 256);
  EXPECT_EQ(planContraction(deep, other).kBlock, 352);
}

/// Partial sums and rows of the next tiles, where the machine wants them.
TEST(ContractionChoicesTest, TilesAskForWhatTheNextOnesRead) {
  for (int64_t k : {200, 600}) { // short rows, partial sums
    int found[2] = {};
    for (bool fetches : {false, true}) {
      KernelModule m;
      Target target = *findTarget("x86-64-v3");
      target.machine.contraction.fetchesNext = fetches;
      ContractionSpec spec = specOf({40, 96, k}, m.builder.getF32Type()); // nothing is packed
      ASSERT_TRUE(succeeded(emitContraction(m.builder, *m.module, spec, target)));
      m.module->walk([&](memref::PrefetchOp) { ++found[fetches]; });
    }
    EXPECT_EQ(found[0], 0);
    EXPECT_GT(found[1], 0);
  }
}

TEST(ContractionChoicesTest, ImbalanceIsTheBusiestWorkersShare) {
  EXPECT_DOUBLE_EQ(findImbalance(std::vector<int64_t>{4, 4}, 2), 1);
  EXPECT_DOUBLE_EQ(findImbalance(std::vector<int64_t>{6, 2}, 2), 1.5);
  EXPECT_DOUBLE_EQ(findImbalance(std::vector<int64_t>{4, 2, 2}, 2), 1);
  EXPECT_DOUBLE_EQ(findImbalance(std::vector<int64_t>{5}, 4), 4);
  EXPECT_DOUBLE_EQ(findImbalance(3, 2), 4.0 / 3);
  EXPECT_DOUBLE_EQ(findImbalance(8, 2), 1);
}

} // namespace
