// What a training tells of itself while it runs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "engine/report.h"
#include "support/Status.h"

namespace ortc::engine {

/// Whoever wants to know. The calls come from the thread that trains, in the order of what they tell; a failure ends
/// the training, as one of its own does.
class Observer {
public:
  virtual ~Observer() = default;
  /// A training step.
  virtual Status tellStep(const StepEvent &event) = 0;
  /// Anything else that the metrics file has a line for: "eval", "best", "plateau", "early_stop", "save", "not_finite",
  /// "watch", "interrupted".
  virtual Status tell(const std::string &event, const EventFields &fields) = 0;
  /// The end of an epoch, or of the part of it that was trained.
  virtual Status endEpoch(const EpochEnd &end) = 0;
  /// After a step and its events.
  virtual void progress(const Progress &) {}
  /// Between the slices of an evaluation.
  virtual Status poll() { return Status(); }

  /// A line for people.
  virtual void line(const std::string &) {}
  virtual void note(const std::string &text) = 0;
  virtual void warn(const std::string &) {}
  /// A note about what follows evaluations: that it begins anew, or has ended.
  virtual void noteFollowing(const std::string &text) { note(text); }
};

} // namespace ortc::engine
