// Looks through all orders of the steps: a better one, or the proof that there is none.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/order/OrderCandidates.h"

namespace ortc::planning {

/// Replaces `order` by better ones until none has a smaller peak than `peak`, and gives true; false when
/// `workLimit`, in steps looked at times their operands, was spent before that. Adds to `work`. `bound`: no
/// order has a smaller peak.
///
/// Method: depth-first over the sets of finished steps, each set once, only by steps that stay below the
/// peak. A ready step after which no more is alive than before runs at once: finishing it early adds bytes to
/// no later step. A late step (LateSteps.h) runs right before the first one that needs it.
bool searchAllOrders(const Graph &graph, Order &order, uint64_t &peak, uint64_t bound, uint64_t workLimit,
                     uint64_t &work);

} // namespace ortc::planning
