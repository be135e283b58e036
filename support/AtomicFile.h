// A file that appears whole or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/HalfMade.h"
#include "support/Status.h"

namespace ortc {

/// Writes a file of its own beside `path`; commit() flushes it to the disk and renames it. Without commit() it is
/// removed. Where `path` is a link, that is done beside its target. Refuses to replace what is no regular file.
///
/// Its name is PATH.ortc-X.tmp with a letter X, and it is locked (flock) while it is written: what bears such
/// a name and is not locked was left by a process that was killed, and the next file for the same path
/// removes it. Process numbers would not do: they begin anew in every container.
class AtomicFile {
public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  Status open();
  Status write(const void *data, size_t bytes);
  /// Replaces bytes that were written.
  Status rewrite(uint64_t offset, const void *data, size_t bytes);
  Status write(const std::string &text) { return write(text.data(), text.size()); }
  /// Flushes what was written to the disk, so that commit() is quick.
  Status flush();
  Status commit();
  /// Removes it, as the end of its life does.
  void drop();
  /// Where the file goes, without links; known once it is open.
  const std::string &getPlace() const { return place; }

  /// Whether `name` is that of a file that is being written for `target`, or was when its process was killed.
  static bool isTemporary(const std::string &name, const std::string &target);

private:
  Status fail(const char *what);
  template <typename Put> Status putAll(const void *data, size_t bytes, Put put);
  bool create();

  std::string path, place, temporary; ///< place: path without links
  int descriptor = -1;
  bool isFlushed = false;
  HalfMade guard;
};

/// The whole of a file in one go.
Status writeFile(const std::string &path, const std::string &contents);

/// Files that appear together: once all are written.
class AtomicFiles {
public:
  /// Writes one beside its place; nothing where the path is empty.
  Status add(const std::string &path, const std::string &contents);
  Status commit();

private:
  std::vector<std::unique_ptr<AtomicFile>> files;
};

} // namespace ortc
