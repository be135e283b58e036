// Weights that stay, as integers of few bits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `--base int8|int4`: a weight beside adapters is stored as `round(w / scale)`, with a scale for each block of a row:
// scale = max |w| / 127 of a block of int8, / 7 of int4. Rows run along what a product sums over, of an embedding along
// its vectors. A row is filled up with zeros to whole blocks. How integers lie in bytes is nn.unpack's
// (dialects/nn/NnPackedOps.td).
#pragma once

#include "compiler/frontend/LoraAdapters.h"

#include <map>
#include <memory>

namespace ortc::frontend {

/// Which integers, and how many numbers share a scale.
struct PackedFormat {
  int64_t bits = 8;   ///< 8 or 4
  int64_t block = 64; ///< a power of two, at least kGroup

  static constexpr int64_t kGroup = 32; ///< numbers that lie together
};

/// A matrix, row after row.
struct PackedShape {
  int64_t rows = 0, columns = 0;
  PackedFormat format;

  int64_t getBlocks() const { return (columns + format.block - 1) / format.block; }
  int64_t getGroups() const { return getBlocks() * (format.block / PackedFormat::kGroup); }
  int64_t getGroupBytes() const { return PackedFormat::kGroup * format.bits / 8; }
  /// Of the integers, and of the scales.
  std::vector<int64_t> getDataDims() const { return {rows, getGroups(), getGroupBytes()}; }
  std::vector<int64_t> getScaleDims() const { return {rows, getBlocks()}; }
};

struct PackedWeight {
  PackedShape shape;
  bool isTransposed = false;    ///< the file has columns and rows the other way round
  std::string quantized, scale; ///< names of the two tensors
  std::vector<int8_t> data;
  std::vector<float> scales;
};

/// `values` [rows, columns], or transposed, become integers: rounded to even, symmetric about zero.
PackedWeight packWeight(const std::vector<float> &values, const PackedShape &shape, bool isTransposed);

/// The numbers that integers and scales stand for, in the order of the file. `data` and `scales` have the sizes that
/// `shape` says.
std::vector<float> unpackWeight(const PackedShape &shape, bool isTransposed, const int8_t *data,
                                const float *scales);

using PackedWeights = std::map<std::string, std::shared_ptr<const PackedWeight>>; ///< by initializer

/// Packs the weights beside these adapters. Refuses, naming `flag`, what is no matrix that products read or that
/// rows are gathered from, rows shorter than a block or than two groups, and numbers that are not finite.
Status packBase(const Model &model, const std::vector<LoraAdapter> &adapters, const PackedFormat &format,
                const std::string &flag, PackedWeights &weights);

} // namespace ortc::frontend
