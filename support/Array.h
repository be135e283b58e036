// An array of a file, or one in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "support/ElementTypes.h"

namespace ortc {

class MappedFile;

/// A dense, row-major, little-endian array. `owner` keeps the bytes alive; they may be unaligned.
struct Array {
  std::string name;
  DataType type = DataType::None;
  Shape shape;
  const uint8_t *data = nullptr;
  size_t bytes = 0;
  std::shared_ptr<const void> owner;
  std::shared_ptr<const MappedFile> file = nullptr; ///< whose bytes these are; null: they are a copy
  std::function<size_t(int64_t row)> findLine =
      nullptr;             ///< where a row is in a file of text, from 1; 0: unknown
  bool isText = false;     ///< numbers that were text: a float may stand for an integer, "1.0" for 1
  bool isStreamed = false; ///< of a file that may be larger than memory: no page that was read stays
};

} // namespace ortc
