// What a compilation that takes long is doing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/Progress.h"
#include "support/Printable.h"

#include <system_error>

namespace ortc::tool {

Progress::Progress(bool isQuiet, std::chrono::milliseconds silence, std::FILE *file)
    : file(file), isOver(isQuiet) {
  if (isQuiet)
    return;
  try {
    thread = std::thread([this, silence] { wait(silence); });
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

void Progress::wait(std::chrono::milliseconds silence) {
  std::unique_lock lock(mutex);
  if (wake.wait_until(lock, started + silence, [this] { return isOver; }))
    return;
  isTalking = true;
  if (!doing.empty())
    say();
}

void Progress::say() const {
  std::fprintf(file, "ortc: note: after %.0f s: %s\n",
               std::chrono::duration<double>(Clock::now() - started).count(), makePrintable(doing).c_str());
}

} // namespace ortc::tool
