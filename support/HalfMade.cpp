// What must not stay behind when a signal ends the process: files and folders that are being made.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/HalfMade.h"

#include <atomic>
#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>

namespace ortc {

// A handler of signals has nowhere else to look.
constexpr int kMostAtOnce = 16;
static std::atomic<const HalfMade *> slots[kMostAtOnce];

bool isAt(int descriptor, const char *path) {
  struct stat mine{}, there{};
  return fstat(descriptor, &mine) == 0 && lstat(path, &there) == 0 && mine.st_ino == there.st_ino &&
         mine.st_dev == there.st_dev;
}

SignalsWait::SignalsWait() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
}

SignalsWait::~SignalsWait() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

void HalfMade::remember(const char *what, int file) {
  forget();
  path = what;
  descriptor = file;
  for (slot = 0; slot < kMostAtOnce; ++slot)
    if (const HalfMade *none = nullptr; slots[slot].compare_exchange_strong(none, this))
      return;
  slot = -1;
}

void HalfMade::forget() {
  if (slot >= 0)
    slots[slot] = nullptr;
  slot = -1;
}

void HalfMade::removeAll() {
  int before = errno;
  for (int i = kMostAtOnce; i-- > 0;)
    if (const HalfMade *thing = slots[i];
        thing && thing->descriptor >= 0 && isAt(thing->descriptor, thing->path))
      unlink(thing->path);
  for (int i = kMostAtOnce; i-- > 0;) // after the files in them
    if (const HalfMade *thing = slots[i]; thing && thing->descriptor < 0)
      rmdir(thing->path);
  errno = before;
}

} // namespace ortc
