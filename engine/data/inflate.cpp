// Decompression by zlib, in pieces that fit its 32-bit counters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/data/inflate.h"

#include <algorithm>
#include <new>
#include <unistd.h>
#include <zlib.h>

namespace ortc::engine {

/// With `prefix` the stream may go on after `wanted` bytes.
static std::string inflateInto(const uint8_t *from, size_t bytes, Compression compression, uint8_t *to,
                               size_t wanted, bool prefix, const volatile std::sig_atomic_t *stop) {
  constexpr size_t kPiece = size_t(16) << 20; // some hundredths of a second
  z_stream stream{};
  if (inflateInit2(&stream, compression == Compression::Gzip ? 16 + MAX_WBITS : -MAX_WBITS) != Z_OK)
    return "cannot be inflated: out of memory";
  size_t taken = 0, made = 0;
  int status = Z_OK;
  uint8_t beyond = 0; // room for one byte too many tells that there is more
  while (status == Z_OK) {
    if (stop && *stop && made >= kPiece) {
      inflateEnd(&stream);
      return "was not inflated to its end: interrupted";
    }
    size_t input = std::min(bytes - taken, kPiece), room = std::min(wanted - made, kPiece);
    bool full = room == 0;
    stream.next_in = const_cast<Bytef *>(from + taken);
    stream.avail_in = uInt(input);
    stream.next_out = full ? &beyond : to + made;
    stream.avail_out = full ? 1 : uInt(room);
    status = inflate(&stream, Z_NO_FLUSH);
    taken += input - stream.avail_in;
    if (full && stream.avail_out == 0) {
      inflateEnd(&stream);
      return prefix ? "" : "inflates to more than " + std::to_string(wanted) + " bytes";
    }
    if (!full)
      made += room - stream.avail_out;
    if (status == Z_BUF_ERROR && taken < bytes)
      status = Z_OK;
  }
  std::string reason = stream.msg ? std::string(" (") + stream.msg + ")" : "";
  inflateEnd(&stream);
  if (status == Z_BUF_ERROR)
    return "ends in the middle of its compressed data";
  if (status != Z_STREAM_END)
    return "has damaged compressed data" + reason;
  if (made != wanted)
    return "inflates to " + std::to_string(made) + " bytes instead of " + std::to_string(wanted);
  return "";
}

std::string inflateExactly(const uint8_t *from, size_t bytes, Compression compression, uint8_t *to,
                           size_t wanted, const volatile std::sig_atomic_t *stop) {
  return inflateInto(from, bytes, compression, to, wanted, false, stop);
}

std::string inflatePrefix(const uint8_t *from, size_t bytes, Compression compression, uint8_t *to,
                          size_t wanted) {
  return inflateInto(from, bytes, compression, to, wanted, true, nullptr);
}

std::string allocateInflated(size_t bytes, std::shared_ptr<uint8_t[]> &memory) {
  uint64_t most = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  memory.reset(bytes <= most ? new (std::nothrow) uint8_t[bytes] : nullptr);
  return memory ? ""
                : "inflates to " + std::to_string(bytes) +
                      " bytes, and there is no memory for them (the machine has " + std::to_string(most) +
                      "); an array that is not compressed stays in its file";
}

} // namespace ortc::engine
