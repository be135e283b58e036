//===- OutputFolder.h - a folder written whole or not at all --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "runtime/host/status.h"

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

  /// Refuses a target that is a file or a folder with something else in it; fails where it cannot be created. Touches
  /// nothing.
  host::Status check() const;
  /// Checks again and creates the folder that is written to.
  host::Status open();
  host::Status write(const std::string &name, std::string_view contents);
  /// Puts the folder in its place. Where the file system can exchange two names, as those of Linux can, there is an
  /// artifact there at every moment.
  host::Status commit();

private:
  const std::string target; ///< as given, for messages
  std::string place;        ///< the same without links
  std::string temporary;    ///< empty: not open
};

} // namespace ortc::driver
