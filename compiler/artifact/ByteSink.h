// Takes a file from its beginning to its end.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>

#include "support/Status.h"

namespace ortc::artifact {

class ByteSink {
public:
  virtual ~ByteSink() = default;
  /// Appends.
  virtual Status write(std::span<const uint8_t> bytes) = 0;
  /// Replaces bytes that were written: a head holds hashes of what comes after it.
  virtual Status rewrite(uint64_t offset, std::span<const uint8_t> bytes) = 0;
};

/// Appends so many zeros.
Status writeZeros(ByteSink &sink, uint64_t bytes);

} // namespace ortc::artifact
