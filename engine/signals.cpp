// Signals that ask a tool to end.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/signals.h"

#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/HalfMade.h"

namespace ortc::engine {

// Handlers have no other way to tell.
static volatile std::sig_atomic_t first = 0;
static volatile std::sig_atomic_t remembers = 0;
static volatile std::sig_atomic_t home = 0; ///< the thread that handles them; 0: the main one
const volatile std::sig_atomic_t &interruption = first;

/// What ends a process by default and may come from a terminal, a shell, a batch system or the kernel. Those
/// that ask for a core dump stay as they are, but for limits.
static constexpr int kSignals[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGXFSZ, SIGXCPU, SIGUSR1, SIGUSR2};

/// Files are made by one thread: only there nothing can be in the middle of one.
static void handle(int signal, siginfo_t *about, void *) {
  int before = errno;
  bool isOwnWrite = about->si_code == SI_KERNEL || (about->si_code == SI_USER && about->si_pid == getpid());
  if (signal == SIGXFSZ && isOwnWrite)
    return;
  const long process = getpid(), thread = home ? long(home) : process;
  if (thread != syscall(SYS_gettid)) {
    syscall(SYS_tgkill, process, thread, signal);
    errno = before;
    return;
  }
  if (!remembers || (signal == SIGINT && first == SIGINT)) {
    HalfMade::removeAll();
    _exit(128 + signal);
  }
  if (!first)
    first = signal;
  errno = before;
}

void handleSignalsHere(bool isHere) { home = isHere ? int(syscall(SYS_gettid)) : 0; }

void catchSignals(OnSignal what) {
  remembers = what == OnSignal::Remember;
  for (int signal : kSignals) {
    struct sigaction action{}, old{};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigfillset(&action.sa_mask); // one after the other
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler != SIG_IGN)
      sigaction(signal, &action, nullptr);
  }
}

} // namespace ortc::engine
