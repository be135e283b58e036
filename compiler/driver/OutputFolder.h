//===- OutputFolder.h - a folder written whole or not at all --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>

namespace ortc::driver {

/// A folder next to its final place, moved there by `commit`. What stands there before is replaced only when it holds
/// nothing but an artifact's own files. Destroyed without commit, it leaves nothing behind.
class OutputFolder {
public:
  explicit OutputFolder(std::string target);
  ~OutputFolder();
  OutputFolder(const OutputFolder &) = delete;
  OutputFolder &operator=(const OutputFolder &) = delete;

  /// Refuses a target that is a file, a folder with something else in it, or one that nobody can create. Touches
  /// nothing; `error` says why.
  bool check(std::string &error) const;
  /// Checks again and creates the folder that is written to.
  bool open(std::string &error);
  bool write(const std::string &name, std::string_view contents, std::string &error);
  /// Puts the folder in its place. Where the file system can exchange two names, as those of Linux can, there is an
  /// artifact there at every moment.
  bool commit(std::string &error);

private:
  const std::string target; ///< as given, for messages
  std::string place;        ///< the same without links
  std::string temporary;    ///< empty: not open
};

/// Whether a file could be written at `path`: its folder is there and can be written to.
bool canCreateFile(const std::string &path, std::string &error);

} // namespace ortc::driver
