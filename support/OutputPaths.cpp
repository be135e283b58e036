// Checks of the files that a command is about to write.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/OutputPaths.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace ortc {

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

Status checkFolderOf(const std::string &path) {
  std::string place;
  ORTC_TRY(resolveOutput(path, place));
  const fs::path folder = fs::path(place).parent_path();
  const std::string where = folder.empty() ? "." : folder.string();
  return access(where.c_str(), W_OK) == 0
             ? Status()
             : Status::failure(path + ": the folder " + where + " is not there or cannot be written");
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

/// The path without links, "." and "..", as far as it is there.
static fs::path simplify(const std::string &path) {
  std::error_code code;
  fs::path whole = fs::absolute(path, code), simple = fs::weakly_canonical(whole, code);
  if (code)
    simple = whole.lexically_normal();
  return simple.has_filename() ? simple : simple.parent_path(); // without a slash at the end
}

Status checkOutside(const NamedFile &folder, const NamedFile &output) {
  if (folder.path.empty() || output.path.empty())
    return Status();
  std::string place;
  (void)resolveOutput(output.path, place); // what else is wrong with it is for others to say
  fs::path outer = simplify(folder.path), inner = simplify(place);
  if (std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first != outer.end())
    return Status();
  return Status::refusal(output.flag + " " + output.path + " would lie in " + folder.flag + " " +
                         folder.path + ", which is replaced whole; name a place outside");
}

Status checkNewFile(const NamedFile &folder, const NamedFile &output) {
  if (output.path.empty())
    return Status();
  std::string place;
  ORTC_TRY(resolveOutput(output.path, place));
  ORTC_TRY(checkOutside(folder, output));
  fs::path parent = fs::path(place).parent_path();
  if (access(parent.empty() ? "." : parent.c_str(), W_OK | X_OK) == 0)
    return Status();
  return Status::failure("cannot write '" + output.path + "': " + std::strerror(errno));
}

std::vector<NamedFile> listArtifactFiles(const std::string &path) {
  std::error_code code;
  if (!fs::is_directory(path, code))
    return {{"the artifact", path}};
  fs::path folder = path;
  return {{"the artifact's", (folder / "model.ortc").string()},
          {"the artifact's", (folder / "manifest.json").string()}};
}

} // namespace ortc
