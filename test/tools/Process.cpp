// A process as its parent sees it: signals at chosen moments, limits, terminals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/tools/Process.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <pty.h>
#include <sstream>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ortc::test {

static void execute(const std::string &program, const Arguments &arguments) {
  std::vector<char *> argv{const_cast<char *>(program.c_str())};
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  _exit(127);
}

Process::Process(const std::string &program, const Arguments &arguments,
                 const std::function<void()> &prepare) {
  char name[] = "/tmp/ortc-process-XXXXXX";
  int file = mkstemp(name);
  EXPECT_GE(file, 0);
  output = name;
  id = fork();
  if (id == 0) {
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    if (prepare)
      prepare();
    execute(program, arguments);
  }
  close(file);
}

Process::~Process() {
  if (!isOver) {
    send(SIGKILL);
    waitpid(id, &status, 0);
  }
  unlink(output.c_str());
}

void Process::send(int signal) const { kill(id, signal); }

void Process::traceMe() { ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }

bool Process::sendAtCall(int signal, int call) {
  EXPECT_EQ(waitpid(id, &status, 0), id); // it begins
  if (!WIFSTOPPED(status)) {
    isOver = true;
    return false;
  }
  for (int stops = 0; stops <= 2 * call; ++stops) { // before and after each
    ptrace(PTRACE_SYSCALL, id, nullptr, nullptr);
    waitpid(id, &status, 0);
    if (!WIFSTOPPED(status)) {
      isOver = true;
      return false;
    }
  }
  send(signal);
  ptrace(PTRACE_DETACH, id, nullptr, nullptr);
  return true;
}

bool Process::hasEnded() {
  isOver = isOver || waitpid(id, &status, WNOHANG) == id;
  return isOver;
}

Ended Process::wait() {
  if (!isOver)
    waitpid(id, &status, 0);
  isOver = true;
  std::ostringstream text;
  text << std::ifstream(output).rdbuf();
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), bool(WIFSIGNALED(status)),
          text.str()};
}

bool waitFor(const std::function<bool()> &condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition())
      return true;
    usleep(10000);
  }
  return false;
}

/// What a terminal would show, as far as a bar that is drawn and cleared needs one.
static std::vector<std::string> show(const std::string &text) {
  std::vector<std::string> lines(1);
  size_t column = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      lines.emplace_back();
      column = 0;
    } else if (text[i] == '\r') {
      column = 0;
    } else if (text.compare(i, 3, "\033[K") == 0) {
      lines.back().resize(column);
      i += 2;
    } else {
      lines.back().resize(std::max(lines.back().size(), column + 1));
      lines.back()[column++] = text[i];
    }
  }
  return lines;
}

std::vector<std::string> runOnTerminal(const std::string &program, const Arguments &arguments) {
  winsize size{};
  size.ws_col = 100;
  size.ws_row = 40;
  int terminal = -1;
  pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0)
    execute(program, arguments);
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = read(terminal, buffer, sizeof(buffer))) > 0 || (count < 0 && errno == EINTR);)
    text.append(buffer, size_t(std::max<ssize_t>(count, 0)));
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text;
  return show(text);
}

} // namespace ortc::test
