// An artifact's folder, written whole or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/artifact/ByteSink.h"
#include "support/AtomicFile.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ortc::artifact {

/// A file of an artifact.
struct OutputFile {
  std::string name;
  std::string contents;
};

/// The folder of an artifact. A folder that is there stays the same folder, a mounted one or somebody's
/// working directory, say; its files are replaced, and only an artifact's own files may be in it.
/// `model.ortc` is the artifact, manifest and all: its rename decides, and `manifest.json`, a copy for
/// people, is never that of another one. Beside them may be the files of a model that is linked into programs:
/// model.a, model.h, model_data.c; or model.wasm. Destroyed without commit, it leaves nothing behind, the folders that
/// it made neither.
class OutputFolder {
public:
  explicit OutputFolder(std::string target);
  ~OutputFolder();
  OutputFolder(const OutputFolder &) = delete;
  OutputFolder &operator=(const OutputFolder &) = delete;

  /// The paths of all files that may come to be, or go.
  std::vector<std::string> listFiles() const;
  /// Refuses a target that is a file or a folder with something else in it; fails where it cannot be created or written
  /// to. Touches nothing.
  Status check() const;
  /// Checks again, makes the folder and writes the files beside their places: `others` are those for linking.
  Status write(const std::function<Status(ByteSink &)> &writeModel, std::string_view manifest,
               const std::vector<OutputFile> &others = {});
  /// Puts them in their places. There is an artifact at every moment, where there was one.
  Status commit();

private:
  struct Made {
    std::string path;
    HalfMade guard;
  };
  Status makeFolders();
  Status swap();

  const std::string target;                ///< as given, for messages
  std::string place;                       ///< the same without slashes at its end
  std::vector<std::unique_ptr<Made>> made; ///< folders, the outermost first
  AtomicFile model, manifest;
  std::vector<std::unique_ptr<AtomicFile>> others;
};

} // namespace ortc::artifact
