// Files that are an array each, as one source of data.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/data/data_source.h"

namespace ortc::engine {

/// A file that is an array.
struct NpyFile {
  std::string name, path;
};
/// The name of an array that is given none: that of its file without ".npy".
std::string nameNpyFile(const std::string &path);
/// Each file is an array; there is at least one.
Status openNpy(std::vector<NpyFile> files, std::unique_ptr<DataSource> &source);

} // namespace ortc::engine
