// What happens to a program when a file that it has mapped is cut.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <csetjmp>
#include <cstddef>

namespace ortc {

/// Takes SIGBUS, for programs; libraries leave signals alone. A page of a mapped file that is no longer there
/// then ends the process with status 1 and "TOOL: error: FILE: ...", whoever has mapped the file, unless a
/// GuardedRead waits for it. Half-made files are removed.
void guardMappedFiles(const char *tool);

/// Takes SIGBUS for guarded reads only, in the library of a host that allows it: Python does. Other faults go to
/// whoever had SIGBUS before. Calls after the first do nothing.
void guardReads();

/// A place to go on from when bytes that are read turn out to be no longer there. One at a time in a thread.
class GuardedRead {
public:
  GuardedRead(const void *data, size_t bytes);
  ~GuardedRead();
  GuardedRead(const GuardedRead &) = delete;
  GuardedRead &operator=(const GuardedRead &) = delete;

  sigjmp_buf place;
  const char *const begin, *const end;
};

/// Calls `read`, which reads these bytes of a mapped file; false when some are gone. Then `read` was left in
/// the middle: it must own nothing.
template <typename Read> bool readGuarded(const void *data, size_t bytes, const Read &read) {
  GuardedRead guard(data, bytes);
  if (sigsetjmp(guard.place, 0) != 0)
    return false;
  read();
  return true;
}

} // namespace ortc
