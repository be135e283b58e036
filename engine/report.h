// What a run tells: lines or a progress bar for people, JSON lines for tools.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/Status.h"

namespace ortc::engine {

/// JSON that is some already: objects of --watch and --profile.
struct RawJson {
  std::string text;
};
using EventValue = std::variant<int64_t, double, std::string, RawJson>;
/// Keys and values of an event, in the order of its line.
using EventFields = std::vector<std::pair<std::string, EventValue>>;

/// A training step. `epoch` is the one that it was of; the loss is that of before its update.
struct StepEvent {
  int64_t step = 0, epoch = 0;
  double loss = 0, lr = 0, milliseconds = 0;
  EventFields numbers; ///< beside those
};

/// Lines of the metrics file, without the end of a line.
std::string formatStep(const StepEvent &event);
std::string formatEvent(const std::string &event, const EventFields &fields);
/// ",KEY:VALUE" of each.
std::string formatFields(const EventFields &fields);

/// A file with one JSON object a line, written line by line so that others can follow it. A line that does
/// not fit on the disk is taken back: all lines are whole.
class MetricsFile {
public:
  ~MetricsFile();
  MetricsFile() = default;
  MetricsFile(const MetricsFile &) = delete;
  MetricsFile &operator=(const MetricsFile &) = delete;

  /// Opens (and empties, unless `append`) the file; "" opens nothing, and writing does nothing then.
  Status open(const std::string &path, bool append);
  Status writeLine(const std::string &line);
  bool isOpen() const { return file >= 0; }

private:
  std::string path;
  int file = -1;
};

/// The state of a run to be shown.
struct Progress {
  int64_t done = 0, total = 0; ///< steps of this run
  int64_t step = 0, epoch = 0; ///< over all runs
  double loss = 0, lr = 0;
};

/// The end of an epoch, or of the part of it that a run has trained.
struct EpochEnd {
  int64_t epoch = 0, steps = 0, slices = 0; ///< steps of this run, of `slices` that a whole epoch has
  double loss = 0, seconds = 0;             ///< mean loss of these steps
  std::string evaluation;                   ///< "" or what was found
  bool isWhole = false;                     ///< the epoch is at its end
};

/// Text on stdout: a bar that renews itself on a terminal, about twenty lines elsewhere, nothing when quiet.
/// Notes go to stderr.
class Reporter {
public:
  explicit Reporter(bool quiet);
  ~Reporter();
  /// A line that stays, and is one whatever names it has, as a note and a warning are.
  void line(const std::string &text);
  /// What was asked for: it is shown even when quiet.
  void result(const std::string &text);
  /// "ortc: note: ..." on stderr.
  void note(const std::string &text);
  void warn(const std::string &text);
  /// After every step; the loss shown is the step's own.
  void progress(const Progress &progress);
  /// On a terminal one line that stays when the bar is gone; elsewhere the evaluation, where there is one.
  void epoch(const EpochEnd &end);
  /// Of work without a loss: `what` n of total.
  void count(const std::string &what, int64_t done, int64_t total);
  bool isQuiet() const { return quiet; }

private:
  using Clock = std::chrono::steady_clock;
  void clearBar();
  void remark(const char *kind, const std::string &text);
  void drawBar(const std::string &text, double share);

  bool quiet, isTerminal, hasBar = false;
  Clock::time_point started, drawn;
};

} // namespace ortc::engine
