// Where sections lie in the file, and its hashes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/FileLayout.h"

#include <algorithm>
#include <cstddef>

#include "runtime/src/sha256.h"

namespace ortc::artifact {

Status MemorySink::write(std::span<const uint8_t> bytes) {
  file.insert(file.end(), bytes.begin(), bytes.end());
  return Status();
}

Status MemorySink::rewrite(uint64_t offset, std::span<const uint8_t> bytes) {
  std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(offset));
  return Status();
}

namespace {

/// Hashes what goes through it.
class HashingSink : public ByteSink {
public:
  explicit HashingSink(ByteSink &sink) : sink(sink) {}
  Status write(std::span<const uint8_t> bytes) override {
    hash.add(bytes.data(), bytes.size());
    return sink.write(bytes);
  }
  Status rewrite(uint64_t, std::span<const uint8_t>) override {
    return Status::failure("a section was written out of order");
  }

  Sha256 hash;

private:
  ByteSink &sink;
};

} // namespace

void placeSections(ortc_file_header &header, std::vector<Section> &sections) {
  uint64_t position = sizeof(ortc_file_header) + sections.size() * sizeof(ortc_file_section);
  for (Section &section : sections) {
    position = alignTo(position, alignmentOf(section.row));
    section.row.offset = position;
    section.row.bytes = section.size();
    position += section.row.bytes;
  }
  header.file_bytes = position;
  header.section_count = static_cast<uint32_t>(sections.size());
}

Bytes makeHead(ortc_file_header header, const std::vector<Section> &sections) {
  Bytes head;
  append(head, header);
  head.resize(
      offsetof(ortc_file_header, sha256)); // what the hash covers: the header up to itself, and the table
  for (const Section &section : sections)
    append(head, section.row);
  sha256(head.data(), head.size(), header.sha256);
  head.insert(head.begin() + offsetof(ortc_file_header, sha256), std::begin(header.sha256),
              std::end(header.sha256));
  return head;
}

Status writeSections(ortc_file_header header, std::vector<Section> &sections, ByteSink &sink) {
  placeSections(header, sections);
  uint64_t position = sizeof header + sections.size() * sizeof(ortc_file_section);
  ORTC_TRY(writeZeros(sink, position));
  for (Section &section : sections) {
    ORTC_TRY(writeZeros(sink, section.row.offset - position));
    HashingSink hashing(sink);
    ORTC_TRY(section.image ? section.image->write(hashing, section.imageBytes)
                           : hashing.write(section.bytes()));
    if (section.row.kind != ORTC_SECTION_SIGNATURE)
      hashing.hash.finish(section.row.sha256);
    position = section.row.offset + section.row.bytes;
  }
  return sink.rewrite(0, makeHead(header, sections));
}

Bytes layOut(const ortc_file_header &header, std::vector<Section> &sections) {
  MemorySink sink;
  (void)writeSections(header, sections, sink); // memory has no errors
  return std::move(sink.file);
}

} // namespace ortc::artifact
