// wgmma: products of tiles in shared memory by the four warps of a group, and what orders them.
//
// Each warp makes the 16 rows of the result that it holds. A descriptor says where a tile begins and how its
// chunks of 16 bytes are laid out: neighbours along the depth, or the other way round. The swizzle exchanges
// chunks by a xor with bits of the address. Tiles are read through another proxy than st.shared and cp.async
// write through, so a fence.proxy.async must stand in between: of the thread that wrote, or of the warp after
// a barrier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>

#include "test/gpu/emulator/lanes/Access.h"
#include "test/gpu/emulator/lanes/Lists.h"
#include "test/gpu/emulator/lanes/TensorSums.h"
#include "test/gpu/emulator/run/PendingProducts.h"

namespace ortc::emulator {
namespace {

constexpr uint32_t kDepth = 16, kChunk = 16, kPoison = ~0u;
constexpr const char kBadDescriptor[] = "a descriptor with a base offset, which is not supported";

/// Where chunks of 16 bytes of a tile are. The layouts are those of the PTX ISA ("Strides", "canonical
/// layouts"), which CUTLASS has in units of chunks (make_gmma_desc).
struct Descriptor {
  uint64_t start, leading, stride;
  uint32_t swizzle, base;

  explicit Descriptor(uint64_t bits)
      : start((bits & 0x3fff) << 4), leading((bits >> 16 & 0x3fff) << 4), stride((bits >> 32 & 0x3fff) << 4),
        swizzle(uint32_t(bits >> 62)), base(uint32_t(bits >> 49 & 7)) {}

  /// Chunks of a line of 128, 64 or 32 bytes, which are exchanged.
  uint32_t chunks() const { return 16u >> swizzle; }
  uint64_t swizzled(uint64_t plain) const { return plain ^ (plain >> 7 & (chunks() - 1)) << 4; }

  /// Neighbours along the depth, of a row: `half` is 0 or 1.
  uint64_t chunk(uint32_t row, uint32_t half) const {
    if (swizzle == 0)
      return start + row / 8 * stride + row % 8 * kChunk + half * leading;
    return swizzled(start + row / 8 * stride + row % 8 * chunks() * kChunk + half * kChunk);
  }

  /// Eight neighbouring rows at one step of the depth.
  uint64_t turnedChunk(uint32_t eighth, uint32_t step) const {
    if (swizzle == 0)
      return start + eighth * stride + step % 8 * kChunk + step / 8 * leading;
    return swizzled(start + eighth / chunks() * leading + eighth % chunks() * kChunk + step / 8 * stride +
                    step % 8 * chunks() * kChunk);
  }
};

/// Lanes of a warp that fenced after `from` and before `to`.
uint32_t fencedLanes(const Block &block, uint32_t warp, uint32_t from, uint32_t to) {
  const std::vector<ProxyFence> &fences = block.fences[warp];
  auto fence = std::upper_bound(fences.begin(), fences.end(), from,
                                [](uint32_t time, const ProxyFence &each) { return time < each.time; });
  uint32_t lanes = 0;
  for (; fence != fences.end() && fence->time < to; ++fence)
    lanes |= fence->lanes;
  return lanes;
}

/// Whether writes of these bytes were fenced: by their thread before the barrier that showed them, or by this
/// warp behind it.
bool areFenced(Warp &warp, uint64_t address) {
  const Block &block = *warp.block;
  for (uint64_t at = address; at < address + kChunk; at += uint64_t(1) << block.sharedGranule) {
    const SharedAccess write = block.writes[at >> block.sharedGranule];
    const uint32_t time = write >> kTimeShift, thread = write & kThreadMask, writer = thread / kLanes;
    if (!write)
      continue;
    const uint32_t shown = writer == warp.id ? kNone : warp.blockTime;
    if (!(fencedLanes(block, writer, time, shown) >> thread % kLanes & 1) &&
        !(time < warp.blockTime && fencedLanes(block, warp.id, warp.blockTime, kNone) == kAllLanes))
      return false;
  }
  return true;
}

/// Reads a chunk for `lane`; false after a report.
bool readChunk(Warp &warp, const Instruction &i, uint32_t lane, uint64_t address, uint16_t *to) {
  Block &block = *warp.block;
  if (address + kChunk > block.sharedBytes ||
      !haveState(block.sharedState + address, kChunk, block.readable)) {
    reportAccess(warp, i, lane, Space::Shared, address, kChunk, Touch::Read);
    return false;
  }
  if (block.isChecked) {
    const uint32_t granule = block.sharedGranule;
    if (touchShared<Touch::Read>(warp, uint32_t(address >> granule), kChunk >> granule,
                                 warp.id << kWarpShift | lane | kManyLanes, 31) != kNone) {
      reportRace(warp, i, lane, Space::Shared, address, kChunk, Touch::Read);
      return false;
    }
    if (!areFenced(warp, address)) {
      report(warp, i, lane, Failure::LaunchFailed,
             "reads a tile that no fence.proxy.async made visible to it");
      return false;
    }
  }
  std::memcpy(to, block.shared + address, kChunk);
  return true;
}

/// Reads `rows` rows from `first` on, whole eighths.
bool readRows(Warp &warp, const Instruction &i, const Descriptor &tile, bool isTurned, uint32_t first,
              uint32_t rows, uint16_t (*to)[kDepth]) {
  if (isTurned) {
    for (uint32_t row = 0; row < rows; row += 8)
      for (uint32_t step = 0; step < kDepth; ++step) {
        uint16_t neighbours[8];
        if (!readChunk(warp, i, step, tile.turnedChunk((first + row) / 8, step), neighbours))
          return false;
        for (uint32_t k = 0; k < 8; ++k)
          to[row + k][step] = neighbours[k];
      }
    return true;
  }
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t half = 0; half < 2; ++half)
      if (!readChunk(warp, i, (first + row) % kLanes, tile.chunk(first + row, half), to[row] + half * 8))
        return false;
  return true;
}

uint32_t sumsOf(const Instruction &i) { return i.count * 4u; }

/// Makes a product; its sums are in `cells`. False after a report.
template <class T> bool multiply(Warp &warp, const PendingProduct &product, std::vector<uint32_t> &cells) {
  const Instruction &i = *product.instruction;
  Factors<T, kDepth> factors;
  if (i.a == kNone) {
    for (uint32_t r = 0; r < 4; ++r)
      for (uint32_t g = 0; g < 8; ++g)
        std::memcpy(&factors.rawA[g + (r & 1) * 8][(r >> 1) * 8], &product.cells[r * kLanes + 4 * g], 16);
  } else if (!readRows(warp, i, Descriptor(product.a), i.detail & kRowsTurned, warp.id % 4 * kRows, kRows,
                       factors.rawA)) {
    return false;
  }
  factors.decodeA();
  const Descriptor b(product.b);
  for (uint32_t tile = 0; tile < i.count; ++tile) {
    if (!readRows(warp, i, b, i.detail & kColumnsTurned, tile * kColumns, kColumns, factors.rawB))
      return false;
    factors.decodeB();
    alignas(32) float d[kRows][kColumns] = {};
    uint32_t *sums = &cells[tile * 4 * kLanes];
    auto place = [&](uint32_t r, uint32_t l) -> float & {
      return d[l / 4 + (r >> 1) * 8][l % 4 * 2 + (r & 1)];
    };
    for (uint32_t r = 0; r < 4 && product.addsToSum; ++r)
      for (uint32_t l = 0; l < kLanes; ++l)
        place(r, l) = bitCast<float>(sums[r * kLanes + l]);
    addProducts<T, kDepth, false, 1>(factors, d);
    for (uint32_t r = 0; r < 4; ++r)
      for (uint32_t l = 0; l < kLanes; ++l)
        sums[r * kLanes + l] = bitsOf(place(r, l));
  }
  return true;
}

/// The accumulator of these registers, new or in the making; null after a report.
PendingAccumulator *findAccumulator(Warp &warp, const Instruction &i) {
  PendingProducts &pending = *warp.products;
  const uint32_t *places = warp.lists + i.list, count = sumsOf(i);
  for (PendingAccumulator &each : pending.accumulators) {
    if (!each.users)
      continue;
    if (each.count == count && std::equal(places, places + count, each.places))
      return &each;
    for (uint32_t k = 0; k < count; ++k)
      if (std::find(each.places, each.places + each.count, places[k]) != each.places + each.count) {
        report(warp, i, 0, Failure::LaunchFailed, "some of its sums belong to another product in flight");
        return nullptr;
      }
  }
  if (!pending.isFenced) {
    report(warp, i, 0, Failure::LaunchFailed, "no wgmma.fence stands between its registers and it");
    return nullptr;
  }
  auto unused = std::find_if(pending.accumulators.begin(), pending.accumulators.end(),
                             [](const PendingAccumulator &each) { return !each.users; });
  if (unused == pending.accumulators.end())
    unused = pending.accumulators.insert(unused, PendingAccumulator());
  *unused = {places, count, {}, 0};
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t *cells = warp.cells<uint32_t>(places[k]);
    unused->cells.insert(unused->cells.end(), cells, cells + kLanes);
    std::fill_n(cells, kLanes, kPoison); // whoever reads them too early gets NaNs
  }
  return &*unused;
}

/// The list: registers of sums, then those of A where a is none. a, b: descriptors; c: whether to add; count:
/// columns / 8.
void beginProduct(Warp &warp, const Instruction &i, uint32_t) {
  if (warp.block->launch->threads() % 128)
    return report(warp, i, 0, Failure::LaunchFailed, "the block is not one of whole groups of four warps");
  const uint32_t *adds = warp.cells<uint32_t>(i.c);
  for (uint32_t l = 1; l < kLanes; ++l)
    if (adds[l] != adds[0] || warp.cells<uint64_t>(i.b)[l] != warp.cells<uint64_t>(i.b)[0])
      return report(warp, i, l, Failure::LaunchFailed, "lanes have different descriptors or scales");
  PendingProduct product = {&i, 0, warp.cells<uint64_t>(i.b)[0], adds[0] != 0, 0, {}, 0};
  const Descriptor b(product.b);
  uint16_t rows[kRows][kDepth];
  if (i.a != kNone) {
    product.a = warp.cells<uint64_t>(i.a)[0];
    const Descriptor a(product.a);
    if (a.base)
      return report(warp, i, 0, Failure::LaunchFailed, kBadDescriptor);
    if (!readRows(warp, i, a, i.detail & kRowsTurned, warp.id % 4 * kRows, kRows, rows))
      return;
  } else {
    for (uint32_t r = 0; r < 4; ++r) {
      const uint32_t *cells = warp.cells<uint32_t>(warp.lists[i.list + sumsOf(i) + r]);
      product.cells.insert(product.cells.end(), cells, cells + kLanes);
    }
  }
  if (b.base)
    return report(warp, i, 0, Failure::LaunchFailed, kBadDescriptor);
  for (uint32_t k = 0; k < i.count; ++k)
    if (!readRows(warp, i, b, i.detail & kColumnsTurned, k * kColumns, kColumns, rows))
      return;
  PendingAccumulator *sums = findAccumulator(warp, i);
  if (!sums)
    return;
  ++sums->users;
  product.accumulator = size_t(sums - warp.products->accumulators.data());
  product.group = warp.products->group;
  warp.products->products.push_back(std::move(product));
}

/// mode 0: waits for all groups but the last `detail`; 1: closes a group; 2: fences registers.
void orderProducts(Warp &warp, const Instruction &i, uint32_t) {
  PendingProducts &pending = *warp.products;
  if (i.mode == 1) {
    ++pending.group;
    return;
  }
  if (i.mode == 2) {
    pending.isFenced = true;
    return;
  }
  pending.isFenced = false;
  size_t done = 0;
  for (; done < pending.products.size(); ++done) {
    const PendingProduct &product = pending.products[done];
    if (product.group + i.detail >= pending.group)
      break;
    PendingAccumulator &sums = pending.accumulators[product.accumulator];
    const bool isBrain = product.instruction->mode == 0;
    if (isBrain ? !multiply<Brain>(warp, product, sums.cells) : !multiply<Half>(warp, product, sums.cells))
      return;
    if (--sums.users == 0)
      for (uint32_t k = 0; k < sums.count; ++k)
        std::memcpy(warp.cells<uint32_t>(sums.places[k]), &sums.cells[k * kLanes], kLanes * 4);
  }
  pending.products.erase(pending.products.begin(), pending.products.begin() + long(done));
}

/// fence.proxy.async of these lanes.
void fenceProxy(Warp &warp, const Instruction &, uint32_t mask) {
  Block &block = *warp.block;
  ++block.clock;
  block.fences[warp.id].push_back({block.clock, mask});
}

} // namespace

namespace ORTC_EMULATOR_ISA {
void listGroupProducts(LaneCode &code) {
  code.beginProduct = beginProduct;
  code.orderProducts = orderProducts;
  code.fenceProxy = fenceProxy;
}
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
