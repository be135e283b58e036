// Contractions on the matrix unit of this machine, or on one in software, and on vectors of pairs, against sums in
// double precision.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/contraction/ContractionFixture.h"

#include "compiler/backends/cpu/contraction/MatrixPlan.h"
#include "compiler/backends/cpu/contraction/MatrixUnit.h"
#include "test/compiler/backends/cpu/MatrixUnitFixture.h"
#include "test/compiler/backends/cpu/contraction/PairArithmetic.h"

using namespace mlir;
using namespace ortc::cpu;
using namespace ortc::emit;
using namespace ortc::cpu::test;

namespace {

enum class Operands { F32, BF16 };

class MatrixContractionTest : public testing::Test {
protected:
  /// A kernel gives the unit back.
  void TearDown() override { EXPECT_FALSE(unit.isInUse()); }

  /// A kernel for the unit, whether that is faster or not.
  Compiled compile(const ContractionSpec &spec, KernelModule &m) {
    std::optional<MatrixPlan> plan = planMatrix(spec, target);
    EXPECT_TRUE(plan);
    EXPECT_EQ(plan->unit, wantedUnit);
    return Compiled(emitMatrixContraction(m.builder, *m.module, spec, *plan), m, target);
  }

  /// Numbers of many sizes: the lower parts of all of them count.
  static void fillWide(AlignedArray<float> &x, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> mantissa(1, 2);
    for (float &v : x)
      v = std::ldexp(mantissa(random), int(random() % 16) - 8) * (random() % 2 ? 1 : -1);
  }

  /// The contraction of bf16 numbers.
  static ContractionSpec narrowSpecOf(const Shape &s, KernelModule &m) {
    ContractionSpec spec = specOf(s, m.builder.getF32Type());
    spec.narrowA = spec.narrowB = m.builder.getBF16Type();
    spec.buffers[0].elementType = spec.buffers[1].elementType = m.builder.getI16Type();
    return spec;
  }

  /// With `cuts`, the upper halves of numbers, which become what these are; else nothing.
  static AlignedArray<uint16_t> cut(AlignedArray<float> &x, bool cuts) {
    AlignedArray<uint16_t> halves(cuts ? x.size : 1);
    for (size_t i = 0; cuts && i < size_t(x.size); ++i) {
      uint32_t bits;
      std::memcpy(&bits, &x[i], sizeof(bits));
      halves[i] = static_cast<uint16_t>(bits >> 16);
      bits &= 0xffff0000;
      std::memcpy(&x[i], &bits, sizeof(bits));
    }
    return halves;
  }

  /// Products of two tiles that `s` takes of each pair of parts.
  static uint64_t productsOf(const Shape &s) {
    auto tiles = [](int64_t size, int64_t tile) { return static_cast<uint64_t>((size + tile - 1) / tile); };
    return s.batch * tiles(s.m, kTileLines) * tiles(s.n, kTileLines) * tiles(s.k, kTileDepth);
  }

  /// Runs `s` and compares every sum with double precision, as a share of the sum of its products' sizes. On
  /// these numbers chains of fused multiply-adds are off by 5e-7 to 1e-6; without one of the six products the
  /// error is 7e-6 and more. Vectors of pairs are such chains.
  void check(const Shape &s, Operands operands = Operands::F32) {
    KernelModule m;
    bool isNarrow = operands == Operands::BF16;
    ContractionSpec spec = isNarrow ? narrowSpecOf(s, m) : specOf(s, m.builder.getF32Type());
    Compiled compiled = compile(spec, m);
    AlignedArray<float> a(s.batch * s.m * s.k), b(s.batch * s.k * s.n), c(s.batch * s.m * s.n + 16);
    fillWide(a, 1);
    fillWide(b, 2);
    AlignedArray<uint16_t> narrowA = cut(a, isNarrow), narrowB = cut(b, isNarrow);
    for (float &v : c)
      v = 12345;
    uint64_t before = unit.getProducts();
    if (isNarrow)
      compiled.run({narrowA.begin(), narrowB.begin(), c.begin()});
    else
      compiled.run({a.begin(), b.begin(), c.begin()});
    if (unit.isSoftware() && wantedUnit == BlockUnit::Tiles) {
      EXPECT_EQ(unit.getProducts() - before, (isNarrow ? 1 : 6) * productsOf(s)) << describe(s);
    }
    AlignedArray<float> sizesA(a.size), sizesB(b.size);
    std::transform(a.begin(), a.end(), sizesA.begin(), [](float v) { return std::abs(v); });
    std::transform(b.begin(), b.end(), sizesB.begin(), [](float v) { return std::abs(v); });
    double worst = 0;
    for (int64_t batch = 0; batch < s.batch; ++batch)
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j) {
          double error = std::abs(double(c[placeInC(s, batch, i, j)]) - referenceAt(s, a, b, batch, i, j)) /
                         referenceAt(s, sizesA, sizesB, batch, i, j);
          if (!(error <= worst))
            worst = error;
        }
    EXPECT_LE(worst, wantedUnit == BlockUnit::Tiles ? 5e-7 : 1e-6) << describe(s);
    for (int i = 0; i < 16; ++i)
      EXPECT_EQ(c[s.batch * s.m * s.n + i], 12345) << "wrote beyond the end: " << describe(s);
  }

  /// Two layouts of each size, in turns.
  void checkLayouts(std::initializer_list<std::array<int64_t, 3>> sizes) {
    constexpr int kLayouts = 5;
    int count = 0;
    for (const auto &size : sizes) {
      for (int layout : {count % kLayouts, (count + 3) % kLayouts})
        check({size[0], size[1], size[2], bool(layout & 1), bool(layout & 2), bool(layout & 4)});
      ++count;
    }
  }

  MatrixUnit unit;
  Target target = unit.getTarget();
  BlockUnit wantedUnit = BlockUnit::Tiles;
};

/// The same on vectors of pairs: those of this machine, or plain arithmetic in their place.
class PairContractionTest : public MatrixContractionTest {
protected:
  PairContractionTest() {
    target = *findTarget("native");
    target.isa.set(Instruction::MatrixUnit, false);
    if (!target.has(Instruction::PairProduct)) {
      target.isa.architecture = &software;
      target.isa.set(Instruction::PairProduct);
    }
    wantedUnit = BlockUnit::Pairs;
  }

  PairArithmetic software{*findTarget("native")->isa.architecture};
};

/// Edges of all kinds: tiles that are not full along rows, columns and k, one tile of two, several blocks of
/// k and columns. The layout matters to what packs an operand, the size to what multiplies: each size has two layouts
/// in turn, so that each layout has several sizes.
TEST_F(MatrixContractionTest, IsAsExactAsF32) {
  checkLayouts({{3, 5, 7}, {5, 40, 3}, {64, 64, 64}, {33, 77, 129}, {61, 50, 830}, {47, 49, 96}});
  check({48, 40, 64, false, true, false, 9});
  check({97, 64, 97, true, false, false, 5});
}

/// bf16 numbers have one part. Every layout packs differently: vectors of a tile as they lie, or pairs that change
/// places.
TEST_F(MatrixContractionTest, NarrowNumbersTakeOneProduct) {
  for (int layout = 0; layout < 4; ++layout)
    for (auto [m, n, k] : {std::array<int64_t, 3>{33, 77, 129}, {64, 64, 64}, {5, 40, 3}, {61, 50, 830}})
      check({m, n, k, bool(layout & 1), bool(layout & 2)}, Operands::BF16);
  check({48, 40, 64, false, true, true, 9}, Operands::BF16);
}

/// The same edges, and more steps of k than those after which columns are read again.
TEST_F(PairContractionTest, SumsProductsOfNarrowNumbers) {
  for (int layout = 0; layout < 4; ++layout)
    check({33, 77, 129, bool(layout & 1), bool(layout & 2)}, Operands::BF16);
  check({5, 40, 3}, Operands::BF16);
  check({61, 50, 830, true}, Operands::BF16);
  check({48, 40, 64, false, true, true, 9}, Operands::BF16);
}

#if defined(__x86_64__)
/// VDPBF16PS is EVEX.512.F3.0F38.W0 52: one for each pair of the innermost loop, row of a group and vector of columns.
TEST_F(PairContractionTest, PairsAreOneInstruction) {
  Target wide = *findTarget("x86-64-v4");
  wide.isa.features = "+avx512bf16";
  wide.isa.set(Instruction::PairProduct);
  KernelModule m;
  ContractionSpec spec = narrowSpecOf({64, 64, 64}, m);
  emitMatrixContraction(m.builder, *m.module, spec, *planMatrix(spec, wide));
  llvm::Expected<CodeBlob> blob = compileModule(*m.module, wide);
  ASSERT_TRUE(bool(blob));
  const auto &code = blob->bytes;
  int64_t count = 0;
  for (size_t i = 0; i + 5 < code.size(); ++i)
    count += code[i] == 0x62 && (code[i + 1] & 0x0f) == 0x02 && (code[i + 2] & 0x87) == 0x06 &&
             (code[i + 3] & 0x60) == 0x40 && code[i + 4] == 0x52;
  EXPECT_EQ(count, 4 * 8 * 2);
}
#endif

/// f32 numbers and others of 16 bits are multiplied as f32; so is all where bits may not depend on the target.
TEST_F(PairContractionTest, OtherNumbersAreNotForIt) {
  KernelModule m;
  EXPECT_FALSE(planMatrix(specOf({512, 512, 512}, m.builder.getF32Type()), target));
  ContractionSpec spec = narrowSpecOf({512, 512, 512}, m);
  ASSERT_TRUE(planMatrix(spec, target));
  EXPECT_TRUE(isFasterOnUnit(*planMatrix(spec, target)));
  spec.narrowA = spec.narrowB = m.builder.getF16Type();
  EXPECT_FALSE(planMatrix(spec, target));
  spec = narrowSpecOf({512, 512, 512}, m);
  spec.numerics = Numerics::Portable;
  EXPECT_FALSE(planMatrix(spec, target));
}

/// What has more bits than bf16 on one side, or others, is not for it.
TEST_F(MatrixContractionTest, OtherNarrowNumbersAreNotForIt) {
  KernelModule m;
  ContractionSpec spec = narrowSpecOf({512, 512, 512}, m);
  ASSERT_TRUE(planMatrix(spec, target));
  spec.narrowA = Type();
  spec.buffers[0].elementType = m.builder.getF32Type();
  EXPECT_FALSE(planMatrix(spec, target));
  spec = narrowSpecOf({512, 512, 512}, m);
  spec.narrowA = spec.narrowB = m.builder.getF16Type();
  EXPECT_FALSE(planMatrix(spec, target));
}

class MatrixContractionSweepTest : public MatrixContractionTest {};

TEST_F(MatrixContractionSweepTest, IsAsExactAsF32) {
  checkLayouts({{100, 300, 257}, {17, 16, 800}, {96, 16, 200}, {48, 130, 65}, {50, 480, 900}});
}

/// Any order of chunks and any worker gives the same bits, and so does any number of them.
TEST_F(MatrixContractionTest, BitsDoNotDependOnChunks) {
  for (Shape s : {Shape{300, 500, 200}, Shape{150, 1000, 900, false, true}, Shape{500, 160, 300, true},
                  Shape{128, 144, 160, false, false, false, 40}}) {
    AlignedArray<float> a(s.batch * s.m * s.k), b(s.batch * s.k * s.n), c(s.batch * s.m * s.n), d(c.size);
    fillWide(a, 1);
    fillWide(b, 2);
    for (int64_t workers : {1, 2, 4}) {
      target.workers = workers;
      KernelModule m;
      ContractionSpec spec = specOf(s, m.builder.getF32Type());
      Compiled compiled = compile(spec, m);
      compiled.run({a.begin(), b.begin(), (workers == 1 ? c : d).begin()});
      EXPECT_GE(compiled.info.chunks, workers) << describe(s);
      if (workers > 1) {
        EXPECT_EQ(std::memcmp(c.begin(), d.begin(), c.size * 4), 0) << describe(s) << " " << workers;
      }
    }
  }
}

/// A B + bias, relu, with partial sums of several blocks and columns that do not fill a vector.
TEST_F(MatrixContractionTest, EpilogueRunsOnFinishedSums) {
  for (Shape s : {Shape{170, 175, 229}, Shape{165, 150, 1700, false, true}}) {
    KernelModule m;
    Type f32 = m.builder.getF32Type();
    ContractionSpec spec = specOf(s, f32);
    spec.buffers.insert(spec.buffers.begin() + 2, {f32, s.n, false, true});
    spec.operands = {{0, 0}, {1, 0}, {3, 0}, {2, 0}};
    spec.batch.clear();
    spec.k[0].strides.push_back(0);
    spec.m[0].strides.push_back(0);
    spec.n[0].strides.push_back(1);
    spec.partialOperand = -1;
    spec.epilogue = [](OpBuilder &b, Location loc, EpilogueAccess &access, Value sum) {
      Value biased = arith::AddFOp::create(b, loc, sum, access.load(b, loc, 3));
      Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(sum.getType()));
      access.store(b, loc, 2, arith::MaximumFOp::create(b, loc, biased, zero));
    };
    Compiled compiled = compile(spec, m);
    AlignedArray<float> a(s.m * s.k), b(s.k * s.n), bias(s.n), c(s.m * s.n);
    fill(a, 1);
    fill(b, 2);
    fill(bias, 3);
    compiled.run({a.begin(), b.begin(), bias.begin(), c.begin()});
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j)
        ASSERT_NEAR(c[i * s.n + j], std::max(referenceAt(s, a, b, 0, i, j) + bias[j], 0.0), 1.5e-7 * s.k)
            << describe(s);
  }
}

/// Where bits may not depend on the target, all targets multiply and add.
TEST_F(MatrixContractionTest, PortableNumbersAreNotForIt) {
  KernelModule m;
  ContractionSpec spec = specOf({512, 512, 512}, m.builder.getF32Type());
  ASSERT_TRUE(planMatrix(spec, target));
  EXPECT_TRUE(isFasterOnUnit(*planMatrix(spec, target)));
  spec.numerics = Numerics::Portable;
  EXPECT_FALSE(planMatrix(spec, target));
}

} // namespace
