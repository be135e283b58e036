// What in the data of a step has made it fail.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/session/session.h"

namespace ortc::engine {

/// A slice of the data, which the session still has.
struct FailedStep {
  Session &session;
  const Entry &entry;
  const std::vector<LossInfo> &losses;
  const Batches *batches; ///< null: the slice came as it is, and nobody knows where it is from
  int64_t slice;
  const Order *order; ///< null: that of the file

  /// Where an element of an input of `shape` comes from.
  std::string describeElement(size_t input, int64_t element, const Shape &shape) const;
};

/// For the message of a step that failed for an index out of range in one of its inputs: "; it is from sample 3 of
/// FILE, ...", and what a loss asks of its labels. "" where it is no such message, or an index that the model computes.
std::string describeIndex(const std::string &message, const FailedStep &step);

/// The reason that labels are for a loss that is not finite: "; every label in ... is ignored", or of ctc "...; its 3
/// labels need 5 frames". "" where they are none.
std::string describeLabels(const FailedStep &step);

} // namespace ortc::engine
