// The end where memory runs out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/MissingMemory.h"

#include "support/HalfMade.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <unistd.h>
#ifdef ORTC_HAS_COMPILER
#include "llvm/Support/ErrorHandling.h"
#endif

/// Nothing here may allocate.
[[noreturn]] static void endWithoutMemory() {
  static const char kText[] =
      "ortc: error: out of memory, or no thread can be started; allow the process more (ulimit -v, -u)\n";
  ortc::HalfMade::removeAll();
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(1);
}

#ifdef ORTC_HAS_COMPILER

/// Constant from the beginning: the dynamic loader allocates before there are constructors.
static constinit std::atomic<bool> isEnd = false;

/// `memory`, which a request for `size` bytes was answered with.
static void *require(void *memory, size_t size) {
  if (!memory && size && isEnd.load(std::memory_order_relaxed))
    endWithoutMemory();
  return memory;
}

// The C library's own functions, which take the place of malloc, .. for every library of the process.
extern "C" {
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) noexcept { return require(__libc_malloc(size), size); }
void *calloc(size_t count, size_t size) noexcept {
  return require(__libc_calloc(count, size), count && size);
}
void *realloc(void *old, size_t size) noexcept { return require(__libc_realloc(old, size), size); }
void *aligned_alloc(size_t alignment, size_t size) noexcept {
  return require(__libc_memalign(alignment, size), size);
}
}

/// LLVM ends the process where it cannot start a thread.
static void endOnFatalError(void *, const char *reason, bool) {
  if (std::strncmp(reason, "pthread_create failed", std::strlen("pthread_create failed")) == 0)
    endWithoutMemory();
  for (const char *part : {"LLVM ERROR: ", reason, "\n"}) [[maybe_unused]]
    ssize_t written = write(STDERR_FILENO, part, std::strlen(part));
}

#endif

namespace ortc::tool {

void endOnMissingMemory() {
  static const std::terminate_handler other = std::set_terminate([] {
    if (std::exception_ptr error = std::current_exception()) {
      try {
        std::rethrow_exception(error);
      } catch (const std::bad_alloc &) {
        endWithoutMemory();
      } catch (const std::system_error &error) {
        if (error.code() == std::errc::resource_unavailable_try_again)
          endWithoutMemory();
      } catch (...) { // a bug, which the usual handler shows
      }
    }
    other();
  });
#ifdef ORTC_HAS_COMPILER
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { endWithoutMemory(); });
  llvm::install_fatal_error_handler(endOnFatalError);
#endif
}

void endOnFailedAllocation() {
#ifdef ORTC_HAS_COMPILER
  isEnd = true;
#endif
}

} // namespace ortc::tool
