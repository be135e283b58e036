// What pack() can take: everything the solvers rely on, checked before they run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Arithmetic.h"
#include "compiler/planning/packing/Packing.h"

#include <algorithm>
#include <map>

namespace ortc::planning {

static Status refuse(const std::string &why) { return Status::refusal(why); }

static Status checkPieces(const PackingProblem &problem, uint32_t i, uint64_t &extent) {
  const std::vector<Piece> &pieces = problem.items[i].pieces;
  std::string name = "item " + std::to_string(i);
  if (pieces.empty())
    return refuse(name + " has no piece");
  extent = 0;
  uint32_t reach = 0;
  for (const Piece &piece : pieces) {
    if (piece.begin >= piece.end || piece.begin < reach || piece.end > problem.sections)
      return refuse(name + " has a piece from " + std::to_string(piece.begin) + " to " +
                    std::to_string(piece.end) + " but it must lie between " + std::to_string(reach) +
                    " and " + std::to_string(problem.sections) + " and not be empty");
    reach = piece.end;
    uint64_t top = piece.low;
    if (piece.size == 0 || !addBytes(top, piece.size))
      return refuse(name + " has a piece of " + std::to_string(piece.size) + " bytes from byte " +
                    std::to_string(piece.low) + " on but a piece has at least 1 and ends at " +
                    std::to_string(kMaxTotalBytes) + " or below");
    extent = std::max(extent, top);
  }
  return {};
}

/// Sweeps over time with the bytes that fixed items take.
static Status checkFixedItems(const PackingProblem &problem) {
  struct Event {
    uint32_t time;
    bool begins; // ends come first
    uint32_t item;
    const Piece *piece;
  };
  std::vector<Event> events;
  for (uint32_t i = 0; i < problem.items.size(); ++i)
    if (problem.items[i].fixed != kAnywhere)
      for (const Piece &piece : problem.items[i].pieces) {
        events.push_back({piece.begin, true, i, &piece});
        events.push_back({piece.end, false, i, &piece});
      }
  std::sort(events.begin(), events.end(), [](const Event &x, const Event &y) {
    if (x.time != y.time)
      return x.time < y.time;
    return x.begins != y.begins ? x.begins < y.begins : x.item < y.item;
  });
  struct Owner {
    uint64_t end;
    uint32_t item;
  };
  std::map<uint64_t, Owner> owners; // by first byte
  for (const Event &event : events) {
    uint64_t first = problem.items[event.item].fixed + event.piece->low, end = first + event.piece->size;
    if (!event.begins) {
      owners.erase(first);
      continue;
    }
    auto above = owners.upper_bound(first);
    auto meets = above != owners.end() && above->first < end ? above : owners.end();
    if (above != owners.begin() && std::prev(above)->second.end > first)
      meets = std::prev(above);
    if (meets != owners.end())
      return refuse("items " + std::to_string(std::min(meets->second.item, event.item)) + " and " +
                    std::to_string(std::max(meets->second.item, event.item)) +
                    " have fixed offsets at which they overlap at time " + std::to_string(event.time));
    owners[first] = {end, event.item};
  }
  return {};
}

Status checkPacking(const PackingProblem &problem) {
  if (problem.items.size() >= UINT32_MAX / 2)
    return Status::refusal("there are " + std::to_string(problem.items.size()) + " items; at most " +
                           std::to_string(UINT32_MAX / 2 - 1) + " can be packed");
  uint64_t total = 0, highest = 0;
  for (uint32_t i = 0; i < problem.items.size(); ++i) {
    const Item &item = problem.items[i];
    uint64_t extent = 0;
    ORTC_TRY(checkPieces(problem, i, extent));
    if (item.alignment == 0 || (item.alignment & (item.alignment - 1)) != 0 || item.alignment > kMaxAlignment)
      return refuse("item " + std::to_string(i) + " has an alignment of " + std::to_string(item.alignment) +
                    " but it must be a power of two up to " + std::to_string(kMaxAlignment));
    if (item.fixed != kAnywhere && item.fixed % item.alignment != 0)
      return refuse("item " + std::to_string(i) + " has a fixed offset of " + std::to_string(item.fixed) +
                    ", which breaks its alignment of " + std::to_string(item.alignment));
    for (uint64_t offset : {item.fixed, item.hint})
      if (offset != kAnywhere)
        highest = std::max(highest, offset);
    if (!addBytes(total, extent))
      return Status::refusal("the sum of all sizes is above " + std::to_string(kMaxTotalBytes));
  }
  if (!addBytes(total, highest))
    return Status::refusal("the sum of all sizes on top of the highest offset, " + std::to_string(highest) +
                           ", is above " + std::to_string(kMaxTotalBytes));
  return checkFixedItems(problem);
}

} // namespace ortc::planning
