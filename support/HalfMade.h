// What must not stay behind when a signal ends the process: files and folders that are being made.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <csignal>

namespace ortc {

/// Whether an open file is (still) what bears the name. Fit for handlers of signals.
bool isAt(int descriptor, const char *path);

/// While it lives no signal is handled: none comes between what a call makes and its being remembered.
class SignalsWait {
public:
  SignalsWait();
  ~SignalsWait();
  SignalsWait(const SignalsWait &) = delete;
  SignalsWait &operator=(const SignalsWait &) = delete;

private:
  sigset_t before;
};

/// One thing that is being made, until forget() or the end of its life. More than a few at once are not remembered.
class HalfMade {
public:
  HalfMade() = default;
  ~HalfMade() { forget(); }
  HalfMade(const HalfMade &) = delete;
  HalfMade &operator=(const HalfMade &) = delete;

  /// `path` must live as long as it is remembered. `descriptor`: of an open file, which is removed as long as it bears
  /// that name; -1: a folder, which is removed if nothing is in it.
  void remember(const char *path, int descriptor);
  void forget();
  /// Removes all, the last one first. Fit for handlers of signals.
  static void removeAll();

private:
  const char *path = nullptr;
  int descriptor = -1;
  int slot = -1;
};

} // namespace ortc
