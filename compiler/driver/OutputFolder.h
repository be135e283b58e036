//===- OutputFolder.h - a folder written whole or not at all --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ortc::driver {

/// A folder next to its final place, moved there by `commit`; what stands there before is replaced only when it is an
/// artifact's folder or empty. Destroyed without commit, it leaves nothing behind.
class OutputFolder {
public:
  explicit OutputFolder(std::string target);
  ~OutputFolder();
  OutputFolder(const OutputFolder &) = delete;
  OutputFolder &operator=(const OutputFolder &) = delete;

  /// Refuses a target that is a file, or a folder with something else in it. `error` says why.
  bool open(std::string &error);
  bool write(const std::string &name, std::string_view contents, std::string &error);
  bool commit(std::string &error);

private:
  std::string target, temporary;
  bool isOpen = false;
};

} // namespace ortc::driver
