// A process as its parent sees it: signals at chosen moments, limits, terminals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace ortc::test {

using Arguments = std::vector<std::string>;

/// What has become of it: as a shell counts, 128 + N when signal N has ended it.
struct Ended {
  int status = -1;
  bool isKilled = false; ///< by the signal itself
  std::string text;      ///< stdout and stderr
};

/// A program that runs, with its output in a file.
class Process {
public:
  /// `prepare` runs in the new process before the program does.
  Process(const std::string &program, const Arguments &arguments, const std::function<void()> &prepare = {});
  ~Process();
  Process(const Process &) = delete;
  Process &operator=(const Process &) = delete;

  void send(int signal) const;
  /// Sends the signal before the system call of this number (0: the first one that the program makes); false
  /// when it has ended before. The program must have been started with `prepare` = Process::traceMe.
  bool sendAtCall(int signal, int call);
  static void traceMe();
  bool hasEnded();
  Ended wait();
  pid_t getId() const { return id; }

private:
  pid_t id = -1;
  bool isOver = false;
  int status = 0;
  std::string output;
};

/// Waits until `condition` holds; false after a minute.
bool waitFor(const std::function<bool()> &condition);

/// Runs the program on a terminal of 100 columns; the lines that stay on it.
std::vector<std::string> runOnTerminal(const std::string &program, const Arguments &arguments);

} // namespace ortc::test
