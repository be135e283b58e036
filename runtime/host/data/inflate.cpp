// Decompression by zlib, in pieces that fit its 32-bit counters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/host/data/inflate.h"

#include <algorithm>
#include <zlib.h>

namespace ortc::host {

std::string inflateExactly(const uint8_t *from, size_t bytes, Compression compression, uint8_t *to,
                           size_t wanted, bool prefix) {
  constexpr size_t kPiece = size_t(1) << 30;
  z_stream stream{};
  if (inflateInit2(&stream, compression == Compression::Gzip ? 16 + MAX_WBITS : -MAX_WBITS) != Z_OK)
    return "cannot be inflated: out of memory";
  size_t taken = 0, made = 0;
  int status = Z_OK;
  uint8_t beyond = 0; // room for one byte too many tells that there is more
  while (status == Z_OK) {
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

} // namespace ortc::host
