// SHA-256 after FIPS 180-4, written for size. Data of some KiB goes through the processor's own instructions
// where it has them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/sha256.h"

#if defined(__x86_64__)
#define ORTC_SHA256_INSTRUCTIONS
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#define ORTC_SHA256_INSTRUCTIONS
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

namespace ortc {

alignas(16) static const uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
static const uint32_t kInitial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static inline uint32_t rotate(uint32_t x, unsigned n) { return x >> n | x << (32 - n); }

#if defined(__aarch64__) && defined(__linux__)
static bool hasInstructions() { return getauxval(AT_HWCAP) >> 6 & 1; } // HWCAP_SHA2

#if defined(__clang__)
__attribute__((target("sha2")))
#else
__attribute__((target("+crypto")))
#endif
static void addBlocksFast(uint32_t state[8], const uint8_t *p, size_t blocks) {
  uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
  for (; blocks; blocks--) {
    uint32x4_t words[16], first = abcd, second = efgh;
    for (int i = 0; i < 16; i++) { // four words and four rounds
      uint32x4_t *w = words + i;
      if (i < 4) {
        *w = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(p)));
        p += 16;
      } else {
        *w = vsha256su1q_u32(vsha256su0q_u32(w[-4], w[-3]), w[-2], w[-1]);
      }
      uint32x4_t sum = vaddq_u32(*w, vld1q_u32(kRound + 4 * i)), old = abcd;
      abcd = vsha256hq_u32(abcd, efgh, sum);
      efgh = vsha256h2q_u32(efgh, old, sum);
    }
    abcd = vaddq_u32(abcd, first);
    efgh = vaddq_u32(efgh, second);
  }
  vst1q_u32(state, abcd);
  vst1q_u32(state + 4, efgh);
}
#elif defined(__x86_64__)
/// The bit of SHA in cpuid. Every processor that has it has SSE4.1; those without leaf 7 have no such bit in any.
static bool hasInstructions() {
  uint32_t a = 7, b, c = 0, d;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return b >> 29 & 1;
}

__attribute__((target("sha,ssse3,sse4.1"))) static void addBlocksFast(uint32_t state[8], const uint8_t *p,
                                                                      size_t blocks) {
  // The instructions want the state as (a, b, e, f) and (c, d, g, h), the last one lowest.
  __m128i low = _mm_loadu_si128((const __m128i *)state), high = _mm_loadu_si128((const __m128i *)state + 1);
  low = _mm_shuffle_epi32(low, 0xb1);
  high = _mm_shuffle_epi32(high, 0x1b);
  __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  for (; blocks; blocks--) {
    __m128i words[16], first = abef, second = cdgh;
    for (int i = 0; i < 16; i++) { // four words and four rounds
      __m128i *w = words + i, next;
      if (i < 4) {
        next = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p), swap);
        p += 16;
      } else {
        next = _mm_add_epi32(_mm_sha256msg1_epu32(w[-4], w[-3]), _mm_alignr_epi8(w[-1], w[-2], 4));
        next = _mm_sha256msg2_epu32(next, w[-1]);
      }
      *w = next;
      __m128i sum = _mm_add_epi32(next, _mm_load_si128((const __m128i *)kRound + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    }
    abef = _mm_add_epi32(abef, first);
    cdgh = _mm_add_epi32(cdgh, second);
  }
  low = _mm_shuffle_epi32(abef, 0x1b);
  high = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
  _mm_storeu_si128((__m128i *)state + 1, _mm_alignr_epi8(high, low, 8));
}
#endif

static void addBlocks(uint32_t state[8], const uint8_t *p, size_t blocks) {
#if defined(ORTC_SHA256_INSTRUCTIONS)
  // Below, asking the processor costs more than it saves: a hypervisor may have to answer.
  if (blocks >= 64 && hasInstructions())
    return addBlocksFast(state, p, blocks);
#endif
  for (; blocks; blocks--) {
    uint32_t w[16], v[72], *r = v + 64; // a to h are r[0] to r[7], and r goes down
    memcpy(r, state, 32);
    for (unsigned i = 0; i < 64; i++) {
      uint32_t &word = w[i % 16];
      if (i < 16) {
        memcpy(&word, p, 4);
        word = __builtin_bswap32(word);
        p += 4;
      } else {
        uint32_t a = w[(i + 1) % 16], b = w[(i + 14) % 16];
        word += (rotate(rotate(a, 11) ^ a, 7) ^ a >> 3) + w[(i + 9) % 16] +
                (rotate(rotate(b, 2) ^ b, 17) ^ b >> 10);
      }
      uint32_t a = r[0], e = r[4];
      uint32_t t = r[7] + rotate(rotate(rotate(e, 14) ^ e, 5) ^ e, 6) + (((r[5] ^ r[6]) & e) ^ r[6]) +
                   kRound[i] + word;
      uint32_t majority = (a & r[1]) | ((a | r[1]) & r[2]);
      *--r = t + rotate(rotate(rotate(a, 9) ^ a, 11) ^ a, 2) + majority;
      r[4] += t;
    }
    for (int i = 0; i < 8; i++)
      state[i] += v[i];
  }
}

void sha256(const void *data, size_t bytes, uint8_t digest[32]) {
  uint32_t state[8];
  memcpy(state, kInitial, sizeof state);
  size_t rest = bytes % 64, last = rest < 56 ? 56 : 120;
  uint8_t tail[128];
  memset(tail, 0, sizeof tail);
  for (size_t i = 0; i < rest; i++) // no memcpy: data may be null where there is none
    tail[i] = ((const uint8_t *)data)[bytes - rest + i];
  tail[rest] = 0x80;
  uint64_t bits = __builtin_bswap64((uint64_t)bytes * 8);
  memcpy(tail + last, &bits, sizeof bits);
  addBlocks(state, (const uint8_t *)data, bytes / 64);
  addBlocks(state, tail, last / 56);
  for (int i = 0; i < 8; i++) {
    uint32_t word = __builtin_bswap32(state[i]);
    memcpy(digest + 4 * i, &word, sizeof word);
  }
}

Sha256::Sha256() { memcpy(state, kInitial, sizeof state); }

void Sha256::add(const void *data, size_t bytes) {
  auto from = (const uint8_t *)data;
  while (bytes) {
    size_t filled = total % 64, count = 64 - filled < bytes ? 64 - filled : bytes;
    if (!filled && bytes >= 64) {
      count = bytes / 64 * 64;
      addBlocks(state, from, count / 64);
    } else {
      memcpy(rest + filled, from, count);
      if (filled + count == 64)
        addBlocks(state, rest, 1);
    }
    from += count;
    bytes -= count;
    total += count;
  }
}

void Sha256::finish(uint8_t digest[32]) {
  uint8_t padding[72] = {0x80};
  size_t filled = total % 64, count = (filled < 56 ? 56 : 120) - filled;
  uint64_t bits = __builtin_bswap64(total * 8);
  memcpy(padding + count, &bits, sizeof bits);
  add(padding, count + sizeof bits);
  for (int i = 0; i < 8; i++) {
    uint32_t word = __builtin_bswap32(state[i]);
    memcpy(digest + 4 * i, &word, sizeof word);
  }
}

bool hasDigest(const void *data, size_t bytes, const uint8_t expected[32]) {
  uint8_t digest[32];
  sha256(data, bytes, digest);
  return isSameDigest(digest, expected);
}

} // namespace ortc
