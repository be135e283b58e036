// Steps that lose nothing by waiting for the first step that needs them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/Graph.h"

namespace ortc::planning {

/// Every order can be changed, without a higher peak, so that late steps run right before the first of their
/// successors: fills and copies that leave at least as many bytes alive as they can free. Whoever looks through orders
/// only has to choose among the other steps. Where lists of late steps would be long (chains of thousands), none is
/// late.
struct LateSteps {
  explicit LateSteps(const Graph &graph);

  std::vector<bool> isLate; ///< per step
  /// Per step that is not late: the late ones of its segment that it waits for, in a legal order.
  std::vector<std::vector<StepId>> before;
};

} // namespace ortc::planning
