// Steps that lose nothing by waiting for the first step that needs them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/Graph.h"

namespace ortc::planning {

/// A step is late when every order can be changed, without a higher peak, so that it runs right before the first of
/// its successors: fills and copies that leave more bytes alive than they can free. Whoever looks through orders
/// only has to choose among the other steps.
struct LateSteps {
  explicit LateSteps(const Graph &graph);

  std::vector<bool> isLate; ///< per step
  std::vector<std::vector<StepId>>
      before; ///< per step that is not late: the late ones that it waits for, those of
              ///< its segment, in a legal order
};

} // namespace ortc::planning
