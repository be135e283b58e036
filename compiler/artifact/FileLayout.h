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
  const Image *image = nullptr;      ///< or the first `imageBytes` of it
  uint64_t imageBytes = 0;

  /// The bytes of a section that is no image.
  std::span<const uint8_t> bytes() const { return contents.empty() ? owned : contents; }
  uint64_t size() const { return image ? imageBytes : bytes().size(); }
};

inline uint64_t alignTo(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// A file in memory.
class MemorySink : public ByteSink {
public:
  Status write(std::span<const uint8_t> bytes) override;
  Status rewrite(uint64_t offset, std::span<const uint8_t> bytes) override;

  Bytes file;
};

/// What a section's place is a multiple of: code that is executed has pages of its own.
inline uint64_t alignmentOf(const ortc_file_section &row) {
  bool isExecuted = row.kind == ORTC_SECTION_CODE && !(row.features & ORTC_FEATURE_LINKED);
  return isExecuted ? ORTC_CODE_ALIGNMENT : ORTC_ALIGNMENT;
}

template <typename Row> void append(Bytes &bytes, const Row &row) {
  const auto *data = reinterpret_cast<const uint8_t *>(&row);
  bytes.insert(bytes.end(), data, data + sizeof row);
}

/// Fills in the places and sizes of the sections, in their order, and what the header says of them.
void placeSections(ortc_file_header &header, std::vector<Section> &sections);

/// Header and section table, with the hash that covers both: the file up to its first section. Takes the hashes of
/// sections as they are in their rows.
Bytes makeHead(ortc_file_header header, const std::vector<Section> &sections);

/// Writes header, section table and sections, from the first byte to the last; then the head again, with the hashes
/// that were found on the way. A signature has no hash: it signs the one that covers the table.
Status writeSections(ortc_file_header header, std::vector<Section> &sections, ByteSink &sink);

/// The same as bytes.
Bytes layOut(const ortc_file_header &header, std::vector<Section> &sections);

} // namespace ortc::artifact
