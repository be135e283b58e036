// A file that appears whole or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/AtomicFile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "support/OutputPaths.h"

namespace ortc {
namespace {

constexpr char kSuffix[] = ".ortc-a.tmp"; // with another letter for everyone who writes at the same time
constexpr size_t kLetter = 6;

/// Calls again where a signal came first.
template <typename Call> int retry(Call call) {
  int result = 0;
  do
    result = call();
  while (result < 0 && errno == EINTR);
  return result;
}

/// Removes what a killed process has left; what somebody has locked, or is no file, stays.
void removeRemnant(const char *name) {
  // No link is followed, and no reader of a pipe waited for.
  int file = retry([&] { return ::open(name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); });
  if (file < 0)
    return;
  // It may be in its place, under its last name, since it was opened.
  if (retry([&] { return flock(file, LOCK_EX | LOCK_NB); }) == 0 && isAt(file, name))
    ::unlink(name);
  ::close(file);
}

} // namespace

AtomicFile::AtomicFile(std::string path) : path(std::move(path)) {}

AtomicFile::~AtomicFile() { drop(); }

Status AtomicFile::fail(const char *what) {
  return Status::failure(path + ": cannot be " + what + ": " + std::strerror(errno));
}

bool AtomicFile::isTemporary(const std::string &name, const std::string &target) {
  std::string wanted = target + kSuffix;
  if (name.size() != wanted.size())
    return false;
  char letter = name[target.size() + kLetter];
  wanted[target.size() + kLetter] = letter;
  return name == wanted && letter >= 'a' && letter <= 'z';
}

Status AtomicFile::open() {
  ORTC_TRY(resolveOutput(path, place));
  temporary = place + kSuffix;
  char &letter = temporary[place.size() + kLetter];
  for (letter = 'a'; letter <= 'z'; ++letter)
    removeRemnant(temporary.c_str());
  errno = EEXIST;
  for (letter = 'a'; letter <= 'z' && errno == EEXIST; ++letter)
    if (create())
      return Status();
  return fail("written");
}

/// False with EEXIST when the name is taken.
bool AtomicFile::create() {
  SignalsWait signals;
  descriptor =
      retry([&] { return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  if (descriptor < 0)
    return false;
  // Not every file system has locks. There nothing is taken for a remnant, either.
  retry([&] { return flock(descriptor, LOCK_EX); });
  if (isAt(descriptor, temporary.c_str())) {
    guard.remember(temporary.c_str(), descriptor);
    return true;
  }
  ::close(descriptor); // somebody took it for a remnant before it was locked
  descriptor = -1;
  errno = EEXIST;
  return false;
}

/// `put` takes some bytes at least.
template <typename Put> Status AtomicFile::putAll(const void *data, size_t bytes, Put put) {
  auto from = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t count = put(from, bytes);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fail("written");
    from += count;
    bytes -= size_t(count);
  }
  isFlushed = false;
  return Status();
}

Status AtomicFile::write(const void *data, size_t bytes) {
  return putAll(data, bytes,
                [&](const char *from, size_t count) { return ::write(descriptor, from, count); });
}

Status AtomicFile::rewrite(uint64_t offset, const void *data, size_t bytes) {
  return putAll(data, bytes, [&](const char *from, size_t count) {
    auto done = static_cast<uint64_t>(from - static_cast<const char *>(data));
    return ::pwrite(descriptor, from, count, static_cast<off_t>(offset + done));
  });
}

Status AtomicFile::flush() {
  if (!isFlushed && retry([&] { return ::fsync(descriptor); }) != 0)
    return fail("written");
  isFlushed = true;
  return Status();
}

/// What happened to the name, the folder says; that a power failure does not take it back is a best effort,
/// which not every file system can make.
static void flushFolderOf(const std::string &place) {
  size_t slash = place.rfind('/');
  std::string folder = slash == std::string::npos ? "." : place.substr(0, slash + 1);
  int file = retry([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (file < 0)
    return;
  retry([&] { return ::fsync(file); });
  ::close(file);
}

Status AtomicFile::commit() {
  ORTC_TRY(flush());
  if (std::rename(temporary.c_str(), place.c_str()) != 0)
    return fail("written");
  guard.forget();
  ::close(descriptor); // and unlocked
  descriptor = -1;
  flushFolderOf(place);
  return Status();
}

void AtomicFile::drop() {
  if (descriptor < 0)
    return;
  guard.forget();
  if (isAt(descriptor, temporary.c_str()))
    ::unlink(temporary.c_str());
  ::close(descriptor);
  descriptor = -1;
}

Status AtomicFiles::add(const std::string &path, const std::string &contents) {
  if (path.empty())
    return Status();
  AtomicFile &file = *files.emplace_back(std::make_unique<AtomicFile>(path));
  ORTC_TRY(file.open());
  ORTC_TRY(file.write(contents));
  return file.flush();
}

Status AtomicFiles::commit() {
  for (const std::unique_ptr<AtomicFile> &file : files)
    ORTC_TRY(file->commit());
  files.clear();
  return Status();
}

Status writeFile(const std::string &path, const std::string &contents) {
  AtomicFile file(path);
  ORTC_TRY(file.open());
  ORTC_TRY(file.write(contents));
  return file.commit();
}

} // namespace ortc
