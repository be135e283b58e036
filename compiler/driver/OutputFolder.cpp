//===- OutputFolder.cpp - a folder written whole or not at all ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/OutputFolder.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace fs = std::filesystem;

namespace ortc::driver {

/// The file that makes a folder an artifact's.
static constexpr const char *kArtifactFile = "model.ortc";

OutputFolder::OutputFolder(std::string target) : target(std::move(target)) {
  while (this->target.size() > 1 && this->target.back() == '/')
    this->target.pop_back();
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (isOpen)
    fs::remove_all(temporary, ignored);
}

bool OutputFolder::open(std::string &error) {
  std::error_code code;
  fs::file_status status = fs::status(target, code);
  if (fs::exists(status)) {
    if (!fs::is_directory(status)) {
      error = "output '" + target + "' is a file; name a folder";
      return false;
    }
    if (!fs::is_empty(target, code) && !fs::exists(fs::path(target) / kArtifactFile)) {
      error = "output folder '" + target + "' holds something that is no artifact; it is replaced whole, so name another one";
      return false;
    }
  }
  fs::path parent = fs::path(target).parent_path();
  if (!parent.empty())
    fs::create_directories(parent, code);
  std::string pattern = target + ".XXXXXX";
  std::vector<char> name(pattern.begin(), pattern.end());
  name.push_back('\0');
  if (!mkdtemp(name.data())) {
    error = "cannot create a folder beside '" + target + "': " + std::strerror(errno);
    return false;
  }
  temporary = name.data();
  fs::permissions(temporary, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read | fs::perms::others_exec, code);
  isOpen = true;
  return true;
}

bool OutputFolder::write(const std::string &name, std::string_view contents, std::string &error) {
  std::string path = temporary + "/" + name;
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool ok = file >= 0;
  while (ok && !contents.empty()) {
    ssize_t written = ::write(file, contents.data(), contents.size());
    ok = written > 0 || (written < 0 && errno == EINTR);
    if (written > 0)
      contents.remove_prefix(written);
  }
  ok = ok && ::fsync(file) == 0;
  if (!ok)
    error = "cannot write '" + target + "/" + name + "': " + std::strerror(errno);
  if (file >= 0)
    ::close(file);
  return ok;
}

bool OutputFolder::commit(std::string &error) {
  std::error_code code;
  std::string old = temporary + ".old";
  bool replaces = fs::exists(target, code);
  if (replaces)
    fs::rename(target, old, code);
  if (!code)
    fs::rename(temporary, target, code);
  if (code) {
    error = "cannot put the artifact at '" + target + "': " + code.message();
    std::error_code ignored;
    if (replaces && !fs::exists(target, ignored))
      fs::rename(old, target, ignored);
    return false;
  }
  isOpen = false;
  std::error_code ignored;
  if (replaces)
    fs::remove_all(old, ignored);
  return true;
}

} // namespace ortc::driver
