// What a compilation that takes long is doing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace ortc::tool {

/// Says nothing for two seconds; then what is being done, and from then on whatever begins. Notes on stderr:
/// a log of a build needs them as much as a terminal does.
class Progress {
public:
  explicit Progress(bool isQuiet, std::chrono::milliseconds silence = std::chrono::seconds(2),
                    std::FILE *file = stderr);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// "placing the buffers".
  void begin(std::string what);
  /// Nothing more is said.
  void end();

private:
  using Clock = std::chrono::steady_clock;
  void wait(std::chrono::milliseconds silence);
  void say() const;

  std::FILE *const file;
  const Clock::time_point started = Clock::now();
  std::mutex mutex;
  std::condition_variable wake;
  std::string doing;
  bool isTalking = false, isOver = false;
  std::thread thread;
};

} // namespace ortc::tool
