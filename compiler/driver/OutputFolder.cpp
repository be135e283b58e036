//===- OutputFolder.cpp - a folder written whole or not at all ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/OutputFolder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace fs = std::filesystem;

namespace ortc::driver {

using host::Status;

/// The files of an artifact: a folder with nothing else may be replaced.
static constexpr std::string_view kArtifactFiles[] = {"manifest.json", "model.ortc"};

OutputFolder::OutputFolder(std::string given) : target(std::move(given)), place(target) {
  while (place.size() > 1 && place.back() == '/')
    place.pop_back();
  std::error_code code;
  if (fs::path resolved = fs::canonical(place, code); !code)
    place = resolved.string();
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!temporary.empty())
    fs::remove_all(temporary, ignored);
}

Status OutputFolder::check() const {
  std::error_code code;
  fs::file_status status = fs::status(place, code);
  if (fs::exists(status) && !fs::is_directory(status))
    return Status::refusal("output '" + target + "' is a file; name a folder");
  std::vector<std::string> others;
  for (const fs::directory_entry &item : fs::directory_iterator(place, code)) {
    std::string name = item.path().filename().string();
    if (std::find(std::begin(kArtifactFiles), std::end(kArtifactFiles), name) == std::end(kArtifactFiles))
      others.push_back(name);
  }
  if (!others.empty()) {
    std::sort(others.begin(), others.end());
    std::string list;
    for (size_t i = 0; i < others.size() && i < 4; ++i)
      list += (i ? ", '" : "'") + others[i] + "'";
    if (others.size() > 4)
      list += " and " + std::to_string(others.size() - 4) + " more";
    return Status::refusal(
        "output folder '" + target + "' holds " + list +
        ": it is replaced whole, so only files of an artifact may be in it; move the others or name "
        "another folder");
  }
  // The closest folder that is there must take a new entry.
  fs::path parent = fs::absolute(place, code).parent_path();
  while (!fs::exists(fs::symlink_status(parent, code)) && parent.has_relative_path())
    parent = parent.parent_path();
  if (!fs::is_directory(parent, code))
    return Status::refusal("cannot create output folder '" + target + "': '" + parent.string() +
                           "' is no folder");
  if (access(parent.c_str(), W_OK | X_OK) != 0)
    return Status::failure("cannot create output folder '" + target + "' in '" + parent.string() +
                           "': " + std::strerror(errno));
  return Status();
}

Status OutputFolder::open() {
  ORTC_TRY(check());
  std::error_code code;
  if (fs::path parent = fs::path(place).parent_path(); !parent.empty())
    fs::create_directories(parent, code);
  // Not mkdtemp: the folder gets the permissions that the umask leaves, as any other.
  for (int number = 0; number < 1000; ++number) {
    std::string name = place + "." + std::to_string(getpid()) + "." + std::to_string(number);
    if (mkdir(name.c_str(), 0777) == 0) {
      temporary = name;
      return Status();
    }
    if (errno != EEXIST)
      break;
  }
  return Status::failure("cannot create a folder beside '" + target + "': " + std::strerror(errno));
}

Status OutputFolder::write(const std::string &name, std::string_view contents) {
  std::string path = temporary + "/" + name;
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool ok = file >= 0;
  while (ok && !contents.empty()) {
    ssize_t written = ::write(file, contents.data(), contents.size());
    ok = written > 0 || (written < 0 && errno == EINTR);
    if (written > 0)
      contents.remove_prefix(static_cast<size_t>(written));
  }
  ok = ok && ::fsync(file) == 0;
  Status status;
  if (!ok)
    status = Status::failure("cannot write '" + target + "/" + name + "': " + std::strerror(errno));
  if (file >= 0)
    ::close(file);
  return status;
}

Status OutputFolder::commit() {
  // A rename replaces a folder that is empty or not there; an artifact changes places with the new one.
  if (std::rename(temporary.c_str(), place.c_str()) == 0) {
    temporary.clear();
    return Status();
  }
  if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0)
    return Status(); // the destructor removes what was there
  std::string old = temporary + ".old";
  if (std::rename(place.c_str(), old.c_str()) == 0) {
    std::error_code ignored;
    if (std::rename(temporary.c_str(), place.c_str()) == 0) {
      temporary.clear();
      fs::remove_all(old, ignored);
      return Status();
    }
    fs::rename(old, place, ignored);
  }
  return Status::failure("cannot put the artifact at '" + target + "': " + std::strerror(errno));
}

} // namespace ortc::driver
