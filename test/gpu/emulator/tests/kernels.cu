// Kernels for the emulator's tests, in CUDA without its headers. kernels.ptx is made from them by make-kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#define GLOBAL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
#define CONSTANT __attribute__((constant))
using u32 = unsigned;
using u64 = unsigned long long;
using u16 = unsigned short;

DEVICE static inline u32 tid() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE static inline u32 blockId() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE static inline u32 blockSize() { return __nvvm_read_ptx_sreg_ntid_x(); }

/// Sums of rows: shuffles, then shared memory. One block a row, blocks of 128.
GLOBAL __attribute__((launch_bounds(128))) void rowSum(const float *in, float *out, int columns) {
  SHARED static float partial[4];
  float sum = 0;
  for (int c = tid(); c < columns; c += blockSize())
    sum += in[blockId() * columns + c];
  for (int step = 16; step > 0; step /= 2)
    sum += __nvvm_shfl_sync_bfly_f32(~0u, sum, step, 31);
  if (tid() % 32 == 0)
    partial[tid() / 32] = sum;
  __syncthreads();
  if (tid() == 0)
    out[blockId()] = partial[0] + partial[1] + partial[2] + partial[3];
}

/// c = a b, tiles of 16 x 16 in shared memory; n is a multiple of 16.
GLOBAL void product(const float *a, const float *b, float *c, int n) {
  SHARED static float tileA[16][16], tileB[16][16];
  int x = tid(), y = __nvvm_read_ptx_sreg_tid_y();
  int row = __nvvm_read_ptx_sreg_ctaid_y() * 16 + y, column = blockId() * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    tileA[y][x] = a[row * n + k + x];
    tileB[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i)
      sum = __builtin_fmaf(tileA[y][i], tileB[i][x], sum);
    __syncthreads();
  }
  c[row * n + column] = sum;
}

/// Loops of different lengths, a call that is not inlined, an array per thread, a switch.
__attribute__((noinline)) DEVICE static u32 collatz(u64 n, u32 most) {
  u32 steps = 0;
  for (; n != 1 && steps < most; ++steps)
    n = n % 2 ? 3 * n + 1 : n / 2;
  return steps;
}
GLOBAL void divergent(u32 *out, u32 count) {
  u32 i = blockId() * blockSize() + tid();
  if (i >= count)
    return;
  u32 digits[8];
  u32 v = i * 2654435761u;
  for (u32 k = 0; k < 8; ++k)
    digits[k] = v >> (4 * k) & 15;
  u32 result = digits[i % 8];
  switch (i % 7) {
  case 0: result += collatz(i + 1, 1000); break;
  case 1: result *= i; break;
  case 2: result ^= i << 3; break;
  case 3: result -= i / 3; break;
  case 4: result += i % 11; break;
  case 5: result = result * result + collatz(i + 3, 7); break;
  default: break;
  }
  out[i] = result;
}

/// A table of constants, a counter of the module, dynamic shared memory.
CONSTANT const int kWeights[4] = {1, -2, 3, -4};
DEVICE int offset = 1000;
extern SHARED int reversal[];
GLOBAL void reverseAndWeigh(const int *in, int *out) {
  u32 t = tid(), n = blockSize();
  reversal[t] = in[blockId() * n + t];
  __syncthreads();
  out[blockId() * n + t] = reversal[n - 1 - t] * kWeights[t % 4] + offset;
}

/// One warp: 16 x 8 tiles of a b with tensor cores; a is 16 x k, b is n x k, both bf16; k a multiple of 16.
GLOBAL void tensorProduct(const u16 *a, const u16 *b, float *c, int n, int k) {
  SHARED static __attribute__((aligned(16))) u16 tileA[16][16], tileB[8][16];
  u32 lane = tid(), column = blockId() * 8;
  float sums[4] = {};
  u32 ofA = (u32)(u64)(__attribute__((address_space(3))) void *)tileA;
  u32 ofB = (u32)(u64)(__attribute__((address_space(3))) void *)tileB;
  for (int at = 0; at < k; at += 16) {
    u32 row = lane / 2, half = lane % 2 * 8;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(ofA + row * 32 + half * 2), "l"(a + row * k + at + half));
    if (lane < 16)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(ofB + row * 32 + half * 2),
                   "l"(b + (column + row) * k + at + half));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    u32 x[4], y[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(ofA + lane % 16 * 32 + lane / 16 * 16));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(y[0]), "=r"(y[1])
                 : "r"(ofB + lane % 8 * 32 + lane / 8 % 2 * 16));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    __syncthreads();
  }
  u32 row = lane / 4, at = column + lane % 4 * 2;
  c[row * n + at] = sums[0];
  c[row * n + at + 1] = sums[1];
  c[(row + 8) * n + at] = sums[2];
  c[(row + 8) * n + at + 1] = sums[3];
}

/// GELU by a polynomial of its own, bias, residual, bf16: what elementwise kernels look like. 4 elements a thread.
GLOBAL void elementwise(const float *x, const float *bias, u16 *out, u32 columns, u32 count) {
  u32 i = (blockId() * blockSize() + tid()) * 4;
  if (i >= count)
    return;
  using float4 = float __attribute__((ext_vector_type(4)));
  using short4 = u16 __attribute__((ext_vector_type(4)));
  float4 v = *(const float4 *)(x + i) + *(const float4 *)(bias + i % columns);
  short4 bits;
  for (int k = 0; k < 4; ++k) {
    float y = v[k], t = y * 0.7978845608f * (1.0f + 0.044715f * y * y);
    t = t < -4.0f ? -4.0f : t > 4.0f ? 4.0f : t;
    float s = t * t, p = t * (135135.0f + s * (17325.0f + s * (378.0f + s)));
    float q = 135135.0f + s * (62370.0f + s * (3150.0f + s * 28.0f));
    y = 0.5f * y * (1.0f + p / q);
    u32 word = __builtin_bit_cast(u32, y);
    bits[k] = (u16)((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
  *(short4 *)(out + i) = bits;
}
