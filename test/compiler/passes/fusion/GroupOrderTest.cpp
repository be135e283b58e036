// Paths between groups while they are joined.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/fusion/GroupOrder.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace ortc::fusion {
namespace {

/// A graph whose nodes are joined, and paths in it found by walking all of it.
struct Graph {
  std::vector<std::set<unsigned>> successors;

  bool hasIndirectPath(unsigned from, unsigned to) const {
    std::set<unsigned> seen;
    std::vector<unsigned> stack;
    for (unsigned next : successors[from])
      if (next != to)
        stack.push_back(next);
    while (!stack.empty()) {
      unsigned node = stack.back();
      stack.pop_back();
      if (node == to)
        return true;
      if (seen.insert(node).second)
        stack.insert(stack.end(), successors[node].begin(), successors[node].end());
    }
    return false;
  }

  void join(unsigned a, unsigned b) {
    for (std::set<unsigned> &all : successors)
      if (all.erase(b))
        all.insert(a);
    successors[a].insert(successors[b].begin(), successors[b].end());
    successors[b].clear();
    successors[a].erase(a);
  }
};

TEST(GroupOrderTest, FindsTheIndirectPathsOfRandomGraphsWhileTheyAreJoined) {
  int found = 0, joined = 0, put = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    unsigned count = 5 + random() % 36, degree = 1 + random() % 3;
    Graph graph;
    graph.successors.resize(count);
    for (unsigned edge = 0; edge < count * degree; ++edge) {
      unsigned a = random() % count, b = random() % count;
      if (a != b)
        graph.successors[std::min(a, b)].insert(std::max(a, b));
    }
    auto visit = [&](unsigned node, llvm::function_ref<void(unsigned)> reach) {
      for (unsigned next : graph.successors[node])
        reach(next);
    };
    GroupOrder order(count);
    std::vector<unsigned> alive(count);
    for (unsigned i = 0; i < count; ++i)
      alive[i] = i;
    for (int attempt = 0; attempt < 200 && alive.size() > 2; ++attempt) {
      unsigned i = random() % alive.size(), j = random() % alive.size(), a = alive[i], b = alive[j];
      if (a == b)
        continue;
      bool ahead = graph.hasIndirectPath(a, b), back = graph.hasIndirectPath(b, a);
      ASSERT_EQ(order.hasIndirectPath(a, b, visit), ahead) << "seed " << seed << ": " << a << " to " << b;
      ASSERT_EQ(order.hasIndirectPath(b, a, visit), back) << "seed " << seed << ": " << b << " to " << a;
      found += ahead || back;
      if (ahead || back)
        continue;
      if (random() % 4 == 0 && !graph.successors[b].contains(a)) {
        graph.successors[a].insert(b);
        order.putBefore(a, b, visit);
        ++put;
        continue;
      }
      order.join(a, b, visit);
      graph.join(a, b);
      alive.erase(alive.begin() + j);
      ++joined;
    }
  }
  EXPECT_EQ(found, 2172); // seeds decide, and nothing else
  EXPECT_EQ(joined, 1153);
  EXPECT_EQ(put, 267);
}

} // namespace
} // namespace ortc::fusion
