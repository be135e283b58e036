// The judge of packings: checks offsets against the problem, with none of the solvers' code.
//
// Goes through the times at which bytes are taken and given back, with a map of the bytes in use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/packing/Packing.h"

#include <algorithm>
#include <map>

namespace ortc::planning {

Status validatePacking(const PackingProblem &problem, const std::vector<uint64_t> &offsets, uint64_t height) {
  constexpr uint32_t kNobody = UINT32_MAX;
  auto refuse = [](std::string why) { return Status::failure(std::move(why)); };
  if (offsets.size() != problem.items.size())
    return refuse("there are " + std::to_string(offsets.size()) + " offsets for " +
                  std::to_string(problem.items.size()) + " items");
  struct Event {
    uint32_t time;
    bool begins; // ends come first: lifetimes are half open
    uint32_t item, piece;
    bool operator<(const Event &other) const {
      return time != other.time ? time < other.time : begins < other.begins;
    }
  };
  std::vector<Event> events;
  for (uint32_t i = 0; i < problem.items.size(); ++i) {
    if (problem.items[i].fixed != kAnywhere && offsets[i] != problem.items[i].fixed)
      return refuse("item " + std::to_string(i) + " at offset " + std::to_string(offsets[i]) +
                    " is not at its fixed offset of " + std::to_string(problem.items[i].fixed));
    if (offsets[i] % problem.items[i].alignment != 0)
      return refuse("item " + std::to_string(i) + " at offset " + std::to_string(offsets[i]) +
                    " breaks its alignment of " + std::to_string(problem.items[i].alignment));
    for (uint32_t k = 0; k < problem.items[i].pieces.size(); ++k) {
      const Piece &piece = problem.items[i].pieces[k];
      if (offsets[i] > height || piece.low > height - offsets[i] ||
          piece.size > height - offsets[i] - piece.low)
        return refuse("item " + std::to_string(i) + " of " + std::to_string(piece.low + piece.size) +
                      " bytes at offset " + std::to_string(offsets[i]) + " passes the height of " +
                      std::to_string(height));
      events.push_back({piece.begin, true, i, k});
      events.push_back({piece.end, false, i, k});
    }
  }
  std::sort(events.begin(), events.end());
  std::map<uint64_t, std::pair<uint64_t, uint32_t>> inUse; // first byte -> end, item
  for (const Event &event : events) {
    const Piece &piece = problem.items[event.item].pieces[event.piece];
    uint64_t first = offsets[event.item] + piece.low, end = first + piece.size;
    if (!event.begins) {
      inUse.erase(first);
      continue;
    }
    auto next = inUse.lower_bound(first);
    uint32_t other = kNobody;
    if (next != inUse.end() && next->first < end)
      other = next->second.second;
    else if (next != inUse.begin() && std::prev(next)->second.first > first)
      other = std::prev(next)->second.second;
    if (other != kNobody)
      return refuse("items " + std::to_string(other) + " and " + std::to_string(event.item) +
                    " overlap at time " + std::to_string(event.time));
    inUse[first] = {end, event.item};
  }
  return {};
}

} // namespace ortc::planning
