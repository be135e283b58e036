// An artifact to be damaged, whose hashes can be made right again.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "runtime/src/sha256.h"
#include "test/runtime/TestArtifact.h"

namespace ortc::test {

/// A file to be damaged, whose hashes can be made right again.
class Editor {
public:
  Bytes file = makeFile();

  ortc_file_header &header() { return *reinterpret_cast<ortc_file_header *>(file.data()); }
  ortc_file_section &row(uint32_t i) {
    return *reinterpret_cast<ortc_file_section *>(file.data() + sizeof(ortc_file_header) +
                                                  i * sizeof(ortc_file_section));
  }
  ortc_file_section &section(uint32_t kind) {
    for (uint32_t i = 0; i < header().section_count; ++i)
      if (row(i).kind == kind)
        return row(i);
    ADD_FAILURE() << "no section of kind " << kind;
    return row(0);
  }
  template <typename Row> Row &at(uint32_t kind, uint32_t i) {
    return *reinterpret_cast<Row *>(file.data() + section(kind).offset + i * sizeof(Row));
  }
  ortc_file_tensor &tensor(uint32_t i) { return at<ortc_file_tensor>(ORTC_SECTION_TENSORS, i); }
  ortc_file_entry &entry(uint32_t i) { return at<ortc_file_entry>(ORTC_SECTION_ENTRIES, i); }
  ortc_file_value &value(uint32_t i) { return at<ortc_file_value>(ORTC_SECTION_VALUES, i); }
  ortc_blob &blob() { return at<ortc_blob>(ORTC_SECTION_CODE, 0); }

  /// Makes all hashes right.
  void seal() {
    if (file.size() < headBytes())
      return;
    for (uint32_t i = 0; i < header().section_count; ++i)
      if (row(i).offset <= file.size() && row(i).bytes <= file.size() - row(i).offset)
        digest(file.data() + row(i).offset, row(i).bytes, row(i).sha256);
    sealHeader();
  }
  void sealHeader() {
    if (file.size() < headBytes())
      return;
    Bytes covered(file.begin(), file.begin() + offsetof(ortc_file_header, sha256));
    covered.insert(covered.end(), file.begin() + sizeof(ortc_file_header), file.begin() + headBytes());
    digest(covered.data(), covered.size(), header().sha256);
  }

private:
  size_t headBytes() { return sizeof(ortc_file_header) + header().section_count * sizeof(ortc_file_section); }
  static void digest(const void *data, size_t bytes, uint8_t out[32]) { sha256(data, bytes, out); }
};

} // namespace ortc::test
