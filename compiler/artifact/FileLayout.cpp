// Where sections lie in the file, and its hashes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/FileLayout.h"

#include <cstddef>

#include "runtime/src/sha256.h"

namespace ortc::artifact {

Bytes layOut(ortc_file_header header, std::vector<Section> &sections) {
  uint64_t position = sizeof(ortc_file_header) + sections.size() * sizeof(ortc_file_section);
  for (Section &section : sections) {
    position = alignTo(position, alignmentOf(section.row));
    section.row.offset = position;
    section.row.bytes = section.bytes().size();
    position += section.row.bytes;
    if (section.row.kind != ORTC_SECTION_SIGNATURE)
      sha256(section.bytes().data(), section.bytes().size(), section.row.sha256);
  }
  header.file_bytes = position;
  header.section_count = static_cast<uint32_t>(sections.size());

  Bytes file;
  file.reserve(position);
  append(file, header);
  file.resize(
      offsetof(ortc_file_header, sha256)); // what the hash covers: the header up to itself, and the table
  for (const Section &section : sections)
    append(file, section.row);
  sha256(file.data(), file.size(), header.sha256);
  file.insert(file.begin() + offsetof(ortc_file_header, sha256), std::begin(header.sha256),
              std::end(header.sha256));
  for (const Section &section : sections) {
    file.resize(section.row.offset);
    std::span<const uint8_t> bytes = section.bytes();
    file.insert(file.end(), bytes.begin(), bytes.end());
  }
  return file;
}

} // namespace ortc::artifact
