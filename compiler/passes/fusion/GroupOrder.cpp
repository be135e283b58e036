// An order of groups without cycles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/fusion/GroupOrder.h"

#include <algorithm>
#include <numeric>

namespace ortc::fusion {

static constexpr unsigned kNone = ~0u;

GroupOrder::GroupOrder(unsigned count) : nodes(count), places(count), marks(count, 0) {
  std::iota(nodes.begin(), nodes.end(), 0);
  std::iota(places.begin(), places.end(), 0);
}

bool GroupOrder::mark(unsigned from, unsigned to, unsigned end, Successors successors) {
  ++round;
  bool isReached = false;
  stack.assign(1, from);
  while (!stack.empty()) {
    unsigned node = stack.pop_back_val();
    successors(node, [&](unsigned next) {
      if (next == to)
        isReached |= node != from;
      else if (next != from && !isMarked(next) && places[next] < end) {
        marks[next] = round;
        stack.push_back(next);
      }
    });
  }
  return isReached;
}

bool GroupOrder::hasIndirectPath(unsigned from, unsigned to, Successors successors) {
  return places[from] < places[to] && mark(from, to, places[to], successors);
}

void GroupOrder::join(unsigned a, unsigned b, Successors successors) {
  unsigned first = std::min(places[a], places[b]), last = std::max(places[a], places[b]);
  mark(nodes[first], nodes[last], last, successors);
  // What follows the first of the two goes behind the whole, all else before it.
  llvm::SmallVector<unsigned> behind;
  unsigned place = first;
  auto put = [&](unsigned node) {
    nodes[place] = node;
    places[node] = place++;
  };
  for (unsigned i = first + 1; i < last; ++i) {
    unsigned node = nodes[i];
    if (node != kNone && isMarked(node))
      behind.push_back(node);
    else if (node != kNone)
      put(node);
  }
  put(a);
  for (unsigned node : behind)
    put(node);
  while (place <= last)
    nodes[place++] = kNone;
}

void GroupOrder::putBefore(unsigned a, unsigned b, Successors successors) {
  unsigned first = places[b], last = places[a];
  if (last < first)
    return;
  mark(b, a, last, successors);
  // What follows b goes behind a with it.
  llvm::SmallVector<unsigned> behind{b};
  unsigned place = first;
  auto put = [&](unsigned node) {
    nodes[place] = node;
    places[node] = place++;
  };
  for (unsigned i = first + 1; i <= last; ++i) {
    unsigned node = nodes[i];
    if (node != kNone && isMarked(node))
      behind.push_back(node);
    else if (node != kNone)
      put(node);
  }
  for (unsigned node : behind)
    put(node);
  while (place <= last)
    nodes[place++] = kNone;
}

} // namespace ortc::fusion
