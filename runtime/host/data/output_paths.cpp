// Checks of the files that a command is about to write.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/host/data/output_paths.h"

#include <filesystem>
#include <map>
#include <sys/stat.h>

namespace fs = std::filesystem;

namespace ortc::host {

Status resolveOutput(const std::string &path, std::string &place) {
  place = path;
  struct stat about{};
  if (stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode))
    return Status::refusal(path + ": is " + (S_ISDIR(about.st_mode) ? "a folder" : "no regular file") +
                           ", which is not replaced; name another file");
  constexpr int kMostLinks = 40; // the kernel's own limit
  for (int links = 0; lstat(place.c_str(), &about) == 0 && S_ISLNK(about.st_mode); ++links) {
    std::error_code code;
    fs::path target = fs::read_symlink(place, code);
    if (code || links == kMostLinks)
      return Status::refusal(path + ": is a link that leads nowhere; name another file");
    place = (fs::path(place).parent_path() / target).string(); // the target alone when it is absolute
  }
  return Status();
}

/// What two names of one file have in common; "" for what is neither a regular file nor one that could be made.
static std::string identify(const std::string &path) {
  struct stat about{};
  auto number = [&about] { return std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino); };
  if (stat(path.c_str(), &about) == 0)
    return S_ISREG(about.st_mode) ? number() : "";
  std::string place;
  if (!resolveOutput(path, place).isOk())
    return "";
  fs::path folder = fs::path(place).parent_path();
  if (stat(folder.empty() ? "." : folder.c_str(), &about) != 0)
    return place;
  return number() + "/" + fs::path(place).filename().string();
}

Status checkOutputs(const std::vector<NamedFile> &inputs, const std::vector<NamedFile> &outputs) {
  std::map<std::string, const NamedFile *> known;
  for (const NamedFile &input : inputs)
    if (std::string identity = input.path.empty() ? "" : identify(input.path); !identity.empty())
      known.emplace(identity, &input);
  for (const NamedFile &output : outputs) {
    std::string identity = output.path.empty() ? "" : identify(output.path);
    if (identity.empty())
      continue;
    auto [other, isNew] = known.emplace(identity, &output);
    if (!isNew)
      return Status::refusal(output.flag + " " + output.path + " would overwrite " + other->second->flag +
                             " " + other->second->path + "; name another file");
  }
  return Status();
}

std::vector<NamedFile> listArtifactFiles(const std::string &path) {
  std::error_code code;
  if (!fs::is_directory(path, code))
    return {{"the artifact", path}};
  fs::path folder = path;
  return {{"the artifact's", (folder / "model.ortc").string()},
          {"the artifact's", (folder / "manifest.json").string()}};
}

} // namespace ortc::host
