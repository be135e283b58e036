// What a training makes of its evaluations: the best one, an early end, a learning rate that falls.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/follower.h"

#include <cmath>
#include <limits>

#include "engine/session/position.h"
#include "support/Spec.h"
#include "support/Text.h"

namespace ortc::engine {

// Keys of a checkpoint's metadata.
static constexpr const char *kBest = "run.best", *kBestState = "run.best.state", *kPlateau = "run.plateau",
                            *kPlateauState = "run.plateau.state";

Status Goal::parse(const std::string &text, Goal &goal) {
  size_t colon = text.rfind(':');
  std::string mode = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (colon == 0 || (mode != "max" && mode != "min"))
    return Status::refusal("'" + text +
                           "' must be METRIC:max or METRIC:min, such as accuracy:max or loss:min");
  goal = {text.substr(0, colon), mode == "max"};
  return Status();
}

void Follower::begin(const FollowOptions &wanted) {
  *this = Follower();
  options = wanted;
}

void Follower::describe(std::map<std::string, std::string> &metadata) const {
  if (!isActive())
    return;
  metadata[kBest] = getGoal().format();
  metadata[kBestState] = "state:bad=" + std::to_string(bad) + ",evaluated=" + std::to_string(evaluatedStep) +
                         ",step=" + std::to_string(bestStep) + ",value=" + formatExact(best);
  if (options.plateau) {
    metadata[kPlateau] = options.plateau->format();
    metadata[kPlateauState] = options.plateau->formatState();
  }
}

Status Follower::resume(const std::map<std::string, std::string> &metadata, const std::string &path,
                        std::vector<std::string> &notes) {
  auto find = [&](const char *key) {
    auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  auto refuse = [&](const char *key) {
    return Status::failure(path + ": its metadata has '" + key + "' = '" + find(key) +
                           "', which no training has saved");
  };
  if (metadata.count(kPlateau) && !options.plateau) {
    options.plateau.emplace();
    if (!Plateau::parse(find(kPlateau), *options.plateau).isOk())
      return refuse(kPlateau);
  }
  if (!metadata.count(kBest))
    return Status();
  Goal stored;
  if (!Goal::parse(find(kBest), stored).isOk())
    return refuse(kBest);
  if (options.goal && options.goal->format() != stored.format()) {
    notes.push_back("--best " + options.goal->format() + " replaces the checkpoint's " + stored.format() +
                    "; what was the best so far counts no more");
    return Status();
  }
  options.goal = stored;
  Spec state;
  const double largest = std::numeric_limits<double>::max();
  if (!parseSpec(find(kBestState), "", state).isOk() || state.values.size() != 4 ||
      !readWhole(state, "", "bad", 0, kMostSteps, bad).isOk() ||
      !readWhole(state, "", "evaluated", -1, kMostSteps, evaluatedStep).isOk() ||
      !readWhole(state, "", "step", -1, kMostSteps, bestStep).isOk() ||
      !readNumber(state, "", "value", -largest, largest, best).isOk())
    return refuse(kBestState);
  if (options.plateau && metadata.count(kPlateau) && options.plateau->format() == find(kPlateau) &&
      !options.plateau->parseState(find(kPlateauState)).isOk())
    return refuse(kPlateauState);
  return Status();
}

bool Follower::add(double value, int64_t step, double &rate) {
  bool isMaximum = getGoal().isMaximum;
  bool isBetter = std::isfinite(value) && (bestStep < 0 || (isMaximum ? value > best : value < best));
  if (isBetter) {
    best = value;
    bestStep = step;
  }
  bad = isBetter ? 0 : bad + 1;
  evaluatedStep = step;
  if (options.plateau)
    rate = options.plateau->follow(value, isMaximum, rate);
  return isBetter;
}

} // namespace ortc::engine
