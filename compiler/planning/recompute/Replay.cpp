// Plays a schedule in which values are dropped and made again, and counts its bytes and time exactly.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/recompute/Replay.h"

#include "compiler/planning/Liveness.h"

#include <algorithm>

namespace ortc::planning {

Replay::Replay(const RecomputeGraph &graph, Order baseOrder)
    : graph(graph), base(std::move(baseOrder)), lastUse(graph.maker.size(), kNone) {
  std::vector<std::vector<uint32_t>> uses(graph.maker.size());
  std::vector<std::vector<GapId>> gapsAt(base.size());
  for (uint32_t p = 0; p < base.size(); ++p)
    for (ValueId v : graph.graph.steps[base[p]].values)
      uses[v].push_back(p);
  for (ValueId v = 0; v < uses.size(); ++v) {
    firstGap.push_back(uint32_t(allGaps.size()));
    for (size_t i = 0; i < uses[v].size(); ++i) {
      if (graph.maker[v] != kNone)
        gapsAt[uses[v][i]].push_back(GapId(allGaps.size()));
      allGaps.push_back({v, uses[v][i], i + 1 < uses[v].size() ? uses[v][i + 1] : kNone});
    }
  }
  firstGap.push_back(uint32_t(allGaps.size()));
  for (const std::vector<GapId> &gaps : gapsAt) {
    firstStepGap.push_back(uint32_t(stepGaps.size()));
    stepGaps.insert(stepGaps.end(), gaps.begin(), gaps.end());
  }
  firstStepGap.push_back(uint32_t(stepGaps.size()));
  for (ValueId v = 0; v < graph.maker.size(); ++v) {
    bytesOf.push_back(graph.graph.values[v].bytes);
    firstInstances.push_back({v, kNone, kNone, 0});
    firstCurrent.push_back(graph.maker[v] == kNone ? v : kNone);
  }
  runLimit = 8 * base.size() + 64;
}

void Replay::touch(uint32_t instance, uint32_t run) {
  Instance &touched = instances[instance];
  if (touched.birth == kNone)
    touched.birth = run;
  touched.death = run;
}

GapId Replay::gapAt(ValueId value, uint32_t position) const {
  auto begin = allGaps.begin() + firstGap[value], end = allGaps.begin() + firstGap[value + 1];
  auto after = std::partition_point(begin, end, [&](const Gap &gap) { return gap.begin <= position; });
  return after == begin ? kNone : GapId(after - allGaps.begin() - 1);
}

bool Replay::emit(StepId id, uint32_t position, bool isFirst) {
  if (sequence.size() >= runLimit)
    return false;
  if (!isFirst && graph.graph.steps[id].segment != graph.graph.steps[base[position]].segment)
    return false;
  const RecomputeStep &step = graph.steps[id];
  uint32_t number = uint32_t(sequence.size());
  sequence.push_back({id, position, uint32_t(readInstances.size()), uint32_t(writeInstances.size())});
  for (ValueId v : step.reads) {
    readInstances.push_back(current[v]);
    touch(current[v], number);
  }
  for (ValueId v : step.writes) {
    bool isPinned = graph.maker[v] == kNone;
    uint32_t instance = v;
    if (!isPinned || !isFirst) {
      instance = uint32_t(instances.size());
      instances.push_back({v, number, number, number});
    } else {
      instances[v].maker = number;
      touch(v, number);
    }
    writeInstances.push_back(instance);
    if (!isPinned) { // who reads it from now on takes the newest
      if (current[v] == kNone)
        made.push_back(v);
      current[v] = instance;
    }
  }
  workDone += 4 + step.reads.size() + 2 * step.writes.size();
  if (isFirst) {
    ran[id] = number;
    return true;
  }
  for (StepId later : step.blocked)
    if (ran[later] != kNone) {
      if (!graph.steps[later].isSink)
        return false;
      delayedTo[later] = number;
      anyDelayed = true;
    }
  return true;
}

bool Replay::make(ValueId value, uint32_t position) {
  if (current[value] != kNone)
    return true;
  StepId maker = graph.maker[value];
  for (ValueId v : graph.steps[maker].reads)
    if (!make(v, position))
      return false;
  return emit(maker, position, /*isFirst=*/false);
}

Replay::Result Replay::run(const KeptGaps &kept) {
  size_t values = graph.maker.size();
  sequence.clear();
  readInstances.clear();
  writeInstances.clear();
  instances = firstInstances;
  current = firstCurrent;
  gapOf.assign(values, kNone);
  ran.assign(graph.steps.size(), kNone);
  delayedTo.assign(graph.steps.size(), kNone);
  anyDelayed = false;
  last = Result();
  auto dropUnless = [&](ValueId v, uint8_t how) {
    if (!(kept[gapOf[v]] & how))
      current[v] = kNone;
  };
  for (uint32_t p = 0; p < base.size(); ++p) {
    made.clear();
    for (ValueId v : graph.steps[base[p]].reads)
      if (!make(v, p))
        return last;
    if (!emit(base[p], p, /*isFirst=*/true))
      return last;
    for (ValueId v : made)
      if (gapOf[v] != kNone && allGaps[gapOf[v]].end != p) // not what the step itself uses
        dropUnless(v, kKeepInside);
    for (uint32_t i = firstStepGap[p]; i < firstStepGap[p + 1]; ++i) {
      ValueId v = allGaps[stepGaps[i]].value;
      gapOf[v] = stepGaps[i];
      dropUnless(v, kKeepAtBegin);
    }
  }
  if (anyDelayed)
    delaySinks();
  return last = measure();
}

/// Moves every sink behind the repeated steps that it has to follow.
void Replay::delaySinks() {
  std::vector<std::vector<uint32_t>> behind(sequence.size());
  std::vector<bool> moves(sequence.size(), false);
  for (StepId s = 0; s < delayedTo.size(); ++s)
    if (delayedTo[s] != kNone) {
      behind[delayedTo[s]].push_back(ran[s]);
      moves[ran[s]] = true;
    }
  std::vector<Run> moved;
  std::vector<uint32_t> number(sequence.size());
  auto add = [&](uint32_t old) {
    number[old] = uint32_t(moved.size());
    moved.push_back(sequence[old]);
  };
  for (uint32_t i = 0; i < sequence.size(); ++i) {
    if (!moves[i])
      add(i);
    std::sort(behind[i].begin(), behind[i].end());
    for (uint32_t sink : behind[i])
      add(sink);
  }
  sequence = std::move(moved);
  for (Instance &instance : instances)
    if (instance.maker != kNone)
      instance.maker = number[instance.maker];
  touchAll();
}

/// Finds out again which runs use an instance first and last.
void Replay::touchAll() {
  for (Instance &instance : instances)
    instance.birth = kNone;
  for (uint32_t r = 0; r < sequence.size(); ++r) {
    const RecomputeStep &step = graph.steps[sequence[r].step];
    for (uint32_t i = 0; i < step.reads.size(); ++i)
      touch(readInstances[sequence[r].firstRead + i], r);
    for (uint32_t i = 0; i < step.writes.size(); ++i)
      touch(writeInstances[sequence[r].firstWrite + i], r);
  }
}

/// Bytes that a run saves by writing over what dies there.
uint64_t Replay::savedInPlace(StepId id, uint32_t run, const uint32_t *reads) {
  const RecomputeStep &step = graph.steps[id];
  const InPlaceOperands *largest = nullptr;
  bool isOneRead = true, isOneWrite = true;
  for (const InPlaceOperands &pair : step.inPlace) {
    if (instances[reads[pair.read]].death != run)
      continue;
    if (!largest)
      largest = &pair;
    isOneRead &= pair.read == largest->read;
    isOneWrite &= pair.write == largest->write;
  }
  if (!largest || isOneRead || isOneWrite) // of several, only one can be taken
    return largest ? largest->bytes : 0;
  for (uint32_t i = 0; i < step.reads.size(); ++i)
    lastUse[step.reads[i]] = instances[reads[i]].death == run ? id : kNone;
  return matchInPlace(graph.graph.steps[id], id, lastUse);
}

Replay::Result Replay::measure() {
  Result result;
  result.legal = true;
  uint32_t end = uint32_t(sequence.size());
  uint64_t live = 0;
  born.assign(end, 0);
  freed.assign(end, 0);
  for (ValueId v = 0; v < bytesOf.size(); ++v) {
    const Value &value = graph.graph.values[v];
    Instance &instance = instances[v];
    bool isUsed = instance.birth != kNone;
    if (value.atStart) { // before the first run
      live += value.bytes;
      instance.birth = kNone;
    } else if (isUsed) {
      born[instance.birth] += value.bytes;
    }
    if (value.atEnd)
      instance.death = kNone;
    else if (isUsed)
      freed[instance.death] += value.bytes;
  }
  for (size_t i = bytesOf.size(); i < instances.size(); ++i) {
    born[instances[i].birth] += bytesOf[instances[i].value];
    freed[instances[i].death] += bytesOf[instances[i].value];
  }
  for (uint32_t r = 0; r < end; ++r) {
    const Run &run = sequence[r];
    const RecomputeStep &step = graph.steps[run.step];
    result.time += step.time;
    live += born[r];
    uint64_t used = live + graph.graph.steps[run.step].workspace() -
                    savedInPlace(run.step, r, readInstances.data() + run.firstRead);
    if (used > result.peak) {
      result.peak = used;
      result.peakRun = r;
      result.peakPosition = run.position;
    }
    live -= freed[r];
  }
  workDone += 2 * (readInstances.size() + writeInstances.size()) + instances.size();
  return result;
}

std::vector<ValueId> Replay::idleAtPeak() const {
  std::vector<ValueId> idle;
  for (const Instance &instance : instances)
    if (graph.maker[instance.value] != kNone && instance.birth < last.peakRun &&
        instance.death > last.peakRun && instance.death != kNone)
      idle.push_back(instance.value);
  std::sort(idle.begin(), idle.end());
  idle.erase(std::unique(idle.begin(), idle.end()), idle.end());
  const std::vector<ValueId> &used = graph.steps[sequence[last.peakRun].step].reads;
  std::erase_if(idle, [&](ValueId v) { return std::binary_search(used.begin(), used.end(), v); });
  return idle;
}

std::vector<StepRun> Replay::runs(const Problem &problem) const {
  std::vector<StepRun> result;
  for (const Run &run : sequence) {
    StepRun next{run.step, {}};
    const std::vector<ValueId> &reads = graph.steps[run.step].reads;
    for (BufferId b : problem.steps[run.step].reads) {
      ValueId v = graph.graph.valueOf[b];
      uint32_t source = kNone;
      if (problem.buffers[b].bytes > 0 && graph.maker[v] != kNone) {
        size_t at = std::lower_bound(reads.begin(), reads.end(), v) - reads.begin();
        source = instances[readInstances[run.firstRead + at]].maker;
      }
      next.sources.push_back(source);
    }
    result.push_back(std::move(next));
  }
  return result;
}

} // namespace ortc::planning
