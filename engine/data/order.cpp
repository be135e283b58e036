// In which order an epoch takes its items.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/data/order.h"

#include <algorithm>

#include "support/Shuffle.h"

namespace ortc::engine {

std::vector<int64_t> shuffle(uint64_t seed, int64_t epoch, int64_t items) {
  std::vector<int64_t> order(static_cast<size_t>(items));
  ortc::shuffle(seed, epoch, items, order.data());
  return order;
}

Order::Order(uint64_t seed, int64_t epoch, const std::vector<int64_t> &counts, int64_t window)
    : window(window), seed(seed), epoch(epoch) {
  std::vector<int64_t> begins(counts.size());
  int64_t item = 0, place = 0;
  for (size_t i = 0; i < counts.size(); item += counts[i++])
    begins[i] = item;
  for (int64_t part : shuffle(seed, epoch, int64_t(counts.size()))) {
    parts.push_back({place, begins[size_t(part)]});
    place += counts[size_t(part)];
  }
  parts.push_back({place, 0});
}

/// Windows of an epoch have orders of their own: the seed of each is mixed with its number.
void Order::fill(int64_t number) const {
  first = number * window;
  int64_t end = std::min(first + window, parts.back().place);
  std::vector<int64_t> mixed =
      shuffle(mixBits(seed + uint64_t(number + 1) * kGoldenGamma), epoch, end - first);
  items.clear();
  auto part = std::upper_bound(parts.begin(), parts.end(), first,
                               [](int64_t place, const Part &each) { return place < each.place; }) -
              1;
  std::vector<int64_t> inTurn;
  inTurn.reserve(size_t(end - first));
  for (int64_t place = first; place < end; ++place) {
    while (place >= part[1].place)
      ++part;
    inTurn.push_back(part->item + place - part->place);
  }
  for (int64_t place : mixed)
    items.push_back(inTurn[size_t(place)]);
}

} // namespace ortc::engine
