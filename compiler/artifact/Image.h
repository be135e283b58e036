// The initial bytes of a region, which need not be in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "compiler/artifact/ByteSink.h"

namespace ortc::artifact {

using Bytes = std::vector<uint8_t>;

/// Pieces at their offsets, with zeros between and after them. A piece is a view of memory that others keep, or is made
/// each time that it is written: so weights are copied once, from where the model has them to the file.
class Image {
public:
  /// Writes all bytes of a piece.
  using Make = std::function<void(uint8_t *to)>;

  Image() = default;
  /// One piece, which the image keeps.
  Image(Bytes bytes);

  /// Zeros at the end, or none. Pieces lie before them.
  void setSize(uint64_t bytes) { total = bytes; }
  uint64_t size() const { return total; }
  bool empty() const { return total == 0; }

  // Pieces lie within the image. One at the offset of another replaces it; otherwise they do not overlap.

  /// `bytes` outlive the image and its copies; or they are part of `owner`, which these keep.
  void addView(uint64_t offset, std::span<const uint8_t> bytes, std::shared_ptr<const Bytes> owner = nullptr);
  void addMade(uint64_t offset, uint64_t bytes, Make make);

  /// Where the zeros at the end begin.
  uint64_t findEnd() const;
  /// Writes the first `bytes`.
  Status write(ByteSink &sink, uint64_t bytes) const;
  Bytes toBytes() const;

private:
  struct Piece {
    uint64_t bytes;
    const uint8_t *view; ///< null: `make` writes them
    Make make;
    std::shared_ptr<const Bytes> owner; ///< of a view, or null: others keep it
  };
  /// Those of a piece; `buffer` holds them where they are made.
  static std::span<const uint8_t> contents(const Piece &piece, Bytes &buffer);

  uint64_t total = 0;
  std::map<uint64_t, Piece> pieces; ///< by offset
};

} // namespace ortc::artifact
