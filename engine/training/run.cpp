// The command `ortc run`: a training with files, and what it prints and writes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/run.h"

#include <filesystem>
#include <memory>
#include <unistd.h>

#include "engine/checkpoints/kept_checkpoints.h"
#include "engine/session/averages.h"
#include "engine/training/trainer.h"
#include "support/OutputPaths.h"
#include "support/Text.h"

namespace ortc::engine {
namespace {

/// The metrics file and the console.
class RunObserver : public Observer {
public:
  explicit RunObserver(bool quiet) : reporter(quiet) {}

  Status tellStep(const StepEvent &event) override {
    return metrics.isOpen() ? metrics.writeLine(formatStep(event)) : Status();
  }
  Status tell(const std::string &event, const EventFields &fields) override {
    return metrics.isOpen() ? metrics.writeLine(formatEvent(event, fields)) : Status();
  }
  Status endEpoch(const EpochEnd &end) override {
    reporter.epoch(end);
    return Status();
  }
  void progress(const Progress &now) override { reporter.progress(now); }
  void line(const std::string &text) override { reporter.line(text); }
  void note(const std::string &text) override { reporter.note(text); }
  void warn(const std::string &text) override { reporter.warn(text); }

  MetricsFile metrics;
  Reporter reporter;
};

/// One run from opening the artifact to the last line. Up to the trainer's plan nothing is trained.
class Run {
public:
  Run(const TrainOptions &options, const volatile std::sig_atomic_t &interrupted)
      : options(options), interrupted(interrupted), observer(options.quiet) {}

  Status run();

private:
  Status open();
  Status openEvaluation(std::vector<NamedFile> &inputs, std::vector<std::string> &notes);
  Status checkFiles(std::vector<NamedFile> inputs) const;
  Status reportProfile();

  const TrainOptions &options;
  const volatile std::sig_atomic_t &interrupted;
  RunObserver observer;
  Device device;
  Artifact artifact;
  Profiler profiler; // outlives the session, whose kernels it is told of
  Session session;
  const Entry *entry = nullptr, *evalEntry = nullptr;
  std::optional<Buckets> buckets; // choose the entry of every step; the two above are of the largest binding
  Batches data, evalData;
  MetricSet evalMetrics;
  Watch watch;
};

} // namespace

Status Run::openEvaluation(std::vector<NamedFile> &inputs, std::vector<std::string> &notes) {
  ORTC_TRY(checkAverages(artifact, "--eval-weights", options.evalWeights));
  ORTC_TRY(artifact.findEntry(ORTC_ENTRY_EVAL, buckets ? entry->bindingName : options.binding, evalEntry));
  for (const std::string &metric : options.evalMetrics)
    ORTC_TRY(evalMetrics.add(metric));
  std::unique_ptr<DataSource> source;
  ORTC_TRY(openData(options.evalData, source, &interrupted));
  for (const std::string &file : source->getFiles())
    inputs.push_back({"--eval-data", file});
  return Batches::create(*source, evalEntry->inputs, Remainder::Repeat, evalData, notes, options.buckets);
}

/// Files that are read, and not to be overwritten.
Status Run::checkFiles(std::vector<NamedFile> inputs) const {
  for (NamedFile &file : listLoadedFiles(options.load))
    if (file.path != options.load) // a folder; --save may be a checkpoint of --load
      inputs.push_back(std::move(file));
  ORTC_TRY(checkOutputs(
      inputs, {{"--save", options.save}, {"--save-best", options.saveBest}, {"--metrics", options.metrics}}));
  ORTC_TRY(checkOutputs({{"--load", options.load}}, {{"--metrics", options.metrics}}));
  if (options.keep) {
    inputs.push_back({"--save-best", options.saveBest});
    inputs.push_back({"--metrics", options.metrics});
    return checkKeptNames(options.save, inputs);
  }
  return Status();
}

/// Refuses what can be refused without a session: files, data, the folder of --save.
Status Run::open() {
  for (const std::string &file : {options.save, options.saveBest})
    if (!file.empty())
      ORTC_TRY(checkFolderOf(file));
  ORTC_TRY(Device::open(options.device, device));
  ORTC_TRY(Artifact::open(options.artifact, artifact, device));
  if (options.buckets.empty()) {
    ORTC_TRY(artifact.findEntry(ORTC_ENTRY_TRAIN, options.binding, entry));
  } else {
    ORTC_TRY(Buckets::create(artifact, buckets.emplace()));
    entry = &buckets->getLargest();
  }
  std::vector<std::string> notes;
  std::unique_ptr<DataSource> source;
  ORTC_TRY(openData(options.data, source, &interrupted));
  std::vector<NamedFile> inputs = listArtifactFiles(options.artifact);
  for (const std::string &file : source->getFiles())
    inputs.push_back({"--data", file});
  ORTC_TRY(Batches::create(*source, entry->inputs, Remainder::Drop, data, notes, options.buckets));
  ORTC_TRY(data.setShare(options.rank, options.world));
  if (buckets)
    ORTC_TRY(buckets->readLengths(*source, options.buckets, data));
  if (!options.evalData.empty())
    ORTC_TRY(openEvaluation(inputs, notes));
  ORTC_TRY(checkFiles(std::move(inputs)));
  SessionOptions settings{options.threads, options.stopOnNan};
  if (options.profile) {
    settings.trace = Profiler::trace;
    settings.traceContext = &profiler;
  }
  watch = options.watch;
  if (!watch.isEmpty())
    ORTC_TRY(watch.open(artifact.getProgram()));
  ORTC_TRY(Session::create(artifact, settings, session));
  for (const std::string &note : notes)
    observer.note(note);
  if (data.getDropped())
    observer.note(data.describeDropped("an epoch"));
  return Status();
}

Status Run::run() {
  if (Status opened = open(); !opened.isOk()) {
    if (!interrupted)
      return opened;
    observer.line("interrupted before the first step: " + opened.getMessage());
    return Status();
  }
  const TrainingParts parts{
      .artifact = artifact,
      .session = session,
      .entry = entry,
      .data = &data,
      .buckets = buckets ? &*buckets : nullptr,
      .evalEntry = evalEntry,
      .evalSlices = [this](int64_t) { return makeSlices(evalData, evalData.getSlices()); },
      .evalMetrics = evalMetrics,
      .watch = watch.isEmpty() ? nullptr : &watch,
      .profiler = options.profile ? &profiler : nullptr,
      .hasMetrics = !options.metrics.empty()};
  Trainer trainer(options, parts, observer, interrupted);
  if (options.load.empty())
    ORTC_TRY(artifact.checkWeights());
  LoadResult loaded;
  ORTC_TRY(trainer.resume(options.load, loaded));
  ORTC_TRY(trainer.plan());
  // Nothing refuses the run from here on.
  ORTC_TRY(observer.metrics.open(options.metrics, /*append=*/!options.load.empty()));
  ORTC_TRY(trainer.train());
  ORTC_TRY(trainer.report());
  if (options.profile && trainer.getStepsDone() == 0)
    observer.note("--profile has nothing to show: no step was run");
  return options.profile && trainer.getStepsDone() ? reportProfile() : Status();
}

/// The machine is measured now, when the step's caches and threads are no longer needed.
Status Run::reportProfile() {
  KernelTable table = artifact.readKernels();
  const ortc_program_info &info = artifact.getInfo();
  int lanes = countLanes(info.architecture, info.features), threads = int(session.getThreads());
  Machine single = measureMachine(lanes, 1), all = threads > 1 ? measureMachine(lanes, threads) : single;
  Profile profile = makeProfile(profiler.getTimes(), table, single, all);
  observer.reporter.result("\n" + formatProfile(profile, info.target_name ? info.target_name : "?"));
  EventFields fields;
  for (auto &[key, value] : describeProfile(profile))
    fields.push_back({key, RawJson{std::move(value)}});
  return observer.tell("profile", fields);
}

Status train(const TrainOptions &options, const volatile std::sig_atomic_t &interrupted) {
  Run run(options, interrupted);
  return run.run();
}

} // namespace ortc::engine
