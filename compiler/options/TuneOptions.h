// What a compilation is told about choices by measurement: `--tune` and `--tune-cache`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace ortc {

/// The file when `--tune` is given without `--tune-cache`.
inline constexpr const char *kTuneCache = "ortc-tune.json";

struct TuneOptions {
  bool measures = false; ///< what the file does not have, into the file
  std::string file;      ///< empty: none, or the default when something is measured

  std::string path() const { return file.empty() && measures ? kTuneCache : file; }
};

} // namespace ortc
