// The stack of a program, and of its threads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/stack.h"

#include <cstring>
#include <pthread.h>
#include <sys/resource.h>

#include "engine/signals.h"
#include "support/Text.h"

namespace ortc::engine {
namespace {

constexpr size_t kBytes = 8 << 20; ///< what systems give by default

struct Call {
  const std::function<int()> &work;
  int result = 0;
};

void *run(void *call) {
  auto *to = static_cast<Call *>(call);
  handleSignalsHere(true);
  to->result = to->work();
  handleSignalsHere(false);
  return nullptr;
}

} // namespace

int runWithStack(const std::function<int()> &work, const std::function<int(const std::string &)> &fail) {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kBytes)
    return work();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kBytes);
#ifdef __GLIBC__ // whose threads have the limit for their size, elsewhere that is a constant
  pthread_setattr_default_np(&attributes);
#endif
  Call call{work};
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, run, &call);
  pthread_attr_destroy(&attributes);
  if (error)
    return fail("the stack may have " + formatBytes(limit.rlim_cur) + " (ulimit -s), and a thread with " +
                formatBytes(kBytes) + " cannot be started: " + std::strerror(error));
  pthread_join(thread, nullptr);
  return call.result;
}

} // namespace ortc::engine
