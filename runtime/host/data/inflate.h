// Decompression with sizes that are known and checked beforehand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_RUNTIME_HOST_DATA_INFLATE_H
#define ORTC_RUNTIME_HOST_DATA_INFLATE_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace ortc::host {

enum class Compression { Raw, Gzip };

/// The most that `bytes` of deflated data can expand to: 1032 to 1 is the format's limit. Asked before memory
/// is allocated for a size that a file claims.
inline bool canExpandTo(size_t bytes, uint64_t claimed) { return claimed / 1032 <= bytes + 1; }

/// Inflates into exactly `wanted` bytes; returns "" or what is wrong. With `prefix` the stream may go on
/// after them.
std::string inflateExactly(const uint8_t *from, size_t bytes, Compression compression, uint8_t *to,
                           size_t wanted, bool prefix = false);

} // namespace ortc::host

#endif // ORTC_RUNTIME_HOST_DATA_INFLATE_H
