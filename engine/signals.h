// Signals that ask a tool to end.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <csignal>

namespace ortc::engine {

/// What becomes of a process that is asked to end.
enum class OnSignal {
  End,     ///< at once, with status 128 + N and without the files that it was making
  Remember ///< its work does so when it has saved; a second Ctrl-C ends it at once
};

/// Called first, on the main thread. Signals that the parent has made the process ignore (`nohup`) stay
/// ignored. SIGXFSZ that the process's own writing brings about is left to that writing, which fails.
void catchSignals(OnSignal what);

/// The calling thread, which makes the files, handles signals from now on; or the main one does again.
void handleSignalsHere(bool isHere);

/// The number of the first signal that came; 0: none.
extern const volatile std::sig_atomic_t &interruption;

} // namespace ortc::engine
