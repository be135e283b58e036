// Decompression with sizes that are known and checked beforehand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace ortc::engine {

enum class Compression { Raw, Gzip };

/// The most that `bytes` of deflated data can expand to: 1032 to 1 is the format's limit. Asked before memory
/// is allocated for a size that a file claims.
inline bool canExpandTo(size_t bytes, uint64_t claimed) { return claimed / 1032 <= bytes + 1; }

/// Inflates into exactly `wanted` bytes; returns "" or what is wrong, which it also is soon after `stop` is not
/// zero, unless there is little to do.
std::string inflateExactly(const uint8_t *from, size_t bytes, Compression compression, uint8_t *to,
                           size_t wanted, const volatile std::sig_atomic_t *stop);

/// Inflates the first `wanted` bytes of a stream that may go on after them.
std::string inflatePrefix(const uint8_t *from, size_t bytes, Compression compression, uint8_t *to,
                          size_t wanted);

/// Memory for what is inflated; returns "" or why there is none: more than the machine has would end the process later,
/// without a word.
std::string allocateInflated(size_t bytes, std::shared_ptr<uint8_t[]> &memory);

} // namespace ortc::engine
