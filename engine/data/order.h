// In which order an epoch takes its items.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ortc::engine {

/// A permutation that depends on nothing but the arguments of its constructor, so that a resumed run needs no more than
/// seed, epoch and place. One of many parts is never there as a whole: parts change places, and what then follows each
/// other is mixed within windows, of which one is kept. Not for several threads at once.
class Order {
public:
  /// items[place].
  explicit Order(std::vector<int64_t> items) : items(std::move(items)) {}
  /// `parts`: the number of items in each. Windows are of so many places; the last one may be shorter.
  Order(uint64_t seed, int64_t epoch, const std::vector<int64_t> &parts, int64_t window);

  int64_t operator[](int64_t place) const {
    if (place < first || place - first >= int64_t(items.size()))
      fill(place / window);
    return items[size_t(place - first)];
  }

private:
  void fill(int64_t number) const;

  struct Part {
    int64_t place, item; ///< where it begins, in the order and in the data
  };
  mutable std::vector<int64_t> items; ///< of the window
  mutable int64_t first = 0;          ///< place of it
  std::vector<Part> parts;            ///< in their order; ends with a place behind all
  int64_t window = 1;
  uint64_t seed = 0;
  int64_t epoch = 0;
};

/// All items, mixed: support/Shuffle.h.
std::vector<int64_t> shuffle(uint64_t seed, int64_t epoch, int64_t items);

} // namespace ortc::engine
