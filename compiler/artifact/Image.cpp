// The initial bytes of a region, which need not be in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/Image.h"

#include <algorithm>
#include <cassert>
#include <memory>

namespace ortc::artifact {

Status writeZeros(ByteSink &sink, uint64_t bytes) {
  static constexpr uint8_t kZeros[4096] = {};
  for (; bytes > 0; bytes -= std::min<uint64_t>(bytes, sizeof kZeros))
    ORTC_TRY(sink.write(std::span(kZeros).first(std::min<uint64_t>(bytes, sizeof kZeros))));
  return Status();
}

Image::Image(Bytes bytes) : total(bytes.size()) {
  auto kept = std::make_shared<const Bytes>(std::move(bytes));
  if (total)
    pieces.emplace(0, Piece{total, kept->data(), {}, kept});
}

void Image::addView(uint64_t offset, std::span<const uint8_t> bytes, std::shared_ptr<const Bytes> owner) {
  assert(offset + bytes.size() <= total && "pieces lie within the image");
  if (!bytes.empty())
    pieces.insert_or_assign(offset, Piece{bytes.size(), bytes.data(), {}, std::move(owner)});
}

void Image::addMade(uint64_t offset, uint64_t bytes, Make make) {
  assert(offset + bytes <= total && "pieces lie within the image");
  if (bytes)
    pieces.insert_or_assign(offset, Piece{bytes, nullptr, std::move(make), nullptr});
}

std::span<const uint8_t> Image::contents(const Piece &piece, Bytes &buffer) {
  if (piece.view)
    return {piece.view, piece.bytes};
  buffer.assign(piece.bytes, 0);
  piece.make(buffer.data());
  return buffer;
}

uint64_t Image::findEnd() const {
  Bytes buffer;
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    std::span<const uint8_t> bytes = contents(piece->second, buffer);
    for (size_t end = bytes.size(); end > 0; --end)
      if (bytes[end - 1])
        return piece->first + end;
  }
  return 0;
}

Status Image::write(ByteSink &sink, uint64_t bytes) const {
  uint64_t position = 0;
  Bytes buffer;
  for (const auto &[offset, piece] : pieces) {
    if (offset >= bytes)
      break;
    assert(offset >= position && "pieces do not overlap");
    ORTC_TRY(writeZeros(sink, offset - position));
    std::span<const uint8_t> whole = contents(piece, buffer);
    std::span<const uint8_t> wanted = whole.first(std::min<uint64_t>(whole.size(), bytes - offset));
    ORTC_TRY(sink.write(wanted));
    position = offset + wanted.size();
  }
  return writeZeros(sink, bytes - position);
}

Bytes Image::toBytes() const {
  Bytes all(total);
  for (const auto &[offset, piece] : pieces)
    if (piece.view)
      std::copy(piece.view, piece.view + piece.bytes, all.begin() + static_cast<std::ptrdiff_t>(offset));
    else
      piece.make(all.data() + offset);
  return all;
}

} // namespace ortc::artifact
