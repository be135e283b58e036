// The judge: checks a plan against its problem, with none of the planner's code.
//
// It goes through the plan as a machine would, one step after the other, with a map of the bytes in use.
// Everything is derived again from the problem: which buffers are views, when each lives, what an in-place
// write may take over. O(size * log size).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Plan.h"

#include <algorithm>
#include <map>

namespace ortc::planning {

namespace {

constexpr uint32_t kNever = UINT32_MAX;

class Validator {
public:
  Validator(const Problem &problem, const Plan &plan) : problem(problem), plan(plan) {}

  Status run() {
    for (auto part :
         {&Validator::checkShape, &Validator::checkOrder, &Validator::findLifetimes, &Validator::checkPlaces,
          &Validator::checkReads, &Validator::replay, &Validator::checkBodies}) {
      ORTC_TRY((this->*part)());
    }
    return {};
  }

private:
  static Status refuse(std::string why) { return Status::failure(std::move(why)); }
  std::string step(StepId s) const {
    if (problem.steps.empty())
      return "a problem without steps"; // whose buffers meet all the same
    return "step " + std::to_string(s) + " '" + problem.steps[s].name + "'";
  }
  std::string buffer(BufferId b) const {
    return "buffer " + std::to_string(b) + " '" + problem.buffers[b].name + "'";
  }

  Status checkShape() {
    size_t steps = problem.steps.size(), buffers = problem.buffers.size();
    auto check = [&](const char *what, size_t has, size_t needs) -> Status {
      if (has == needs)
        return {};
      return refuse(std::string("the plan has ") + std::to_string(has) + " " + what +
                    " but the problem has " + std::to_string(needs));
    };
    for (Status status :
         {check("steps", plan.order.size(), steps), check("storages", plan.storageOf.size(), buffers),
          check("offsets", plan.offsetOf.size(), buffers),
          check("workspaces", plan.workspaceOf.size(), steps),
          check("inner arenas", plan.innerArenaOf.size(), steps),
          check("in-place lists", plan.inPlace.size(), steps),
          check("inner plans", plan.inner.size(), steps)})
      if (!status.isOk())
        return status;
    return {};
  }

  Status checkOrder() {
    at.assign(problem.steps.size(), kNever);
    for (uint32_t p = 0; p < plan.order.size(); ++p) {
      StepId s = plan.order[p];
      if (s >= problem.steps.size())
        return refuse("position " + std::to_string(p) + " of the order names step " + std::to_string(s) +
                      " but there are " + std::to_string(problem.steps.size()));
      if (at[s] != kNever)
        return refuse(step(s) + " is in the order twice");
      at[s] = p;
      if (p > 0 && problem.steps[s].segment < problem.steps[plan.order[p - 1]].segment)
        return refuse(step(s) + " of segment " + std::to_string(problem.steps[s].segment) +
                      " runs after a step of segment " +
                      std::to_string(problem.steps[plan.order[p - 1]].segment));
    }
    for (StepId s = 0; s < problem.steps.size(); ++s)
      for (StepId before : problem.steps[s].after)
        if (at[before] > at[s])
          return refuse(step(s) + " runs before " + step(before) + " which it must follow");
    return {};
  }

  Status findLifetimes() {
    size_t count = problem.buffers.size();
    root.resize(count);
    rootOffset.assign(count, 0);
    std::vector<const View *> viewOf(count, nullptr);
    for (const View &view : problem.views)
      viewOf[view.view] = &view;
    for (BufferId b = 0; b < count; ++b) {
      root[b] = b;
      for (size_t hops = 0; viewOf[root[b]] && hops <= problem.views.size(); ++hops) {
        rootOffset[b] += viewOf[root[b]]->offset;
        root[b] = viewOf[root[b]]->base;
      }
      smallestAlignment = std::min(smallestAlignment, problem.buffers[b].alignment);
    }
    uint32_t last = plan.order.empty() ? 0 : uint32_t(plan.order.size()) - 1;
    firstAt.assign(count, kNever);
    lastAt.assign(count, 0);
    toEnd.assign(count, false);
    std::vector<bool> fromStart(count, false), used(count, false);
    for (uint32_t p = 0; p < plan.order.size(); ++p)
      for (const auto *list : {&problem.steps[plan.order[p]].writes, &problem.steps[plan.order[p]].reads})
        for (BufferId b : *list) {
          BufferId r = root[b];
          if (problem.buffers[b].bytes == 0)
            continue;
          firstAt[r] = std::min(firstAt[r], p);
          lastAt[r] = std::max(lastAt[r], p);
          used[r] = true;
        }
    for (BufferId b = 0; b < count; ++b) {
      if (problem.buffers[b].aliveAtStart) {
        firstAt[root[b]] = 0;
        fromStart[root[b]] = true;
      }
      if (problem.buffers[b].aliveAtEnd)
        toEnd[root[b]] = true;
    }
    for (BufferId r = 0; r < count; ++r) {
      toEnd[r] = toEnd[r] || (fromStart[r] && !used[r]);
      if (toEnd[r])
        lastAt[r] = last;
      lives.push_back(root[r] == r && firstAt[r] != kNever && problem.buffers[r].bytes > 0);
    }
    return {};
  }

  Status checkPlaces() {
    for (BufferId b = 0; b < problem.buffers.size(); ++b) {
      const Buffer &is = problem.buffers[b];
      if (is.bytes == 0 || !lives[root[b]])
        continue;
      uint64_t offset = plan.offsetOf[b];
      if (offset > plan.arenaBytes || is.bytes > plan.arenaBytes - offset)
        return refuse(buffer(b) + " of " + std::to_string(is.bytes) + " bytes at offset " +
                      std::to_string(offset) + " passes the end of the arena of " +
                      std::to_string(plan.arenaBytes) + " bytes");
      if (offset % is.alignment != 0)
        return refuse(buffer(b) + " at offset " + std::to_string(offset) + " breaks its alignment of " +
                      std::to_string(is.alignment));
      if (plan.arenaAlignment % is.alignment != 0)
        return refuse("the arena's alignment of " + std::to_string(plan.arenaAlignment) +
                      " is less than that of " + buffer(b));
      if (offset != plan.offsetOf[root[b]] + rootOffset[b] || plan.storageOf[b] != plan.storageOf[root[b]])
        return refuse(buffer(b) + " is not where it lies in " + buffer(root[b]));
    }
    if (plan.arenaAlignment == 0 || (plan.arenaAlignment & (plan.arenaAlignment - 1)) != 0)
      return refuse("the arena's alignment of " + std::to_string(plan.arenaAlignment) +
                    " is no power of two");
    return {};
  }

  /// Every byte that is read was written by a step that ran, or was there at the start.
  Status checkReads() {
    std::vector<std::vector<std::pair<BufferId, StepId>>> written(problem.buffers.size());
    for (StepId s = 0; s < problem.steps.size(); ++s)
      for (BufferId b : problem.steps[s].writes)
        written[root[b]].push_back({b, s});
    std::vector<std::map<uint64_t, std::pair<uint64_t, StepId>>> ranges(problem.buffers.size());
    std::vector<StepId> writerOf(problem.buffers.size(), kNever);
    for (BufferId r = 0; r < problem.buffers.size(); ++r)
      for (auto [b, s] : written[r]) {
        writerOf[b] = s;
        if (problem.buffers[b].bytes > 0)
          ranges[r][rootOffset[b]] = {rootOffset[b] + problem.buffers[b].bytes, s};
      }
    for (StepId s = 0; s < problem.steps.size(); ++s)
      for (BufferId b : problem.steps[s].reads) {
        auto late = [&](StepId writer) {
          return refuse(step(s) + " reads " + buffer(b) + " before " + step(writer) + " writes it");
        };
        if (problem.buffers[b].bytes == 0) {
          if (writerOf[b] != kNever && at[writerOf[b]] >= at[s])
            return late(writerOf[b]);
          continue;
        }
        auto &map = ranges[root[b]];
        for (auto it = map.lower_bound(rootOffset[b] + problem.buffers[b].bytes); it != map.begin();) {
          --it;
          if (it->second.first <= rootOffset[b])
            break;
          if (at[it->second.second] >= at[s])
            return late(it->second.second);
        }
      }
    return {};
  }

  /// Takes [offset, offset + bytes); fails when another owner has any of it.
  Status take(uint64_t offset, uint64_t bytes, const std::string &owner, StepId when) {
    auto next = inUse.lower_bound(offset);
    const std::string *other = nullptr;
    if (next != inUse.end() && next->first < offset + bytes)
      other = &next->second.owner;
    else if (next != inUse.begin() && std::prev(next)->second.end > offset)
      other = &std::prev(next)->second.owner;
    if (other)
      return refuse(owner + " at offset " + std::to_string(offset) + " overlaps " + *other + " at " +
                    step(when));
    inUse[offset] = {offset + bytes, owner};
    return {};
  }

  uint64_t rounded(uint64_t bytes) const {
    return (bytes + smallestAlignment - 1) / smallestAlignment * smallestAlignment;
  }

  Status takeWorkspace(StepId s, uint64_t offset, uint64_t bytes, uint64_t alignment, const char *what) {
    std::string owner = std::string(what) + " of " + step(s);
    if (offset == kNoOffset || offset % alignment != 0 || plan.arenaAlignment % alignment != 0)
      return refuse(owner + " has no place with an alignment of " + std::to_string(alignment));
    if (offset > plan.arenaBytes || bytes > plan.arenaBytes - offset)
      return refuse(owner + " passes the end of the arena of " + std::to_string(plan.arenaBytes) + " bytes");
    return take(offset, bytes, owner, s);
  }

  Status checkInPlace(StepId s, const InPlace &pair) {
    const std::vector<InPlace> &candidates = problem.steps[s].inPlace;
    size_t count = problem.buffers.size();
    if (pair.read >= count || pair.write >= count)
      return refuse(step(s) + " uses buffer " + std::to_string(std::max(pair.read, pair.write)) +
                    " in place but there are " + std::to_string(count));
    std::string what = step(s) + " writes " + buffer(pair.write) + " in place of " + buffer(pair.read);
    if (std::none_of(candidates.begin(), candidates.end(),
                     [&](const InPlace &c) { return c.read == pair.read && c.write == pair.write; }))
      return refuse(what + ", which is not one of its candidates");
    BufferId from = root[pair.read];
    if (root[pair.write] != pair.write || rootOffset[pair.read] != 0)
      return refuse(what + ", one of which starts inside another buffer");
    if (problem.buffers[pair.write].bytes > problem.buffers[pair.read].bytes)
      return refuse(what + ", which is smaller");
    if (plan.offsetOf[pair.write] != plan.offsetOf[pair.read] ||
        plan.storageOf[pair.write] != plan.storageOf[pair.read])
      return refuse(what + " but at another offset");
    if (toEnd[from] || lastAt[from] != at[s])
      return refuse(what + ", which is still needed after it");
    for (const auto *list : {&problem.steps[s].reads, &problem.steps[s].writes})
      for (BufferId other : *list)
        if (other != pair.read && root[other] == from && problem.buffers[other].bytes > 0 &&
            rootOffset[other] < problem.buffers[pair.write].bytes)
          return refuse(what + ", whose bytes it also uses as " + buffer(other));
    return {};
  }

  /// Runs through the order with the map of bytes in use.
  Status replay() {
    size_t steps = plan.order.size();
    std::vector<std::vector<BufferId>> starts(std::max<size_t>(1, steps)), ends(std::max<size_t>(1, steps));
    for (BufferId r = 0; r < problem.buffers.size(); ++r)
      if (lives[r]) {
        starts[firstAt[r]].push_back(r);
        ends[lastAt[r]].push_back(r);
      }
    uint64_t live = 0, peak = 0;
    if (steps == 0) {
      for (BufferId r : starts[0]) {
        ORTC_TRY(take(plan.offsetOf[r], problem.buffers[r].bytes, buffer(r), 0));
        peak += rounded(problem.buffers[r].bytes);
      }
    }
    for (uint32_t p = 0; p < steps; ++p) {
      StepId s = plan.order[p];
      std::map<BufferId, BufferId> inPlace; // root of the write -> root of the read
      std::map<BufferId, BufferId> takenOver;
      uint64_t saved = 0;
      for (const InPlace &pair : plan.inPlace[s]) {
        ORTC_TRY(checkInPlace(s, pair));
        if (!inPlace.insert({pair.write, root[pair.read]}).second ||
            !takenOver.insert({root[pair.read], pair.write}).second)
          return refuse(step(s) + " uses " + buffer(pair.read) + " or " + buffer(pair.write) +
                        " in place twice");
        saved += rounded(problem.buffers[pair.write].bytes);
      }
      for (BufferId r : starts[p]) {
        live += rounded(problem.buffers[r].bytes);
        if (inPlace.count(r))
          continue; // its bytes are those of the read until the step is over
        ORTC_TRY(take(plan.offsetOf[r], problem.buffers[r].bytes, buffer(r), s));
      }
      uint64_t fixed = problem.steps[s].workspace, body = plan.inner[s] ? plan.inner[s]->arenaBytes : 0;
      if (fixed > 0)
        if (Status status = takeWorkspace(s, plan.workspaceOf[s], fixed, kDefaultAlignment, "the workspace");
            !status.isOk())
          return status;
      if (body > 0)
        if (Status status = takeWorkspace(s, plan.innerArenaOf[s], body, plan.inner[s]->arenaAlignment,
                                          "the inner arena");
            !status.isOk())
          return status;
      peak = std::max(peak, live + rounded(fixed) + rounded(body) - saved);
      if (fixed > 0)
        inUse.erase(plan.workspaceOf[s]);
      if (body > 0)
        inUse.erase(plan.innerArenaOf[s]);
      for (BufferId r : ends[p])
        if (!inPlace.count(r)) {
          live -= rounded(problem.buffers[r].bytes);
          inUse.erase(plan.offsetOf[r]);
        }
      for (auto [write, read] : inPlace) {
        if (lastAt[write] == p) {
          live -= rounded(problem.buffers[write].bytes);
          continue;
        }
        if (Status status = take(plan.offsetOf[write], problem.buffers[write].bytes, buffer(write), s);
            !status.isOk())
          return status;
      }
    }
    if (peak != plan.maxLive)
      return refuse("max-live is " + std::to_string(peak) + " but the plan says " +
                    std::to_string(plan.maxLive));
    if (plan.orderBound > peak)
      return refuse("the bound of " + std::to_string(plan.orderBound) + " is above max-live of " +
                    std::to_string(peak));
    if (plan.arenaBytes < peak)
      return refuse("the arena of " + std::to_string(plan.arenaBytes) + " bytes is below max-live of " +
                    std::to_string(peak));
    return {};
  }

  Status checkBodies() {
    for (StepId s = 0; s < problem.steps.size(); ++s) {
      if (!problem.steps[s].inner != !plan.inner[s])
        return refuse(step(s) + (plan.inner[s] ? " has a plan of a body but no body"
                                               : " has a body but no plan of it"));
      if (!plan.inner[s])
        continue;
      if (Status status = Validator(*problem.steps[s].inner, *plan.inner[s]).run(); !status.isOk())
        return refuse("in the body of " + step(s) + ": " + status.getMessage());
    }
    return {};
  }

  struct Range {
    uint64_t end;
    std::string owner;
  };

  const Problem &problem;
  const Plan &plan;
  std::vector<uint32_t> at; ///< position per step
  std::vector<BufferId> root;
  std::vector<uint64_t> rootOffset;
  std::vector<uint32_t> firstAt, lastAt; ///< per root
  std::vector<bool> toEnd;               ///< per root: never dies
  std::vector<bool> lives;               ///< per root: takes bytes
  uint64_t smallestAlignment = kDefaultAlignment;
  std::map<uint64_t, Range> inUse; ///< by first byte
};

} // namespace

Status validate(const Problem &problem, const Plan &plan) { return Validator(problem, plan).run(); }

} // namespace ortc::planning
