// The operations between the contractions of attention, on a tile of the scores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/passes/attention/AttentionMatch.h"

namespace ortc::attention {

/// A run of rows or keys.
struct Range {
  int64_t first = 0, size = 0;
};

/// A value in the loop, with all rows and keys: [batch | 1, groups | 1, rows | 1, keys | 1]. With `factors`, [those of
/// the factors of batch and groups that are in `where`, rows, keys].
struct TileInput {
  mlir::Value value;
  nn::Shape factors = {}, where = {};
};

/// Builds the values of a match on tiles of shape [batch, groups, rows, keys]: the same operations on fewer elements.
/// Positions stay those of the whole. Random numbers are other ones than the whole would draw: those of the index of
/// the iteration and of the place in the tile.
class TileValues {
public:
  explicit TileValues(Match &match) : match(match) {}

  /// What the loop has for an input of the match.
  void setInput(mlir::Value value, const TileInput &inside) { inputs[value] = inside; }
  /// The index of the iteration, an i64 of rank 0, of `count`.
  void setIndex(mlir::Value value, int64_t count) { index = value, iterations = count; }

  /// Begins another tile. `leads`: batch and groups of it.
  void begin(std::pair<int64_t, int64_t> leads, Range rows, Range keys);
  /// Queries [batch, groups, rows, features] and keys [batch, keys, features] of the tile.
  void setSides(mlir::Value queries, mlir::Value keys) { query = queries, key = keys; }

  /// `value` of the match on the tile.
  mlir::Value get(nn::TensorBuilder &builder, mlir::Value value);

private:
  mlir::Value make(nn::TensorBuilder &b, mlir::Value value);
  mlir::Value makeInput(nn::TensorBuilder &b, const TileInput &input);
  mlir::Value makeRandom(nn::TensorBuilder &b, mlir::Value value);
  mlir::RankedTensorType typeLike(mlir::Value value) const;

  Match &match;
  llvm::DenseMap<mlir::Value, TileInput> inputs;
  llvm::DenseMap<mlir::Value, mlir::Value> known;
  mlir::Value index, query, key;
  int64_t iterations = 1, tiles = 0;
  nn::Shape shape; ///< of the tile
  Range rows, keys;
};

} // namespace ortc::attention
