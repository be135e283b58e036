// A training by the engine over a session of Python: what ortc.Trainer is a door to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <csignal>
#include <map>
#include <memory>
#include <nanobind/nanobind.h>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "bindings/python/data.h"
#include "bindings/python/session.h"
#include "engine/training/trainer.h"

namespace ortc::python {

/// The calls come in this order: set() and openTrain(), openEval(), addMetric(); begin(); then the others. Whatever of
/// Python fails on the way is raised as it was. Functions of Python that are called on the way, and other threads, may
/// come back: what the engine is in the middle of is a StateError then. `tell` is called with the name of a method of
/// callbacks and an event.
class Training : private engine::Observer {
public:
  /// `session` is one of ortc.Session, with whose Program `path` was opened.
  Training(nanobind::object session, const std::string &path, nanobind::object tell);

  /// Options by the names of arguments of ortc.Trainer. None unsets them, but not `best` and `lr_schedule`.
  void set(const nanobind::kwargs &options);
  /// The path of a file, arrays by name, or a function that gives iterators of batches.
  void openTrain(nanobind::object source);
  void openEval(nanobind::object source);
  /// One that the engine has, or a function.
  void addMetric(const std::string &name, nanobind::object function);
  void begin();
  /// (fresh state, loaded, ignored, metadata, texts that tell what begins anew)
  nanobind::tuple load(const std::string &path);
  /// Refuses what cannot be, before callbacks know of it.
  void plan(std::optional<int64_t> epochs, std::optional<int64_t> steps);
  /// Whether Ctrl-C has ended it.
  bool train();
  void stop() { trainer->stop(); }
  void interrupt() { interrupted = 1; }
  void save(const std::string &path);
  /// `source`: as of openEval(), or None for that. Means and metrics by name.
  nanobind::dict evaluate(nanobind::object source, const std::string &weights);

  /// Files that the data are read from, as pairs of an argument and a path.
  const std::vector<std::pair<std::string, std::string>> &getFiles() const { return files; }
  /// Names that evaluations have beside metrics: losses, and accuracies of those with classes.
  std::vector<std::string> listFigures() const;
  const std::vector<std::string> &getMetrics() const { return wanted; }
  /// Of the artifact; "" where it has none.
  std::string getSchedule() const;
  bool isInterrupted() const { return interrupted != 0; }
  bool saves() const { return !options.save.empty(); }
  const engine::Trainer &get() const { return *trainer; }
  /// Objects of Python that it keeps, for the collector of cycles.
  int visit(visitproc visit, void *argument) const;
  void clear();

private:
  /// What is evaluated on.
  struct Slices {
    engine::Batches batches;
    nanobind::object function; ///< of the stream
    std::unique_ptr<Stream> stream;
    std::unique_ptr<engine::SliceSource> make(int64_t epoch);
  };

  Status tellStep(const engine::StepEvent &event) override;
  Status tell(const std::string &event, const engine::EventFields &fields) override;
  Status endEpoch(const engine::EpochEnd &end) override;
  Status poll() override;
  void note(const std::string &) override {}
  void noteFollowing(const std::string &text) override { notes.push_back(text); }

  /// Calls a function of Python in the middle of a fit, which a forked child ends there without saving.
  template <typename Function> Status call(Function function);
  Status tellPython(const char *method, const nanobind::dict &event);
  void openSlices(const char *argument, nanobind::object source, const engine::Entry &entry,
                  engine::Remainder remainder, Slices &slices);
  const engine::Entry &findEntry(uint32_t role) const;
  /// Raises within an evaluation, and within a fit: one of this thread's may be fine.
  void checkIdle(bool mayTrain) const;
  void follow();
  /// Refuses averages that the artifact does not have.
  void checkWeights(const std::string &kind) const;
  void check(const Status &status, ortc_status otherwise);

  nanobind::object kept; ///< the session, as Python has it
  Session &own;
  nanobind::object teller, rate;
  std::vector<nanobind::object> functions; ///< of metrics
  engine::Artifact artifact;
  engine::Session session;
  Pending pending;
  volatile std::sig_atomic_t interrupted = 0;
  engine::TrainOptions options;
  Slices data, evalData;
  Stream *stream = nullptr; ///< of the training
  bool hasEval = false;
  engine::MetricSet metrics;
  std::vector<std::string> wanted; ///< metrics, as events have them
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, std::string>> files;
  std::unique_ptr<engine::Trainer> trainer;
  std::thread::id fitting; ///< the thread of train()
  int process = 0;         ///< of train(), or of an evaluation without
};

void bindTraining(nanobind::module_ &module);

} // namespace ortc::python
