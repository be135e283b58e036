// Contractions of random matrices, compiled, run and compared with sums in double precision.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/compiler/backends/cpu/KernelFixture.h"

#include "compiler/backends/cpu/contraction/Contraction.h"

#include <cmath>
#include <cstring>
#include <random>

namespace ortc::cpu::test {

/// C = A B for `batch` matrices; transposed operands are stored as their transpose.
struct Shape {
  int64_t m, n, k;
  bool transposeA = false, transposeB = false, transposeC = false;
  int64_t batch = 1;
};

inline std::string describe(const Shape &s) {
  return std::to_string(s.batch) + "x" + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" +
         std::to_string(s.k) + (s.transposeA ? " T" : " N") + (s.transposeB ? "T" : "N") +
         (s.transposeC ? "T" : "N");
}

inline ContractionSpec specOf(const Shape &s, mlir::Type element) {
  ContractionSpec spec;
  spec.name = "contraction";
  spec.accumulatorType = element;
  spec.buffers = {{element, s.batch * s.m * s.k, false, true},
                  {element, s.batch * s.k * s.n, false, true},
                  {element, s.batch * s.m * s.n, true, true}};
  spec.operands = {{0, 0}, {1, 0}, {2, 0}};
  spec.batch = {{s.batch, {s.m * s.k, s.k * s.n, s.m * s.n}}};
  spec.m = {{s.m, {s.transposeA ? 1 : s.k, 0, s.transposeC ? 1 : s.n}}};
  spec.n = {{s.n, {0, s.transposeB ? s.k : 1, s.transposeC ? s.m : 1}}};
  spec.k = {{s.k, {s.transposeA ? s.m : 1, s.transposeB ? 1 : s.n, 0}}};
  spec.partialOperand = 2;
  return spec;
}

/// A compiled contraction with its workspace.
struct Compiled {
  Compiled(const ContractionSpec &spec, KernelModule &m, const Target &target)
      : Compiled(*emitContraction(m.builder, *m.module, spec, target), m, target) {}
  Compiled(KernelInfo info, KernelModule &m, const Target &target)
      : info(std::move(info)), blob(m.load(target)), workspace(this->info.workspaceBytesPerWorker + 64) {}

  void run(std::vector<void *> args) {
    std::memset(workspace.begin(), 0x7f, workspace.size); // large numbers: stale contents must not matter
    args.push_back(workspace.begin());
    for (int64_t chunk = info.chunks; chunk-- > 0;)
      blob.kernel(info.name)(args.data(), chunk, 0);
  }

  KernelInfo info;
  LoadedBlob blob;
  AlignedArray<char> workspace;
};

template <typename T> void fill(AlignedArray<T> &x, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (T &v : x)
    v = T(uniform(random));
}

template <typename T>
double referenceAt(const Shape &s, const AlignedArray<T> &a, const AlignedArray<T> &b, int64_t batch,
                   int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < s.k; ++k)
    sum += double(a[batch * s.m * s.k + (s.transposeA ? k * s.m + i : i * s.k + k)]) *
           double(b[batch * s.k * s.n + (s.transposeB ? j * s.k + k : k * s.n + j)]);
  return sum;
}

inline int64_t placeInC(const Shape &s, int64_t batch, int64_t i, int64_t j) {
  return batch * s.m * s.n + (s.transposeC ? j * s.m + i : i * s.n + j);
}

/// Returns the bytes of C.
template <typename T>
std::vector<T> check(const Shape &s, const Target &target, Numerics numerics = Numerics::Fast) {
  KernelModule m;
  mlir::Type element =
      sizeof(T) == 4 ? mlir::Type(m.builder.getF32Type()) : mlir::Type(m.builder.getF64Type());
  ContractionSpec spec = specOf(s, element);
  spec.numerics = numerics;
  Compiled compiled(spec, m, target);
  AlignedArray<T> a(s.batch * s.m * s.k), b(s.batch * s.k * s.n), c(s.batch * s.m * s.n + 16);
  fill(a, 1);
  fill(b, 2);
  for (T &v : c)
    v = T(12345);
  compiled.run({a.begin(), b.begin(), c.begin()});
  // Rounding errors of k sums of products below one.
  double tolerance = (sizeof(T) == 4 ? 1.2e-7 : 2.3e-16) * (4 + s.k);
  double worst = 0;
  for (int64_t batch = 0; batch < s.batch; ++batch)
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        double error = std::abs(double(c[placeInC(s, batch, i, j)]) - referenceAt(s, a, b, batch, i, j));
        if (!(error <= worst))
          worst = error;
      }
  EXPECT_LE(worst, tolerance) << describe(s) << " " << target.name << " f" << sizeof(T) * 8;
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(c[s.batch * s.m * s.n + i], T(12345))
        << "wrote beyond the end: " << describe(s) << " " << target.name;
  return std::vector<T>(c.begin(), c.begin() + s.batch * s.m * s.n);
}

} // namespace ortc::cpu::test
