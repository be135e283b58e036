// The warps of a block take turns; each runs until it waits at a barrier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/run/BlockRunner.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "test/gpu/emulator/lanes/LaneTables.h"
#include "test/gpu/emulator/run/Groups.h"

namespace ortc::emulator {
namespace {

constexpr size_t kCacheLine = 64;
/// Turns of all warps without an arrival after which there will be none.
constexpr uint32_t kMostIdleRounds = 10000;

template <class T> T *align(std::vector<T> &memory, size_t count) {
  memory.resize(count + kCacheLine / sizeof(T));
  uintptr_t at = reinterpret_cast<uintptr_t>(memory.data());
  return reinterpret_cast<T *>((at + kCacheLine - 1) / kCacheLine * kCacheLine);
}

} // namespace

std::vector<uint32_t> makeOrder(uint32_t count, const Order &order, uint64_t salt) {
  std::vector<uint32_t> numbers(count);
  for (uint32_t k = 0; k < count; ++k)
    numbers[k] = order.kind == Order::Kind::Reverse ? count - 1 - k : k;
  if (order.kind == Order::Kind::Random) {
    uint64_t state = order.seed * 0x9e3779b97f4a7c15u + salt;
    for (uint32_t k = count; k > 1; --k) { // splitmix64
      uint64_t z = state += 0x9e3779b97f4a7c15u;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      std::swap(numbers[k - 1], numbers[(z ^ (z >> 31)) % k]);
    }
  }
  return numbers;
}

void BlockRunner::begin(Launch &newLaunch, const Order &order) {
  launch = &newLaunch;
  kernel = launch->kernel;
  const uint32_t count = (launch->threads() + kLanes - 1) / kLanes;
  if (launch->counts)
    counter.begin(*launch);
  warps.resize(count);
  copies.resize(count);
  products.resize(count);
  fences.resize(count);
  warpOrder = makeOrder(count, order, launch->gridId);
  const size_t registerBytes = (kernel->registerBytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  std::byte *registerMemory = align(registers, registerBytes * count);
  const size_t localBytes = size_t(kernel->localBytes) * kLanes;
  std::byte *localMemory = align(local, localBytes * count);
  block = {};
  block.launch = launch;
  block.memory = launch->memory;
  block.isChecked = launch->isChecked;
  block.readable = launch->isChecked ? kWritten : kExists;
  block.sharedBytes = launch->sharedBytes;
  block.localBytes = kernel->localBytes;
  block.params = launch->params.data();
  block.paramBytes = uint32_t(launch->params.size());
  block.globalGranule = kernel->globalGranule;
  block.sharedGranule = kernel->sharedGranule;
  block.fences = fences.data();
  block.mbarriers = &mbarriers;
  block.shared = align(shared, launch->sharedBytes);
  block.sharedState = align(sharedState, launch->sharedBytes);
  if (block.isChecked) {
    const size_t cells = (size_t(launch->sharedBytes) >> block.sharedGranule) + 1;
    block.writes = align(writes, cells);
    block.reads = align(reads, cells);
    std::memset(block.writes, 0, cells * sizeof *block.writes);
    std::memset(block.reads, 0, cells * sizeof *block.reads);
  }
  for (uint32_t k = 0; k < count; ++k) {
    Warp &warp = warps[k];
    warp = Warp();
    warp.registers = registerMemory + registerBytes * k;
    warp.local = localMemory + localBytes * k;
    warp.block = &block;
    warp.kernel = kernel;
    warp.code = kernel->code.data();
    warp.lists = kernel->lists.data();
    warp.copies = &copies[k];
    warp.products = &products[k];
    warp.counter = &counter;
    warp.id = k;
    fillRegisters(warp);
  }
}

/// Constants, and the special registers that are the same for all blocks.
void BlockRunner::fillRegisters(Warp &warp) {
  for (const Kernel::Constant &constant : kernel->constants) {
    if (constant.isWide)
      std::fill_n(warp.cells<uint64_t>(constant.place), kLanes, constant.bits);
    else
      std::fill_n(warp.cells<uint32_t>(constant.place), kLanes, uint32_t(constant.bits));
  }
  for (const Kernel::Special &special : kernel->specials)
    fillSpecial(warp, special);
}

void BlockRunner::fillSpecial(Warp &warp, const Kernel::Special &special) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint64_t value = valueOf(special.which, warp, lane);
    if (special.isWide)
      warp.cells<uint64_t>(special.place)[lane] = value;
    else
      warp.cells<uint32_t>(special.place)[lane] = uint32_t(value);
  }
}

uint64_t BlockRunner::valueOf(SpecialRegister which, const Warp &warp, uint32_t lane) const {
  const uint32_t x = launch->block[0], y = launch->block[1], thread = warp.id * kLanes + lane;
  switch (which) {
  case SpecialRegister::TidX:
    return thread % x;
  case SpecialRegister::TidY:
    return thread / x % y;
  case SpecialRegister::TidZ:
    return thread / (x * y);
  case SpecialRegister::LaneId:
    return lane;
  case SpecialRegister::WarpId:
    return warp.id;
  case SpecialRegister::MaskEq:
    return 1u << lane;
  case SpecialRegister::MaskLt:
    return (1u << lane) - 1;
  case SpecialRegister::MaskLe:
    return (2u << lane) - 1;
  case SpecialRegister::MaskGt:
    return ~((2u << lane) - 1);
  case SpecialRegister::MaskGe:
    return ~((1u << lane) - 1);
  default:
    return valueOf(which);
  }
}

uint64_t BlockRunner::valueOf(SpecialRegister which) const {
  switch (which) {
  case SpecialRegister::NtidX:
  case SpecialRegister::NtidY:
  case SpecialRegister::NtidZ:
    return launch->block[unsigned(which) - unsigned(SpecialRegister::NtidX)];
  case SpecialRegister::CtaidX:
  case SpecialRegister::CtaidY:
  case SpecialRegister::CtaidZ:
    return block.index[unsigned(which) - unsigned(SpecialRegister::CtaidX)];
  case SpecialRegister::NctaidX:
  case SpecialRegister::NctaidY:
  case SpecialRegister::NctaidZ:
    return launch->grid[unsigned(which) - unsigned(SpecialRegister::NctaidX)];
  case SpecialRegister::NumWarps:
    return warps.size();
  case SpecialRegister::GridId:
    return launch->gridId;
  case SpecialRegister::DynamicShared:
    return launch->dynamicBytes;
  case SpecialRegister::TotalShared:
    return launch->sharedBytes;
  case SpecialRegister::NumSms:
  case SpecialRegister::One:
    return 1;
  default: // of the one multiprocessor, and Zero
    return 0;
  }
}

void BlockRunner::startBlock(uint64_t number) {
  block.number = number;
  block.index[0] = uint32_t(number % launch->grid[0]);
  block.index[1] = uint32_t(number / launch->grid[0] % launch->grid[1]);
  block.index[2] = uint32_t(number / launch->grid[0] / launch->grid[1]);
  block.isFailed = false;
  // Shared memory begins as NaNs that nobody has written.
  std::memset(block.shared, 0xff, block.sharedBytes);
  std::memset(block.sharedState, kExists | kWritable, block.sharedBytes);
  if (block.clock > kLastTime / 2 && block.isChecked) {
    const size_t cells = (size_t(block.sharedBytes) >> block.sharedGranule) + 1;
    std::memset(block.writes, 0, cells * sizeof *block.writes);
    std::memset(block.reads, 0, cells * sizeof *block.reads);
    block.clock = 0;
  }
  ++block.clock;
  for (std::vector<ProxyFence> &each : fences)
    each.clear();
  mbarriers.clear();
  for (Barrier &barrier : barriers)
    barrier = {};
  const uint32_t threads = launch->threads();
  for (Warp &warp : warps) {
    const uint32_t first = warp.id * kLanes, here = std::min(threads - first, kLanes);
    warp.alive = here == kLanes ? kAllLanes : (1u << here) - 1;
    warp.blockTime = warp.warpTime = block.clock;
    warp.state = WarpState::Ready;
    warp.groupCount = 0;
    warp.isPolling = false;
    warp.copies->clear();
    warp.products->clear();
    insertGroup(warp, 0, warp.alive, false);
    for (const Kernel::Special &special : kernel->specials)
      if (special.which >= SpecialRegister::CtaidX && special.which <= SpecialRegister::CtaidZ)
        fillSpecial(warp, special);
  }
}

void BlockRunner::run(uint64_t number) {
  startBlock(number);
  auto *runWarp = launch->counts ? laneCode().runCountedWarp : laneCode().runWarp;
  uint32_t idleRounds = 0;
  while (true) {
    bool hasRun = false, hasOnlyPolled = true;
    const uint32_t before = block.clock;
    size_t done = 0;
    for (uint32_t k : warpOrder) {
      Warp &warp = warps[k];
      if (warp.state == WarpState::Ready) {
        hasRun = true;
        runWarp(warp);
        if (warp.state == WarpState::Failed || launch->isFailed.load(std::memory_order_relaxed))
          return;
        hasOnlyPolled &= warp.isPolling;
        if (warp.state == WarpState::AtBarrier || warp.state == WarpState::Arrived)
          arrive(warp);
        if (block.isFailed)
          return;
      }
      done += warp.state == WarpState::Done;
    }
    if (done == warps.size()) {
      if (launch->counts)
        counter.endBlock();
      return;
    }
    if (!hasRun)
      return reportDeadlock();
    idleRounds = hasOnlyPolled && block.clock == before ? idleRounds + 1 : 0;
    if (idleRounds == kMostIdleRounds)
      return reportPolling();
  }
}

void BlockRunner::arrive(Warp &warp) {
  const Instruction &i = kernel->code[warp.barrierStatement];
  const uint32_t all = uint32_t(warps.size()) * kLanes;
  if (warp.barrier >= 16)
    return report(warp, i, 0, Failure::LaunchFailed, "there are 16 barriers");
  if (warp.barrierThreads % kLanes || warp.barrierThreads > all)
    return report(warp, i, 0, Failure::LaunchFailed,
                  "the barrier's number of threads is not one of whole warps of the block");
  Barrier &barrier = barriers[warp.barrier];
  const uint32_t expected = warp.barrierThreads ? warp.barrierThreads : all;
  if (barrier.arrived && barrier.expected != expected)
    return report(warp, i, 0, Failure::LaunchFailed,
                  "warps expect different numbers of threads at the barrier");
  barrier.expected = expected;
  barrier.arrived += kLanes;
  if (warp.state == WarpState::AtBarrier)
    barrier.waiting.push_back(warp.id);
  else
    warp.state = WarpState::Ready;
  if (barrier.arrived == expected)
    release(barrier);
}

void BlockRunner::release(Barrier &barrier) {
  ++block.clock;
  for (uint32_t id : barrier.waiting) {
    warps[id].blockTime = warps[id].warpTime = block.clock;
    warps[id].state = WarpState::Ready;
  }
  barrier = {};
}

/// Some warps wait for others that have left or wait elsewhere.
void BlockRunner::reportDeadlock() {
  for (Warp &warp : warps) {
    if (warp.state != WarpState::AtBarrier)
      continue;
    size_t left = 0, elsewhere = 0;
    for (const Warp &other : warps) {
      left += other.state == WarpState::Done;
      elsewhere += other.state == WarpState::AtBarrier && other.barrier != warp.barrier;
    }
    char text[128];
    std::snprintf(text, sizeof text, "divergent barrier: %zu warps have left and %zu wait at another barrier",
                  left, elsewhere);
    return report(warp, kernel->code[warp.barrierStatement], 0, Failure::LaunchFailed, text);
  }
}

/// All warps that could go on test an mbarrier again and again.
void BlockRunner::reportPolling() {
  for (Warp &warp : warps)
    if (warp.isPolling)
      return report(warp, *warp.polled, 0, Failure::LaunchFailed,
                    "nobody is left who could end the phase that it waits for");
}

void BlockRunner::end() {
  uint64_t count = 0;
  for (const Warp &warp : warps)
    count += warp.laneInstructions;
  launch->laneInstructions += count;
  if (launch->counts)
    counter.end();
}

} // namespace ortc::emulator
