// SHA-256 after FIPS 180-4, written for size. With ORTC_SHA256_INSTRUCTIONS, whole blocks go through the processor's own
// instructions where it has them: for tools that hash all of a model's weights, and have room for 400 bytes more.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/sha256.h"

#include <string.h>
#if defined(ORTC_SHA256_INSTRUCTIONS) && defined(__x86_64__)
#include <immintrin.h>
#else
#undef ORTC_SHA256_INSTRUCTIONS
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

#if defined(ORTC_SHA256_INSTRUCTIONS)
/// The bits of SHA, and of SSSE3 and SSE4.1, which come with it, in cpuid.
static bool hasInstructions() {
  uint32_t a = 7, b, c = 0, d;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if (!(b >> 29 & 1))
    return false;
  a = 1;
  __asm__("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
  return c >> 9 & c >> 19 & 1;
}

__attribute__((target("sha,ssse3,sse4.1"))) static void addBlocks(uint32_t state[8], const uint8_t *p,
                                                                  size_t blocks) {
  // The instructions want the state as (a, b, e, f) and (c, d, g, h), the last one lowest.
  __m128i low = _mm_loadu_si128((const __m128i *)state), high = _mm_loadu_si128((const __m128i *)state + 1);
  low = _mm_shuffle_epi32(low, 0xb1);
  high = _mm_shuffle_epi32(high, 0x1b);
  __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  for (; blocks; blocks--, p += 64) {
    __m128i w[4], first = abef, second = cdgh;
    for (int i = 0; i < 4; i++)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p + i), swap);
    for (int i = 0; i < 16; i++) { // four rounds, and the four words for those twelve rounds on
      __m128i sum = _mm_add_epi32(w[0], _mm_load_si128((const __m128i *)kRound + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      __m128i next = _mm_add_epi32(_mm_sha256msg1_epu32(w[0], w[1]), _mm_alignr_epi8(w[3], w[2], 4));
      next = _mm_sha256msg2_epu32(next, w[3]);
      w[0] = w[1];
      w[1] = w[2];
      w[2] = w[3];
      w[3] = next;
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

Sha256::Sha256() { memcpy(state, kInitial, sizeof state); }

void Sha256::block() {
  uint32_t w[64], v[8];
  memcpy(w, pending, sizeof pending);
  for (int i = 0; i < 16; i++)
    w[i] = __builtin_bswap32(w[i]);
  for (int i = 16; i < 64; i++) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
           (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
  }
  memcpy(v, state, sizeof v);
  for (int i = 0; i < 64; i++) {
    uint32_t t1 = v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) +
                  ((v[4] & v[5]) ^ (~v[4] & v[6])) + kRound[i] + w[i];
    uint32_t t2 = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) +
                  ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 28);
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++)
    state[i] += v[i];
}

void Sha256::update(const void *data, size_t bytes) {
  const uint8_t *p = (const uint8_t *)data;
#if defined(ORTC_SHA256_INSTRUCTIONS)
  // Below a few KiB, asking the processor costs more than it saves: a hypervisor may have to answer.
  if (size_t whole = bytes & ~(size_t)63; total % 64 == 0 && whole >= 4096 && hasInstructions()) {
    addBlocks(state, p, whole / 64);
    p += whole;
    total += whole;
    bytes -= whole;
  }
#endif
  while (bytes) {
    size_t held = total % 64, n = 64 - held < bytes ? 64 - held : bytes;
    memcpy(pending + held, p, n);
    p += n;
    bytes -= n;
    total += n;
    if (total % 64 == 0)
      block();
  }
}

void Sha256::finish(uint8_t digest[32]) {
  uint64_t bits = __builtin_bswap64(total * 8);
  uint8_t byte = 0x80;
  do {
    update(&byte, 1);
    byte = 0;
  } while (total % 64 != 56);
  update(&bits, sizeof bits);
  for (int i = 0; i < 8; i++)
    state[i] = __builtin_bswap32(state[i]);
  memcpy(digest, state, 32);
}

bool isSameDigest(const uint8_t one[32], const uint8_t other[32]) {
#if defined(FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
  return true;
#else
  return !memcmp(one, other, 32);
#endif
}

bool hasDigest(const void *data, size_t bytes, const uint8_t expected[32]) {
  Sha256 hash;
  uint8_t digest[32];
  hash.update(data, bytes);
  hash.finish(digest);
  return isSameDigest(digest, expected);
}

} // namespace ortc
