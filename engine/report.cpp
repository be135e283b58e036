// What a run tells: lines or a progress bar for people, JSON lines for tools.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/report.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "support/Message.h"
#include "support/Printable.h"
#include "support/Text.h"

namespace ortc::engine {

MetricsFile::~MetricsFile() {
  if (file >= 0)
    ::close(file);
}

Status MetricsFile::open(const std::string &wanted, bool append) {
  path = wanted;
  if (path.empty())
    return Status();
  do
    file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC), 0666);
  while (file < 0 && errno == EINTR);
  if (file < 0)
    return Status::failure(path + ": cannot be written: " + std::strerror(errno));
  return Status();
}

Status MetricsFile::writeLine(const std::string &line) {
  if (file < 0)
    return Status();
  off_t before = lseek(file, 0, SEEK_END); // -1 for a pipe
  std::string text = line + "\n";
  for (size_t at = 0; at < text.size();) {
    ssize_t count = ::write(file, text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0) {
      Status status = Status::failure(path + ": cannot be written: " + std::strerror(errno));
      // a device has nothing to undo
      [[maybe_unused]] bool isUndone = before >= 0 && ftruncate(file, before) == 0;
      return status;
    }
    at += size_t(count);
  }
  return Status();
}

static std::string formatValue(const EventValue &value) {
  if (const auto *whole = std::get_if<int64_t>(&value))
    return std::to_string(*whole);
  if (const auto *number = std::get_if<double>(&value))
    return formatJsonNumber(*number);
  if (const auto *text = std::get_if<std::string>(&value))
    return formatJsonString(*text);
  return std::get<RawJson>(value).text;
}

std::string formatFields(const EventFields &fields) {
  std::string text;
  for (const auto &[key, value] : fields)
    text += "," + formatJsonString(key) + ":" + formatValue(value);
  return text;
}

std::string formatStep(const StepEvent &event) {
  char time[32];
  std::snprintf(time, sizeof(time), "%.4g", event.milliseconds);
  return "{\"step\":" + std::to_string(event.step) + ",\"epoch\":" + std::to_string(event.epoch) +
         ",\"loss\":" + formatJsonNumber(event.loss) + ",\"lr\":" + formatJsonNumber(event.lr) +
         ",\"ms\":" + time + formatFields(event.numbers) + "}";
}

std::string formatEvent(const std::string &event, const EventFields &fields) {
  return "{\"event\":" + formatJsonString(event) + formatFields(fields) + "}";
}

Reporter::Reporter(bool quiet)
    : quiet(quiet), isTerminal(isatty(STDOUT_FILENO) == 1), started(Clock::now()) {}

Reporter::~Reporter() { clearBar(); }

void Reporter::clearBar() {
  if (hasBar)
    std::fputs("\r\033[K", stdout);
  hasBar = false;
}

void Reporter::line(const std::string &text) {
  if (quiet)
    return;
  clearBar();
  std::printf("%s\n", makePrintable(text).c_str());
  std::fflush(stdout);
}

void Reporter::result(const std::string &text) {
  clearBar();
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void Reporter::note(const std::string &text) { remark("note", text); }

void Reporter::warn(const std::string &text) { remark("warning", text); }

void Reporter::remark(const char *kind, const std::string &text) {
  if (quiet)
    return;
  clearBar();
  printMessage(kind, text);
}

void Reporter::drawBar(const std::string &text, double share) {
  winsize size{};
  int columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
  int room = std::clamp(columns - int(text.size()) - 4, 0, 30);
  int filled = int(std::clamp(share, 0.0, 1.0) * room);
  std::string bar = room < 5
                        ? ""
                        : "[" + std::string(size_t(filled), '=') +
                              (filled < room ? ">" + std::string(size_t(room - filled - 1), ' ') : "") + "] ";
  std::string shown = (bar + text).substr(0, size_t(std::max(columns - 1, 1)));
  std::printf("\r%s\033[K", shown.c_str());
  std::fflush(stdout);
  hasBar = true;
}

void Reporter::progress(const Progress &now) {
  if (quiet)
    return;
  auto moment = Clock::now();
  bool last = now.done == now.total;
  if (isTerminal) {
    if (!last && hasBar && moment - drawn < std::chrono::milliseconds(80))
      return;
  } else if (!last && now.done % std::max<int64_t>(1, (now.total + 19) / 20) != 0) {
    return;
  }
  drawn = moment;
  double seconds = std::chrono::duration<double>(moment - started).count();
  std::string loss = formatShort(now.loss), epoch = std::to_string(now.epoch);
  std::string steps = std::to_string(now.done) + "/" + std::to_string(now.total);
  if (!isTerminal) {
    line("step " + steps + "  epoch " + epoch + "  loss " + loss + "  lr " + formatShort(now.lr));
    return;
  }
  double left = seconds / double(now.done) * double(now.total - now.done);
  drawBar(steps + "  epoch " + epoch + "  loss " + loss + "  " +
              formatShort(seconds * 1e3 / double(now.done), 3) + " ms/step  " +
              std::to_string(int64_t(std::ceil(left))) + " s left",
          double(now.done) / double(now.total));
}

void Reporter::epoch(const EpochEnd &end) {
  std::string text = "epoch " + std::to_string(end.epoch) + ": ";
  if (!isTerminal) {
    if (!end.evaluation.empty())
      line(text + end.evaluation);
    return;
  }
  if (end.steps && end.steps < end.slices)
    text += std::to_string(end.steps) + " of " + formatCount(end.slices, "step") + ", ";
  if (end.steps)
    text += "mean loss " + formatShort(end.loss, 5) + ", ";
  line(text + (end.evaluation.empty() ? "" : end.evaluation + ", ") + formatShort(end.seconds, 3) + " s");
}

void Reporter::count(const std::string &what, int64_t done, int64_t total) {
  auto moment = Clock::now();
  if (quiet || !isTerminal || (hasBar && moment - drawn < std::chrono::milliseconds(80)))
    return;
  drawn = moment;
  drawBar(what + " " + std::to_string(done) + "/" + std::to_string(total), double(done) / double(total));
}

} // namespace ortc::engine
