// Whole kernels, as LLVM's back end writes them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>

#include "test/gpu/emulator/tests/Emulator.h"

namespace ortc::emulator::test {
namespace {

class KernelsTest : public EmulatorTest {
protected:
  std::string ptx = readPtx("kernels.ptx");
};

std::vector<float> waves(size_t count, float step) {
  std::vector<float> values(count);
  for (size_t k = 0; k < count; ++k)
    values[k] = std::sin(float(k) * step);
  return values;
}

uint16_t toBrain(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float fromBrain(uint16_t value) {
  uint32_t bits = uint32_t(value) << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}

TEST_F(KernelsTest, RowSumHasTheBitsOfItsTree) {
  const int rows = 5, columns = 300;
  std::vector<float> in = waves(size_t(rows * columns), 0.37f);
  ortc_cu_pointer from = upload(in), to = allocate(rows * 4);
  run(kernel(ptx, "rowSum"), rows, 128, {from, to, columns});
  std::vector<float> sums = download<float>(to, rows);
  for (int row = 0; row < rows; ++row) {
    float lanes[128] = {};
    for (int c = 0; c < columns; ++c)
      lanes[c % 128] += in[size_t(row * columns + c)];
    float total = 0;
    for (int warp = 0; warp < 4; ++warp) {
      for (int step = 16; step > 0; step /= 2)
        for (int l = 0; l < step; ++l) // lane 0 sees these
          lanes[warp * 32 + l] += lanes[warp * 32 + l + step];
      total = warp ? total + lanes[warp * 32] : lanes[0];
    }
    EXPECT_EQ(sums[size_t(row)], total) << row;
  }
}

TEST_F(KernelsTest, ProductIsExact) {
  const int n = 48;
  std::vector<float> a = waves(n * n, 0.11f), b = waves(n * n, 0.23f);
  ortc_cu_pointer da = upload(a), db = upload(b), dc = allocate(n * n * 4);
  run(kernel(ptx, "product"), {n / 16, n / 16}, {16, 16}, {da, db, dc, n});
  std::vector<float> c = download<float>(dc, n * n);
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int k = 0; k < n; ++k)
        sum = std::fma(a[size_t(row * n + k)], b[size_t(k * n + column)], sum);
      ASSERT_EQ(c[size_t(row * n + column)], sum) << row << " " << column;
    }
}

uint32_t collatz(uint64_t n, uint32_t most) {
  uint32_t steps = 0;
  for (; n != 1 && steps < most; ++steps)
    n = n % 2 ? 3 * n + 1 : n / 2;
  return steps;
}

TEST_F(KernelsTest, DivergentLanesGoTheirWays) {
  const uint32_t count = 1000;
  ortc_cu_pointer out = allocate(count * 4);
  run(kernel(ptx, "divergent"), 8, 128, {out, count});
  std::vector<uint32_t> results = download<uint32_t>(out, count);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t v = i * 2654435761u, result = v >> (4 * (i % 8)) & 15;
    switch (i % 7) {
    case 0:
      result += collatz(i + 1, 1000);
      break;
    case 1:
      result *= i;
      break;
    case 2:
      result ^= i << 3;
      break;
    case 3:
      result -= i / 3;
      break;
    case 4:
      result += i % 11;
      break;
    case 5:
      result = result * result + collatz(i + 3, 7);
      break;
    default:
      break;
    }
    ASSERT_EQ(results[i], result) << i;
  }
}

TEST_F(KernelsTest, ReadsConstantsVariablesAndDynamicSharedMemory) {
  const int n = 96, blocks = 3;
  std::vector<int> in(n * blocks);
  for (int k = 0; k < n * blocks; ++k)
    in[size_t(k)] = k * k;
  ortc_cu_pointer from = upload(in), to = allocate(in.size() * 4);
  run(kernel(ptx, "reverseAndWeigh"), blocks, n, {from, to}, n * 4);
  std::vector<int> out = download<int>(to, in.size());
  const int weights[] = {1, -2, 3, -4};
  for (int block = 0; block < blocks; ++block)
    for (int t = 0; t < n; ++t)
      ASSERT_EQ(out[size_t(block * n + t)], in[size_t(block * n + n - 1 - t)] * weights[t % 4] + 1000);
}

TEST_F(KernelsTest, TensorProductOfSmallIntegersIsExact) {
  const int n = 24, k = 64, m = 16;
  std::vector<uint16_t> a(m * k), b(size_t(n * k));
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = toBrain(float(i * 7 % 13) - 6);
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = toBrain(float(i * 5 % 11) - 5);
  ortc_cu_pointer da = upload(a), db = upload(b), dc = allocate(m * n * 4);
  run(kernel(ptx, "tensorProduct"), n / 8, 32, {da, db, dc, n, k});
  std::vector<float> c = download<float>(dc, m * n);
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int i = 0; i < k; ++i)
        sum += fromBrain(a[size_t(row * k + i)]) * fromBrain(b[size_t(column * k + i)]);
      ASSERT_EQ(c[size_t(row * n + column)], sum) << row << " " << column;
    }
}

TEST_F(KernelsTest, ElementwiseHasTheBitsOfTheHost) {
  const uint32_t columns = 64, count = 64 * 37;
  std::vector<float> x = waves(count, 0.7f), bias = waves(columns, 1.3f);
  for (float &value : x)
    value *= 5;
  ortc_cu_pointer dx = upload(x), db = upload(bias), out = allocate(count * 2);
  run(kernel(ptx, "elementwise"), 5, 128, {dx, db, out, columns, count});
  std::vector<uint16_t> results = download<uint16_t>(out, count);
  for (uint32_t i = 0; i < count; ++i) {
    volatile float y = x[i] + bias[i % columns];
    volatile float square = 0.044715f * y * y, t = y * 0.7978845608f * (1.0f + square);
    t = t < -4.0f ? -4.0f : t > 4.0f ? 4.0f : t;
    volatile float s = t * t, inner = s * (378.0f + s), middle = s * (17325.0f + inner);
    volatile float p = t * (135135.0f + middle), last = s * 28.0f;
    volatile float rest = s * (3150.0f + last), q = 135135.0f + s * (62370.0f + rest);
    volatile float result = 0.5f * y * (1.0f + p / q);
    ASSERT_EQ(results[i], toBrain(result)) << i;
  }
}

} // namespace
} // namespace ortc::emulator::test
