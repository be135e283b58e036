// The rows of inputs in the files of a data set.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "engine/data/shards.h"
#include "support/Convert.h"
#include "support/MappedFile.h"

namespace ortc::engine {

/// What an input takes of every row.
struct Column {
  std::string array;              ///< its name; "": none, the input has no elements
  DataType type = DataType::None; ///< of the input
  Shape shape;                    ///< of the input
  int64_t rowElements = 0;
  size_t toRow = 0; ///< bytes
};

/// The rows of a column that are in one file.
struct Piece {
  Array array;
  Conversion conversion;
  size_t fromRow = 0; ///< bytes

  /// Copies rows that follow each other.
  void copy(const Column &column, int64_t row, int64_t rows, uint8_t *to) const;
  /// Copies the elements of a row that an input of `shape` has, which is at most as large along every axis.
  void copyCut(const Column &column, int64_t row, const Shape &shape, uint8_t *to) const;
  /// Runs one of the above, which own nothing: they are left in the middle where the file is cut meanwhile.
  template <typename Copy> Status guard(const Copy &copy) const {
    if (array.file)
      return array.file->read(copy);
    copy();
    return Status();
  }

private:
  void copyAxis(const Column &column, const uint8_t *from, const Shape &shape, size_t axis,
                uint8_t *&to) const;
};

/// The pieces of an open file, in the order of the columns.
Status loadPieces(const DataSource &source, const std::vector<Column> &columns, std::vector<Piece> &pieces);

/// The files that are open, of which those that were read last stay so. Not for several threads at once.
class PieceCache {
public:
  /// Of a single file, open for good.
  explicit PieceCache(std::vector<Piece> pieces);
  PieceCache(std::shared_ptr<const Shards> shards, std::vector<Column> columns);
  /// The pieces of a shard, until the next call.
  Status get(size_t shard, const std::vector<Piece> *&pieces);

private:
  struct Open {
    std::vector<Piece> pieces;
    size_t bytes = 0; ///< of memory, or of a mapping whose pages stay
    uint64_t used = 0;
  };
  void closeOldest(size_t except);

  std::shared_ptr<const Shards> shards; ///< null: a single file
  std::vector<Column> columns;
  std::map<size_t, Open> open;
  uint64_t uses = 0;
  size_t bytes = 0;
};

} // namespace ortc::engine
