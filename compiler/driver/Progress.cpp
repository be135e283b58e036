//===- Progress.cpp - what a compilation that takes long is doing ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Progress.h"

#include <cstdio>
#include <system_error>

namespace ortc::driver {

static constexpr std::chrono::seconds kSilence{2};

Progress::Progress(bool isQuiet) : isOver(isQuiet) {
  if (isQuiet)
    return;
  try {
    thread = std::thread([this] { wait(); });
  } catch (const std::system_error &) { // no thread to spare: then nothing is said
    isOver = true;
  }
}

Progress::~Progress() {
  end();
  if (thread.joinable())
    thread.join();
}

void Progress::begin(std::string what) {
  std::lock_guard lock(mutex);
  doing = std::move(what);
  if (isTalking && !isOver)
    say();
}

void Progress::end() {
  {
    std::lock_guard lock(mutex);
    isOver = true;
  }
  wake.notify_all();
}

void Progress::wait() {
  std::unique_lock lock(mutex);
  if (wake.wait_until(lock, started + kSilence, [this] { return isOver; }))
    return;
  isTalking = true;
  if (!doing.empty())
    say();
}

void Progress::say() const {
  std::fprintf(stderr, "ortc: note: after %.0f s: %s\n",
               std::chrono::duration<double>(Clock::now() - started).count(), doing.c_str());
}

} // namespace ortc::driver
