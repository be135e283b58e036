// Plays a schedule in which values are dropped and made again, and counts its bytes and time exactly.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/order/OrderCandidates.h"
#include "compiler/planning/recompute/RecomputeGraph.h"

namespace ortc::planning {

/// Between two uses of a value in the base order, and behind its last one, lies a gap. Where a gap begins the
/// value is kept or dropped; what is dropped is made again when a step wants it, with whatever that needs.
/// What is made inside a gap, because another value needs it, is likewise kept to the next use or dropped at
/// once. What nobody wants again is dead anyway: keeping it costs nothing.
using GapId = uint32_t;
enum : uint8_t { kKeepAtBegin = 1, kKeepInside = 2 };
using KeptGaps = std::vector<uint8_t>; ///< per gap: which of the two

/// A gap with the positions in the base order around it.
struct Gap {
  ValueId value = 0;
  uint32_t begin = 0;   ///< of the use before it
  uint32_t end = kNone; ///< of the next use; kNone behind the last one
};

class Replay {
public:
  Replay(const RecomputeGraph &graph, Order base);

  const std::vector<Gap> &gaps() const { return allGaps; }
  /// The gap of `value` at a position of the base order; kNone before its first use.
  GapId gapAt(ValueId value, uint32_t position) const;
  const Order &baseOrder() const { return base; }

  struct Result {
    bool legal = false;
    uint64_t peak = 0, time = 0;
    uint32_t peakRun = 0;      ///< first run at which `peak` bytes are in use
    uint32_t peakPosition = 0; ///< of the step of the base order that it runs for
  };
  /// O(operands of all runs).
  Result run(const KeptGaps &kept);

  /// Of the last run(): values that are alive at its peak but not used there, each once.
  std::vector<ValueId> idleAtPeak() const;
  /// Of the last run(): its schedule.
  std::vector<StepRun> runs(const Problem &problem) const;
  /// Operands looked at so far.
  uint64_t work() const { return workDone; }

private:
  /// A value as one run makes it. What cannot be made again has one instance, of the number of its value.
  struct Instance {
    ValueId value = 0;
    uint32_t maker = kNone;            ///< run
    uint32_t birth = kNone, death = 0; ///< first and last run that uses it; birth is kNone where none does
  };
  struct Run {
    StepId step = 0;
    uint32_t position = 0;                  ///< in the base order
    uint32_t firstRead = 0, firstWrite = 0; ///< in `readInstances` and `writeInstances`
  };

  void touch(uint32_t instance, uint32_t run);
  bool make(ValueId value, uint32_t position);
  bool emit(StepId step, uint32_t position, bool isFirst);
  void delaySinks();
  void touchAll();
  uint64_t savedInPlace(StepId id, uint32_t run, const uint32_t *reads);
  Result measure();

  const RecomputeGraph &graph;
  Order base;
  std::vector<Gap> allGaps;
  std::vector<uint32_t> firstGap; ///< per value, and the end
  std::vector<GapId> stepGaps;    ///< the gaps of what can be made again, by the position at which they begin
  std::vector<uint32_t> firstStepGap; ///< per position: among `stepGaps`, and the end
  std::vector<uint64_t> bytesOf;      ///< per value
  size_t runLimit;
  std::vector<StepId> lastUse; ///< for matchInPlace()
  // What a run() begins with, per value.
  std::vector<Instance> firstInstances;
  std::vector<uint32_t> firstCurrent;

  // Of one run().
  std::vector<Run> sequence;
  std::vector<uint32_t> readInstances, writeInstances;
  std::vector<Instance> instances;
  std::vector<uint32_t> current;     ///< per value: instance at hand, kNone if dropped
  std::vector<GapId> gapOf;          ///< per value: where the base order stands
  std::vector<ValueId> made;         ///< for the present step
  std::vector<uint32_t> ran;         ///< per step: its first run, kNone before
  std::vector<uint32_t> delayedTo;   ///< per step: the run that it has to follow, kNone
  std::vector<uint64_t> born, freed; ///< per run: bytes of the instances that begin and end there
  bool anyDelayed = false;
  Result last;
  uint64_t workDone = 0;
};

} // namespace ortc::planning
