// Where sections lie in the file, and its hashes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>
#include <vector>

#include "compiler/artifact/Artifact.h"

namespace ortc::artifact {

/// A section on its way into a file.
struct Section {
  ortc_file_section row{};
  Bytes owned;
  std::span<const uint8_t> contents; ///< empty: `owned`
  std::span<const uint8_t> bytes() const { return contents.empty() ? owned : contents; }
};

inline uint64_t alignTo(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// What a section's place is a multiple of: code that is executed has pages of its own.
inline uint64_t alignmentOf(const ortc_file_section &row) {
  bool isExecuted = row.kind == ORTC_SECTION_CODE && !(row.features & ORTC_FEATURE_LINKED);
  return isExecuted ? ORTC_CODE_ALIGNMENT : ORTC_ALIGNMENT;
}

template <typename Row> void append(Bytes &bytes, const Row &row) {
  const auto *data = reinterpret_cast<const uint8_t *>(&row);
  bytes.insert(bytes.end(), data, data + sizeof row);
}

/// Puts header, section table and sections, in their order, in their places and fills in sizes and hashes, from the
/// inside out. A signature has no hash: it signs the one that covers the table.
Bytes layOut(ortc_file_header header, std::vector<Section> &sections);

} // namespace ortc::artifact
