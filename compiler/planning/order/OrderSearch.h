// Chooses the order of the steps: candidates, lower bound, local search.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/order/OrderCandidates.h"

namespace ortc::planning {

struct OrderChoice {
  Order order;
  Order released; ///< the better of source order and source order with gradient release
  uint64_t peak = 0;
  uint64_t sourcePeak = 0; ///< peak of `released`
  uint64_t plainSourcePeak = 0;
  uint64_t bound = 0; ///< no order has a smaller peak
  bool boundComplete = true;
  std::string source;
  uint64_t searchWork = 0, boundWork = 0;
};

/// The best order found within the limits of `options`; its peak is never above that of `released`.
OrderChoice chooseOrder(const Graph &graph, const PlanOptions &options);

} // namespace ortc::planning
