// Choices for kernels by measurement.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the choice of the cost table uphill: each round compiles and measures all that differ in one respect
// from the best so far. Chunks are all run by one core; what they do to the balance of several is computed.
#include "compiler/tuning/TuneKernels.h"

#include "compiler/tuning/MeasureKernels.h"

#include <cmath>
#include <set>
#include <tuple>

using namespace mlir;

namespace ortc::tuning {

using cpu::KernelChoice;

/// Kernels that take a smaller share of all are left alone.
static constexpr double kLeastShare = 0.01;
static constexpr int kRounds = 3;
/// A step uphill, and what the summit must be better by.
static constexpr double kStep = 0.99, kWin = 0.97;
/// What the busiest worker may have to do more than with the table's choice.
static constexpr double kImbalance = 1.02;

namespace {

/// A kernel on its way.
struct Climb {
  size_t number = 0; ///< of the kernel that stands for all of its key
  double share = 0;  ///< seconds of all kernels of the key
  std::string key;
  std::optional<KernelChoice> best; ///< nothing: the table's
  std::vector<KernelChoice> next;   ///< to be tried
  std::set<KernelChoice> seen;
  double usualSeconds = 0, tunedSeconds = 0; ///< from the end of it
};

class Tuner {
public:
  Tuner(ModuleOp module, const kernels::ProgramKernels &kernels, const cpu::TargetCode &code,
        const cpu::KernelOptions &options, std::string &error)
      : module(module), kernels(kernels), code(code), options(options), steps(findFirstSteps(module)),
        error(error) {}

  /// Kernels that are worth it, those of the largest share first.
  bool start(const TuneCache::Kernels &known) {
    std::vector<double> times = measureKernels(module, kernels, code, error);
    if (times.size() != code.kernels.size())
      return false;
    std::vector<int64_t> calls = kernels::countCalls(module, kernels);
    double all = 0;
    std::map<std::string, Climb> byKey;
    for (size_t i = 0; i < times.size(); ++i) {
      double seconds = times[i] * static_cast<double>(calls[i]);
      all += seconds;
      const cpu::KernelBlocking &blocking = code.kernels[i].blocking;
      if (blocking.neighbours.empty() || known.count(blocking.key))
        continue;
      auto [found, isNew] = byKey.try_emplace(blocking.key);
      Climb &climb = found->second;
      if (isNew || seconds > times[climb.number] * static_cast<double>(calls[climb.number]))
        climb.number = i;
      climb.share += seconds;
    }
    for (auto &[key, climb] : byKey) {
      if (climb.share < kLeastShare * all)
        continue;
      const cpu::KernelBlocking &blocking = code.kernels[climb.number].blocking;
      climb.key = key;
      climb.seen.insert(blocking.choice);
      offer(climb, blocking);
      climbs.push_back(std::move(climb));
    }
    llvm::sort(climbs, [](const Climb &a, const Climb &b) {
      return std::tie(b.share, a.key) < std::tie(a.share, b.key);
    });
    return true;
  }

  /// One step of everyone who has where to go.
  bool climb() {
    std::vector<Climb *> active;
    std::vector<std::vector<std::optional<KernelChoice>>> choices;
    for (Climb &climb : climbs)
      if (!climb.next.empty()) {
        active.push_back(&climb);
        choices.push_back({climb.best});
        choices.back().insert(choices.back().end(), climb.next.begin(), climb.next.end());
        climb.next.clear();
      }
    std::vector<std::vector<Measured>> measured;
    if (!measure(active, choices, measured))
      return false;
    for (size_t i = 0; i < active.size(); ++i) {
      const Measured *best = &measured[i][0];
      for (const Measured &other : measured[i])
        if (other.seconds < kStep * best->seconds ||
            (best != &measured[i][0] && other.seconds < best->seconds))
          best = &other;
      if (best == &measured[i][0])
        continue;
      active[i]->best = best->info.blocking.choice;
      offer(*active[i], best->info.blocking);
    }
    return true;
  }

  /// Compares what came out with the table's, twice.
  bool finish() {
    std::vector<Climb *> all;
    std::vector<std::vector<std::optional<KernelChoice>>> choices;
    for (Climb &climb : climbs) {
      all.push_back(&climb);
      choices.push_back({std::nullopt, climb.best});
    }
    std::vector<std::vector<Measured>> first, second;
    if (!measure(all, choices, first) || !measure(all, choices, second))
      return false;
    for (size_t i = 0; i < all.size(); ++i) {
      for (const auto &measured : {first[i], second[i]})
        if (measured[1].seconds > kWin * measured[0].seconds)
          all[i]->best.reset();
      all[i]->usualSeconds = std::min(first[i][0].seconds, second[i][0].seconds);
      all[i]->tunedSeconds = std::min(first[i][1].seconds, second[i][1].seconds);
      if (!all[i]->best)
        all[i]->tunedSeconds = all[i]->usualSeconds;
    }
    return true;
  }

  std::vector<Climb> climbs;
  size_t variants = 0;

private:
  struct Measured {
    cpu::KernelInfo info;
    double seconds = 0; ///< infinite where workers would be less busy
  };

  static void offer(Climb &climb, const cpu::KernelBlocking &blocking) {
    for (const KernelChoice &choice : blocking.neighbours)
      if (climb.seen.insert(choice).second)
        climb.next.push_back(choice);
  }

  bool measure(const std::vector<Climb *> &active,
               const std::vector<std::vector<std::optional<KernelChoice>>> &choices,
               std::vector<std::vector<Measured>> &measured) {
    std::vector<cpu::KernelVariant> all;
    for (size_t i = 0; i < active.size(); ++i)
      for (const std::optional<KernelChoice> &choice : choices[i]) {
        const std::string &kernel = kernels.names[active[i]->number];
        cpu::KernelVariant variant{kernel, kernel + ".variant" + std::to_string(all.size()), {{}, "--tune"}};
        if (choice)
          variant.choices.byKey[active[i]->key] = *choice;
        all.push_back(std::move(variant));
      }
    variants += all.size();
    std::vector<cpu::KernelInfo> infos;
    cpu::CodeBlob linked;
    if (all.empty())
      return true;
    if (!cpu::compileVariants(module, all, code.target, options, infos, linked, error))
      return false;
    auto blob = cpu::LoadedBlob::load(std::move(linked));
    if (!blob) {
      error = llvm::toString(blob.takeError());
      return false;
    }
    ArrayRef<cpu::KernelInfo> rest = infos;
    for (size_t i = 0; i < active.size(); ++i) {
      if (!measureOne(*active[i], rest.take_front(choices[i].size()), *blob, measured.emplace_back()))
        return false;
      rest = rest.drop_front(choices[i].size());
    }
    return true;
  }

  bool measureOne(const Climb &climb, ArrayRef<cpu::KernelInfo> infos, const cpu::LoadedBlob &blob,
                  std::vector<Measured> &measured) {
    const cpu::KernelInfo &usual = code.kernels[climb.number];
    int64_t workspace = 0;
    std::vector<KernelTrial::Code> codes;
    std::vector<size_t> numbers;
    for (const cpu::KernelInfo &info : infos) {
      measured.push_back({info, INFINITY});
      if (cpu::isParallel(usual, code.target) &&
          info.blocking.imbalance > kImbalance * usual.blocking.imbalance)
        continue;
      workspace = std::max(workspace, info.workspaceBytesPerWorker);
      codes.push_back({blob.kernel(info.name), info.chunks});
      numbers.push_back(measured.size() - 1);
    }
    KernelTrial trial(steps.lookup(kernels.names[climb.number]), workspace);
    if (!trial.isReady()) {
      error = "cannot get " + std::to_string(trial.bytes()) + " bytes to measure " + usual.name;
      return false;
    }
    for (auto [number, seconds] : llvm::zip_equal(numbers, trial.timeInTurns(codes)))
      measured[number].seconds = seconds;
    return true;
  }

  ModuleOp module;
  const kernels::ProgramKernels &kernels;
  const cpu::TargetCode &code;
  const cpu::KernelOptions options;
  llvm::StringMap<plan::StepOp> steps;
  std::string &error;
};

} // namespace

bool tuneKernels(ModuleOp module, const kernels::ProgramKernels &kernels, const cpu::TargetCode &code,
                 const cpu::KernelOptions &options, TuneCache &cache, TuneResult &result,
                 std::string &error) {
  std::string place = describePlace(code.target, options.numerics);
  Tuner tuner(module, kernels, code, options, error);
  if (!tuner.start(cache.at(place)))
    return false;
  for (int round = 0; round < kRounds; ++round)
    if (!tuner.climb())
      return false;
  if (!tuner.finish())
    return false;
  auto nanoseconds = [](double seconds) { return static_cast<int64_t>(std::llround(1e9 * seconds)); };
  for (const Climb &climb : tuner.climbs) {
    cache.set(place, climb.key,
              {climb.best, nanoseconds(climb.usualSeconds), nanoseconds(climb.tunedSeconds)});
    ++result.kernels;
    result.faster += climb.best.has_value();
  }
  result.variants += tuner.variants;
  return true;
}

} // namespace ortc::tuning
