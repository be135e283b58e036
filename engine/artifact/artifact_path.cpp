// Where the file of an artifact is.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/artifact_path.h"

#include <sys/stat.h>

namespace ortc::engine {

Status findArtifactFile(const std::string &path, std::string &file) {
  struct stat about{};
  std::string advice = "; make one with ortc train MODEL.onnx -o " + path;
  if (stat(path.c_str(), &about) != 0)
    return Status::failure(path + ": there is no such artifact" + advice);
  file = path;
  if (S_ISREG(about.st_mode))
    return Status();
  if (!S_ISDIR(about.st_mode)) // to open a pipe would wait for who writes to it
    return Status::failure(path + ": is neither a file nor a folder" + advice);
  file += path.ends_with('/') ? "model.ortc" : "/model.ortc";
  if (stat(file.c_str(), &about) != 0)
    return Status::failure(path + ": holds no artifact (no model.ortc)" + advice);
  if (!S_ISREG(about.st_mode))
    return Status::failure(file + ": is not a regular file");
  return Status();
}

} // namespace ortc::engine
