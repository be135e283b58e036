// Checks of the files that a command is about to write.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "support/Status.h"

namespace ortc {

/// A file of a command, and what its user calls it.
struct NamedFile {
  std::string flag, path; ///< "--save" and its value, say
};

/// Where an output that is replaced whole goes: links are followed, so that they stay links. Refuses what is there and
/// no regular file (a device, a pipe, a folder). A file that is not there yet is fine.
Status resolveOutput(const std::string &path, std::string &place);

/// Fails where the folder of an output is not there or cannot be written to: before the work. Else as resolveOutput().
Status checkFolderOf(const std::string &path);

/// Refuses outputs that are one of the inputs, whatever the names are, or each other. Files that are there are told
/// apart by device and inode, others by folder and name. Empty paths are left out.
Status checkOutputs(const std::vector<NamedFile> &inputs, const std::vector<NamedFile> &outputs);

/// Refuses an output that would lie in a folder that is replaced whole, whatever the names are. Empty paths are fine.
Status checkOutside(const NamedFile &folder, const NamedFile &output);

/// The same for a file that is written at the end; refuses what is no regular file, too, and fails where none could be
/// made: its folder is not there, or cannot be written to.
Status checkNewFile(const NamedFile &folder, const NamedFile &output);

/// The files of the artifact at `path`, as inputs.
std::vector<NamedFile> listArtifactFiles(const std::string &path);

} // namespace ortc
