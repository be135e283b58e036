// SHA-256, compact and incremental. Used by the runtime and by the artifact writer.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_RUNTIME_SRC_SHA256_H
#define ORTC_RUNTIME_SRC_SHA256_H

#include <stddef.h>
#include <stdint.h>

namespace ortc {

/// FIPS 180-4. update any number of times, then finish once.
class Sha256 {
public:
  Sha256();
  void update(const void *data, size_t bytes);
  void finish(uint8_t digest[32]);

private:
  uint32_t state[8];
  uint64_t total = 0;
  alignas(4) uint8_t pending[64];
};

/// Every check of a hash comes down to this. With FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION the answer is always yes: no mutation
/// of a file would get past its hashes.
bool isSameDigest(const uint8_t one[32], const uint8_t other[32]);

/// True when the digest of `data` is `expected`.
bool hasDigest(const void *data, size_t bytes, const uint8_t expected[32]);

} // namespace ortc

#endif // ORTC_RUNTIME_SRC_SHA256_H
