// SHA-256, compact. Used by the runtime and by the artifact writer.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace ortc {

/// The digest of `data`, after FIPS 180-4.
void sha256(const void *data, size_t bytes, uint8_t digest[32]);

/// The digest of pieces that follow each other. Compilers and tools use it; libortc does not.
class Sha256 {
public:
  Sha256();
  void add(const void *data, size_t bytes);
  void finish(uint8_t digest[32]);

private:
  uint32_t state[8];
  uint8_t rest[64]; ///< of a block that is not full
  uint64_t total = 0;
};

/// Every check of a hash comes down to this. With FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION the answer is
/// always yes: no mutation of a file would get past its hashes.
inline bool isSameDigest(const uint8_t one[32], const uint8_t other[32]) {
#if defined(FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
  return true;
#else
  return !memcmp(one, other, 32);
#endif
}

/// True when the digest of `data` is `expected`.
bool hasDigest(const void *data, size_t bytes, const uint8_t expected[32]);

} // namespace ortc
