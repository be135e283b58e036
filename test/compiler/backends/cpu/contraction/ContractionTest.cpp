// Contraction kernels against plain loops in double precision, over odd shapes, layouts and targets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/contraction/ContractionFixture.h"

using namespace mlir;
using namespace ortc::cpu;
using namespace ortc::emit;
using namespace ortc::kernels;
using namespace ortc::cpu::test;

namespace {

using Size = std::array<int64_t, 3>;
const Size kSizes[] = {{1, 1, 1},     {1, 1, 300},     {5, 1, 700},   {1, 7, 100},     {3, 2, 65},
                       {2, 3, 1000},  {4, 4, 4},       {7, 10, 84},   {6, 64, 1},      {16, 16, 16},
                       {10, 128, 32}, {32, 10, 128},   {33, 77, 129}, {100, 300, 257}, {61, 200, 1030},
                       {13, 65, 40},  {130, 130, 600}, {1, 500, 64},  {8, 96, 700},    {200, 9, 33},
                       {50, 4, 40},   {300, 3, 20}};

/// Right numbers for every layout, and the same bits whatever the width of vectors.
void checkLayouts(llvm::ArrayRef<Size> sizes) {
  int count = 0;
  for (const auto &size : sizes)
    for (int layout = 0; layout < 8; ++layout) {
      // Transposed C: every third shape is enough.
      if (layout >= 4 && (&size - sizes.begin()) % 3 != 0)
        continue;
      Shape s{size[0], size[1], size[2], bool(layout & 1), bool(layout & 2), bool(layout & 4)};
      bool isPortable = ++count % 4 == 0;
      std::vector<Target> targets = runnableTargets();
      if (!isPortable && targets.size() > 2) // the widest and, in turns, one of the others
        targets = {targets[count % (targets.size() - 1)], targets.back()};
      std::vector<std::vector<float>> results;
      for (const Target &target : targets) {
        std::vector<float> c = check<float>(s, target, isPortable ? Numerics::Portable : Numerics::Fast);
        if (isPortable || target.has(Instruction::FusedMultiplyAdd))
          results.push_back(std::move(c));
      }
      for (size_t i = 1; i < results.size(); ++i)
        EXPECT_EQ(std::memcmp(results[0].data(), results[i].data(), results[0].size() * 4), 0) << describe(s);
      if (testing::Test::HasFailure())
        return;
    }
}

TEST(ContractionTest, AllLayoutsOfOddShapes) { checkLayouts(llvm::ArrayRef(kSizes).take_front(15)); }
TEST(ContractionSweepTest, AllLayoutsOfOddShapes) { checkLayouts(llvm::ArrayRef(kSizes).drop_front(15)); }

TEST(ContractionTest, BatchesAndDouble) {
  for (const Target &target : runnableTargets())
    for (int layout = 0; layout < 4; ++layout) {
      Shape s{17, 33, 29, bool(layout & 1), bool(layout & 2), false, 5};
      check<float>(s, target);
      check<double>(s, target);
      check<double>({70, 90, 600, bool(layout & 1), bool(layout & 2)}, target);
      check<double>({2, 90, 100, bool(layout & 1), bool(layout & 2), false, 3}, target);
    }
}

/// Chunks write disjoint parts: any order and any worker gives the same bits.
TEST(ContractionTest, ChunksAreIndependent) {
  for (Shape s : {Shape{300, 500, 200}, Shape{64, 1000, 300, false, true}, Shape{500, 130, 300, true},
                  Shape{20, 40, 50, true, false, false, 90}, Shape{2000, 5, 400, false, true}}) {
    KernelModule m;
    ContractionSpec spec = specOf(s, m.builder.getF32Type());
    Compiled compiled(spec, m, runnableTargets().back());
    EXPECT_GT(compiled.info.chunks, 1) << describe(s);
    AlignedArray<float> a(s.batch * s.m * s.k), b(s.batch * s.k * s.n), c(s.batch * s.m * s.n), d(c.size);
    fill(a, 1);
    fill(b, 2);
    compiled.run({a.begin(), b.begin(), c.begin()});
    AlignedArray<char> workspaces(compiled.info.workspaceBytesPerWorker * 3 + 64);
    void *args[] = {a.begin(), b.begin(), d.begin(), workspaces.begin()};
    for (int64_t chunk = 0; chunk < compiled.info.chunks; ++chunk)
      compiled.blob.kernel("contraction")(args, chunk, chunk % 3);
    EXPECT_EQ(std::memcmp(c.begin(), d.begin(), c.size * 4), 0);
  }
}

/// relu(A B + bias) with the sums kept as well, and a mask stored as bytes.
TEST(ContractionTest, EpilogueReadsAndWritesOperands) {
  for (const Target &target : runnableTargets())
    for (Shape s : {Shape{33, 77, 129}, Shape{40, 70, 1100, false, true}, Shape{64, 2, 80},
                    Shape{50, 20, 700, true, false, true}}) {
      KernelModule m;
      Type f32 = m.builder.getF32Type();
      ContractionSpec spec = specOf(s, f32);
      spec.buffers = {spec.buffers[0],
                      spec.buffers[1],
                      {f32, s.n, false, true},
                      {f32, s.m, false, true},
                      {f32, s.m * s.n, true, true},
                      {m.builder.getI8Type(), s.m * s.n, true, true}};
      spec.operands = {{0, 0}, {1, 0}, {4, 0}, {2, 0}, {3, 0}, {5, 0}};
      int64_t rowOfC = s.transposeC ? 1 : s.n, columnOfC = s.transposeC ? s.m : 1;
      for (ContractionDim &dim : spec.batch)
        dim.strides.append({0, 0, 0});
      for (ContractionDim &dim : spec.k)
        dim.strides.append({0, 0, 0});
      spec.m[0].strides = {s.transposeA ? 1 : s.k, 0, rowOfC, 0, 1, rowOfC};
      spec.n[0].strides = {0, s.transposeB ? s.k : 1, columnOfC, 1, 0, columnOfC};
      spec.partialOperand = -1;
      spec.epilogue = [](OpBuilder &b, Location loc, EpilogueAccess &access, Value sum) {
        Value biased = arith::AddFOp::create(b, loc, sum, access.load(b, loc, 3));
        Value scaled = arith::MulFOp::create(b, loc, biased, access.load(b, loc, 4));
        Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(sum.getType()));
        Value positive = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, scaled, zero);
        access.store(b, loc, 2, arith::SelectOp::create(b, loc, positive, scaled, zero));
        Type bytes = cast<VectorType>(sum.getType()).clone(b.getI8Type());
        access.store(b, loc, 5, arith::ExtUIOp::create(b, loc, bytes, positive));
      };
      Compiled compiled(spec, m, target);
      AlignedArray<float> a(s.m * s.k), b(s.k * s.n), bias(s.n), scale(s.m), c(s.m * s.n);
      AlignedArray<int8_t> mask(s.m * s.n);
      fill(a, 1);
      fill(b, 2);
      fill(bias, 3);
      fill(scale, 4);
      compiled.run({a.begin(), b.begin(), bias.begin(), scale.begin(), c.begin(), mask.begin()});
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j) {
          double want = (referenceAt(s, a, b, 0, i, j) + bias[j]) * scale[i];
          int64_t at = placeInC(s, 0, i, j);
          ASSERT_NEAR(c[at], std::max(want, 0.0), 6e-8 * (8 + s.k)) << describe(s) << " " << target.name;
          if (std::abs(want) > 1e-4)
            ASSERT_EQ(mask[at], want > 0) << describe(s) << " " << target.name;
        }
    }
}

/// A weight gradient of per-head layout: two dims of k, two of m, lanes in the inner dim of n.
TEST(ContractionTest, SeveralDimsOfEveryKind) {
  constexpr int64_t kB = 3, kS = 50, kH = 2, kD = 20, kE = 24;
  for (const Target &target : runnableTargets())
    for (int64_t sequence : {kS, int64_t(600)}) {
      // C[h, d, e] = sum over b, s of A[b, h, s, d] * B[b, s, e]: k = (b, s), m = (h, d).
      KernelModule m;
      Type f32 = m.builder.getF32Type();
      ContractionSpec spec;
      spec.name = "contraction";
      spec.accumulatorType = f32;
      spec.buffers = {{f32, kB * kH * sequence * kD, false, true},
                      {f32, kB * sequence * kE, false, true},
                      {f32, kH * kD * kE, true, true}};
      spec.operands = {{0, 0}, {1, 0}, {2, 0}};
      spec.m = {{kH, {sequence * kD, 0, kD * kE}}, {kD, {1, 0, kE}}};
      spec.n = {{kE, {0, 1, 1}}};
      spec.k = {{kB, {kH * sequence * kD, sequence * kE, 0}}, {sequence, {kD, kE, 0}}};
      Compiled compiled(spec, m, target);
      AlignedArray<float> a(spec.buffers[0].elements), b(spec.buffers[1].elements),
          c(spec.buffers[2].elements);
      fill(a, 1);
      fill(b, 2);
      compiled.run({a.begin(), b.begin(), c.begin()});
      for (int64_t h = 0; h < kH; ++h)
        for (int64_t d = 0; d < kD; ++d)
          for (int64_t e = 0; e < kE; ++e) {
            double want = 0;
            for (int64_t n = 0; n < kB; ++n)
              for (int64_t s = 0; s < sequence; ++s)
                want += double(a[((n * kH + h) * sequence + s) * kD + d]) *
                        double(b[(n * sequence + s) * kE + e]);
            ASSERT_NEAR(c[(h * kD + d) * kE + e], want, 6e-8 * (8 + kB * sequence)) << target.name;
          }
    }
}

} // namespace
