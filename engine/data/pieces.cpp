// The rows of inputs in the files of a data set.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/data/pieces.h"

#include <algorithm>
#include <cstring>

#include "support/MappedFile.h"

namespace ortc::engine {

/// When a step reads this many bytes of neighbouring rows from a file, their pages are let go.
static constexpr size_t kForgotten = 256 << 10;
/// At most so much comes back beside a page that is read: Linux maps 64 KiB, or a whole piece of its cache.
static constexpr size_t kMappedAround = 2 << 20;
/// Files that stay open, and the bytes of theirs that do. What a window of an order needs (batches.cpp) is less, but
/// for two files of any size, at whose border it lies.
static constexpr size_t kMostOpen = 256, kMostBytes = 256 << 20;

void Piece::copy(const Column &column, int64_t row, int64_t rows, uint8_t *to) const {
  // Reading on costs a page fault for every 64 KiB: little beside copying as much, but a lot beside a small row.
  bool forgets = array.file && (array.isStreamed || size_t(rows) * fromRow >= kForgotten);
  int64_t most = forgets ? std::max(int64_t(kForgotten / fromRow), int64_t(1)) : rows;
  for (int64_t piece; rows; row += piece, to += size_t(piece) * column.toRow, rows -= piece) {
    piece = std::min(rows, most);
    const uint8_t *from = array.data + size_t(row) * fromRow;
    if (conversion.convert)
      conversion.convert(from, to, size_t(piece * column.rowElements));
    else
      std::memcpy(to, from, size_t(piece) * column.toRow);
    // The kernel maps pages around the one that is read, so those of the piece before came back.
    size_t before = std::min(size_t(from - array.data), kMappedAround), bytes = size_t(piece) * fromRow;
    size_t behind =
        array.isStreamed ? std::min(array.bytes - size_t(from - array.data) - bytes, kMappedAround) : 0;
    if (forgets)
      forgetPages(from - before, before + bytes + behind);
  }
}

void Piece::copyCut(const Column &column, int64_t row, const Shape &shape, uint8_t *to) const {
  copyAxis(column, array.data + size_t(row) * fromRow, shape, 1, to);
}

/// From `axis` on; `to` moves behind what is copied.
void Piece::copyAxis(const Column &column, const uint8_t *from, const Shape &shape, size_t axis,
                     uint8_t *&to) const {
  size_t rest = 1, cut = 1;
  for (size_t i = axis; i < shape.size(); ++i)
    rest *= size_t(column.shape[i]), cut *= size_t(shape[i]);
  size_t element = getElementBytes(column.type);
  if (cut == rest || axis + 1 == shape.size()) { // they follow each other
    if (conversion.convert)
      conversion.convert(from, to, cut);
    else
      std::memcpy(to, from, cut * element);
    to += cut * element;
    return;
  }
  size_t step = rest / size_t(column.shape[axis]) * getElementBytes(array.type);
  for (int64_t i = 0; i < shape[axis]; ++i)
    copyAxis(column, from + size_t(i) * step, shape, axis + 1, to);
}

Status loadPieces(const DataSource &source, const std::vector<Column> &columns, std::vector<Piece> &pieces) {
  pieces.assign(columns.size(), {});
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column &column = columns[i];
    if (column.array.empty())
      continue;
    Piece &piece = pieces[i];
    ORTC_TRY(source.load(column.array, piece.array));
    if (piece.array.shape.empty()) // a lone number is one slice
      piece.array.shape = {1};
    ORTC_TRY(planConversion(piece.array, column.type, source.getPath() + ": array '" + column.array + "'",
                            piece.conversion));
    piece.fromRow = size_t(column.rowElements) * getElementBytes(piece.array.type);
  }
  return Status();
}

PieceCache::PieceCache(std::vector<Piece> pieces) { open[0].pieces = std::move(pieces); }

PieceCache::PieceCache(std::shared_ptr<const Shards> shards, std::vector<Column> columns)
    : shards(std::move(shards)), columns(std::move(columns)) {}

Status PieceCache::get(size_t shard, const std::vector<Piece> *&pieces) {
  auto found = open.find(shard);
  if (found == open.end()) {
    std::unique_ptr<DataSource> source;
    ORTC_TRY(shards->open(shard, source));
    Open opened;
    ORTC_TRY(loadPieces(*source, columns, opened.pieces));
    for (const Piece &piece : opened.pieces)
      opened.bytes += piece.array.isStreamed ? 0 : piece.array.bytes;
    bytes += opened.bytes;
    found = open.emplace(shard, std::move(opened)).first;
    closeOldest(shard);
  }
  found->second.used = ++uses;
  pieces = &found->second.pieces;
  return Status();
}

void PieceCache::closeOldest(size_t except) {
  while (open.size() > 2 && (open.size() > kMostOpen || bytes > kMostBytes)) {
    auto oldest = open.end();
    for (auto each = open.begin(); each != open.end(); ++each)
      if (each->first != except && (oldest == open.end() || each->second.used < oldest->second.used))
        oldest = each;
    bytes -= oldest->second.bytes;
    open.erase(oldest);
  }
}

} // namespace ortc::engine
