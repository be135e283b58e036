// Choices for kernels by measurement.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the choice of the cost table uphill: each round compiles and measures all that differ in one respect
// from the best so far. Chunks are all run by one core; what they do to the balance of several is computed.
#include "compiler/tuning/TuneKernels.h"

#include <cmath>
#include <set>
#include <tuple>

using namespace mlir;

namespace ortc::tuning {

using backends::KernelBlocking;
using backends::KernelChoice;
using backends::KernelInfo;

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
  Tuner(ModuleOp module, const kernels::ProgramKernels &kernels, const backends::Target &target,
        const backends::TargetCode &code, const backends::CodeOptions &options)
      : module(module), kernels(kernels), target(target), code(code), options(options),
        steps(kernels::findFirstSteps(module)) {}

  /// Kernels that are worth it, those of the largest share first.
  Status start(const TuneCache::Kernels &known) {
    Expected<std::vector<double>> measured = target.measure(module, kernels, code);
    if (!measured)
      return measured.getStatus();
    const std::vector<double> &times = *measured;
    std::vector<int64_t> calls = kernels::countCalls(module, kernels);
    double all = 0;
    std::map<std::string, Climb> byKey;
    for (size_t i = 0; i < times.size(); ++i) {
      double seconds = times[i] * static_cast<double>(calls[i]);
      all += seconds;
      const KernelBlocking &blocking = code.kernels[i].blocking;
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
      const KernelBlocking &blocking = code.kernels[climb.number].blocking;
      climb.key = key;
      climb.seen.insert(blocking.choice);
      offer(climb, blocking);
      climbs.push_back(std::move(climb));
    }
    llvm::sort(climbs, [](const Climb &a, const Climb &b) {
      return std::tie(b.share, a.key) < std::tie(a.share, b.key);
    });
    return Status();
  }

  /// One step of everyone who has where to go.
  Status climb() {
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
    ORTC_TRY(measure(active, choices, measured));
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
    return Status();
  }

  /// Compares what came out with the table's, twice.
  Status finish() {
    std::vector<Climb *> all;
    std::vector<std::vector<std::optional<KernelChoice>>> choices;
    for (Climb &climb : climbs) {
      all.push_back(&climb);
      choices.push_back({std::nullopt, climb.best});
    }
    std::vector<std::vector<Measured>> first, second;
    ORTC_TRY(measure(all, choices, first));
    ORTC_TRY(measure(all, choices, second));
    for (size_t i = 0; i < all.size(); ++i) {
      for (const auto &measured : {first[i], second[i]})
        if (measured[1].seconds > kWin * measured[0].seconds)
          all[i]->best.reset();
      all[i]->usualSeconds = std::min(first[i][0].seconds, second[i][0].seconds);
      all[i]->tunedSeconds = std::min(first[i][1].seconds, second[i][1].seconds);
      if (!all[i]->best)
        all[i]->tunedSeconds = all[i]->usualSeconds;
    }
    return Status();
  }

  std::vector<Climb> climbs;
  size_t variants = 0;

private:
  struct Measured {
    KernelInfo info;
    double seconds = 0; ///< infinite where workers would be less busy
  };

  static void offer(Climb &climb, const KernelBlocking &blocking) {
    for (const KernelChoice &choice : blocking.neighbours)
      if (climb.seen.insert(choice).second)
        climb.next.push_back(choice);
  }

  Status measure(const std::vector<Climb *> &active,
                 const std::vector<std::vector<std::optional<KernelChoice>>> &choices,
                 std::vector<std::vector<Measured>> &measured) {
    std::vector<backends::KernelVariant> all;
    for (size_t i = 0; i < active.size(); ++i)
      for (const std::optional<KernelChoice> &choice : choices[i]) {
        const std::string &kernel = kernels.names[active[i]->number];
        backends::KernelVariant variant{
            kernel, kernel + ".variant" + std::to_string(all.size()), {{}, "--tune"}};
        if (choice)
          variant.choices.byKey[active[i]->key] = *choice;
        all.push_back(std::move(variant));
      }
    variants += all.size();
    if (all.empty())
      return Status();
    Expected<std::unique_ptr<backends::TargetCode>> compiled = target.compileVariants(module, all, options);
    if (!compiled)
      return compiled.getStatus();
    size_t begin = 0;
    for (size_t i = 0; i < active.size(); ++i) {
      ORTC_TRY(measureOne(*active[i], **compiled, begin, choices[i].size(), measured.emplace_back()));
      begin += choices[i].size();
    }
    return Status();
  }

  /// Measures `count` variants from `begin` on, but for those that workers would be less busy with.
  Status measureOne(const Climb &climb, const backends::TargetCode &compiled, size_t begin, size_t count,
                    std::vector<Measured> &measured) {
    const KernelInfo &usual = code.kernels[climb.number];
    std::vector<size_t> numbers;
    for (size_t number = begin; number < begin + count; ++number) {
      const KernelInfo &info = compiled.kernels[number];
      measured.push_back({info, INFINITY});
      if (!usual.isParallel || info.blocking.imbalance <= kImbalance * usual.blocking.imbalance)
        numbers.push_back(number);
    }
    Expected<std::vector<double>> times =
        target.timeInTurns(steps.lookup(kernels.names[climb.number]), compiled, numbers);
    if (!times)
      return times.getStatus();
    for (auto [number, seconds] : llvm::zip_equal(numbers, *times))
      measured[number - begin].seconds = seconds;
    return Status();
  }

  ModuleOp module;
  const kernels::ProgramKernels &kernels;
  const backends::Target &target;
  const backends::TargetCode &code;
  const backends::CodeOptions options;
  llvm::StringMap<plan::StepOp> steps;
};

} // namespace

Status tuneKernels(ModuleOp module, const kernels::ProgramKernels &kernels, const backends::Target &target,
                   const backends::TargetCode &code, const backends::CodeOptions &options, TuneCache &cache,
                   TuneResult &result) {
  std::string place = target.describe(options.numerics);
  Tuner tuner(module, kernels, target, code, options);
  ORTC_TRY(tuner.start(cache.at(place)));
  for (int round = 0; round < kRounds; ++round)
    ORTC_TRY(tuner.climb());
  ORTC_TRY(tuner.finish());
  auto nanoseconds = [](double seconds) { return static_cast<int64_t>(std::llround(1e9 * seconds)); };
  for (const Climb &climb : tuner.climbs) {
    cache.set(place, climb.key,
              {climb.best, nanoseconds(climb.usualSeconds), nanoseconds(climb.tunedSeconds)});
    ++result.kernels;
    result.faster += climb.best.has_value();
  }
  result.variants += tuner.variants;
  return Status();
}

} // namespace ortc::tuning
