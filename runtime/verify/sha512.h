// SHA-512, compact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace ortc::verify {

/// After FIPS 180-4; for texts of less than 2^61 bytes.
class Sha512 {
public:
  Sha512();
  void put(const void *data, size_t bytes);
  void finish(uint8_t digest[64]);

private:
  void putByte(uint8_t byte);
  void addBlock();
  uint64_t state[8], words[16], bytes = 0; ///< words: of the block that is being filled
};

} // namespace ortc::verify
