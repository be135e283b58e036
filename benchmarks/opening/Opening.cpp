// How long it takes until an artifact can step: opening it and making a session, beside a plain copy of its parameters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: ortc-bench-opening MODEL.ortc ...
// Prints a row of docs/benchmarks/opening.md for each: the best of seven runs, the file in the page cache. Every run
// opens anew, in turns.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "ortc/ortc.h"

namespace {

constexpr size_t kHugePage = 2 << 20;

double now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Milliseconds of one thing, the best of all runs.
struct Best {
  double value = std::numeric_limits<double>::infinity();
  void add(double milliseconds) { value = std::min(value, milliseconds); }
};

void check(ortc_status status, const ortc_message &message) {
  if (status == ORTC_OK)
    return;
  std::fprintf(stderr, "%s\n", message.text);
  std::exit(1);
}

/// Opens `path` and makes a session; `flags` of ortc_host.
void openOnce(const char *path, uint32_t flags, Best &open, Best &create) {
  ortc_host host = {};
  host.size = sizeof host;
  host.flags = flags;
  ortc_program *program = nullptr;
  ortc_session *session = nullptr;
  ortc_message message = {};
  double start = now();
  check(ortc_program_open_file(path, &host, &program, &message), message);
  double opened = now();
  check(ortc_session_create(program, nullptr, &session, &message), message);
  double created = now();
  open.add(opened - start);
  create.add(created - opened);
  ortc_session_destroy(session);
  ortc_program_close(program);
}

/// Copies the initial parameters out of a new mapping of the file into new memory.
void copyOnce(const char *path, bool inHugePages, Best &copy) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  struct stat about = {};
  if (descriptor < 0 || fstat(descriptor, &about)) {
    std::perror(path);
    std::exit(1);
  }
  auto size = static_cast<size_t>(about.st_size);
  void *mapping = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  auto *head = static_cast<const ortc_file_header *>(mapping);
  auto *rows = reinterpret_cast<const ortc_file_section *>(head + 1);
  for (uint32_t i = 0; i < head->section_count; ++i) {
    if (rows[i].kind != ORTC_SECTION_PERSISTENT)
      continue;
    double start = now();
    void *memory = nullptr;
    if (posix_memalign(&memory, inHugePages ? kHugePage : 64, rows[i].bytes))
      std::exit(1);
    if (inHugePages)
      madvise(memory, rows[i].bytes, MADV_HUGEPAGE);
    std::memcpy(memory, static_cast<const char *>(mapping) + rows[i].offset, rows[i].bytes);
    __asm__ volatile("" : : "r"(memory) : "memory");
    copy.add(now() - start);
    std::free(memory);
  }
  munmap(mapping, size);
}

} // namespace

int main(int count, char **paths) {
  std::printf("| artifact | open, ms | session, ms | session, verified by the host, ms | plain copy, ms | in "
              "huge pages, ms |\n"
              "| --- | --- | --- | --- | --- | --- |\n");
  for (int i = 1; i < count; ++i) {
    Best open, create, vouched, copy, hugeCopy;
    for (int run = 0; run < 7; ++run) {
      Best ignored;
      openOnce(paths[i], 0, open, create);
      openOnce(paths[i], ORTC_HOST_VERIFIED, ignored, vouched);
      copyOnce(paths[i], false, copy);
      copyOnce(paths[i], true, hugeCopy);
    }
    std::printf("| %s | %.2f | %.2f | %.2f | %.2f | %.2f |\n", paths[i], open.value, create.value,
                vouched.value, copy.value, hugeCopy.value);
  }
  return 0;
}
