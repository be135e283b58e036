// Reads and verifies model.ortc on the host, every section of it, independent of the loader of the runtime.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>
#include <string>

#include "compiler/artifact/Artifact.h"
#include "support/Expected.h"

namespace ortc::artifact {

/// What `verify` finds about one section.
struct SectionReport {
  uint32_t kind = 0;
  std::string kindName; ///< "tensors", ..., "unknown"
  std::string name;     ///< of code: its target; else empty
  uint64_t offset = 0, bytes = 0;
  std::string sha256; ///< as the section table has it
  bool ok = false;
};

/// A file taken apart.
struct ArtifactFile {
  Artifact artifact; ///< its images are views of the file
  uint64_t bytes = 0, ioBytes = 0;
  uint16_t major = 0, minor = 0;
  /// of header and section table: identifies the artifact, and is what signatures sign
  uint8_t hash[32] = {};
  std::string digest; ///< the same in hexadecimal digits
  std::string model;  ///< identifies the model
  std::vector<SectionReport> sections;
};

/// Checks header, section table, every section's hash and every table, and that the bytes between sections
/// are zero. Fails with the first thing that is wrong; `sections`, when given, then still has what was found. `file`
/// outlives the result and copies of its images.
Expected<ArtifactFile> readArtifact(std::span<const uint8_t> file,
                                    std::vector<SectionReport> *sections = nullptr);
Expected<ArtifactFile> readArtifact(Bytes &&file) = delete;

/// The same, but that it does not look into constants and persistent image.
Expected<ArtifactFile> readTables(std::span<const uint8_t> file);

/// The bytes of a file on disk, which must be a regular one.
Expected<Bytes> readBytes(const std::string &path);

/// readArtifact() of a file on disk.
Expected<ArtifactFile> readArtifactFile(const std::string &path,
                                        std::vector<SectionReport> *sections = nullptr);

/// The role of an entry by its name, which must be one.
uint32_t findEntryRole(std::string_view name);
/// "float32", ... (numpy's names, and "bfloat16"); "tensors", ...
const char *dtypeName(uint8_t dtype);
const char *sectionKindName(uint32_t kind);

} // namespace ortc::artifact
