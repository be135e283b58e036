// Files by POSIX: artifacts that are mapped, checkpoints that are read and written whole or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ortc {
namespace {

int32_t fileSink(void *context, const void *data, size_t bytes) {
  const char *p = (const char *)data;
  while (bytes) {
    ssize_t written = write(*(int *)context, p, bytes);
    if (written < 0) {
      if (errno != EINTR)
        return 1;
      written = 0;
    }
    p += written;
    bytes -= (size_t)written;
  }
  return 0;
}

/// False when the data may not be on the disk. Closes, too.
bool flush(int file) {
  int failed;
  do
    failed = fsync(file);
  while (failed && errno == EINTR);
  close(file); // what that could say, fsync has said
  return !failed;
}

/// Makes a rename survive a power failure. Best effort: not every file system can.
void syncFolder(char *path) {
  char *slash = strrchr(path, '/');
  if (slash)
    slash[slash == path] = 0;
  flush(open(slash ? path : ".", O_RDONLY | O_CLOEXEC));
}

} // namespace

Error mapFile(const char *path, FileMapping &file, Arguments &arguments) {
  file = {};
  void *data;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // never wait for the writer of a pipe
  struct stat about;
  Error error = kCannotRead;
  if (descriptor >= 0 && !fstat(descriptor, &about)) {
    if (!S_ISREG(about.st_mode))
      error = kNotAFile;
    else if (!about.st_size)
      error = kNoError;
    else if ((data = mmap(nullptr, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0)) !=
             MAP_FAILED) {
      file = {(const uint8_t *)data, (size_t)about.st_size};
      error = kNoError;
    }
  }
  arguments.set(0, path);
  arguments.set(1, (uint64_t)errno);
  close(descriptor);
  return error;
}

void unmapFile(const FileMapping &file) {
  if (file.data)
    munmap((void *)file.data, file.bytes);
}

} // namespace ortc

using namespace ortc;

extern "C" {

ortc_status ortc_checkpoint_save(ortc_session *session, const char *path, const ortc_metadata *metadata,
                                 size_t count) {
  Arguments &arguments = session->arguments;
  arguments.set(0, path);
  // The first name that is free: a process number may be that of one that was killed, in containers most of all.
  char temporary[4352]; // what does not fit here is too long for every system
  int file, number = 0;
  do {
    snprintf(temporary, sizeof temporary, "%s.%d.tmp", path, number++);
    file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  } while (file < 0 && (errno == EEXIST || errno == EINTR));
  ortc_status status = ORTC_E_IO;
  if (file >= 0) {
    status = ortc_checkpoint_write(session, fileSink, &file, metadata, count);
    bool isSafe = flush(file) && !status;
    if (isSafe && !rename(temporary, path)) {
      syncFolder(temporary);
      return ORTC_OK;
    }
    unlink(temporary);
  }
  arguments.set(0, path);
  arguments.set(1, (uint64_t)errno);
  return status && status != ORTC_E_IO ? status : report(kCannotWrite, arguments);
}
}
