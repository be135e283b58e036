// The threads of a GPU's blocks as fibres of this thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/fibres/Fibres.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>
#include <ucontext.h>
#include <vector>

namespace ortc::fibres {
namespace {

constexpr size_t kStackBytes = 64 << 10;

enum class State { Ready, InBlock, InWavefront, Done };

struct Fibre {
  ucontext_t context;
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
  State state = State::Ready;
  uint32_t place = 0;               ///< where it waits
  uint32_t address = 0, value = 0;  ///< of a permutation
  const MatrixUnit *unit = nullptr; ///< of a product of matrices
  MatrixOperands operands;
};

class Block {
public:
  Block(const Grid &grid, const std::function<void()> &body)
      : body(body), grid(grid), fibres(size_t(grid.threads)), order(size_t(grid.threads)) {
    std::iota(order.begin(), order.end(), size_t(0));
    if (grid.order == Order::Reverse)
      std::reverse(order.begin(), order.end());
  }
  std::string run(uint32_t number);
  void wait(State state, uint32_t place);
  Fibre &self() { return fibres[current]; }
  uint32_t lane() const { return uint32_t(current % size_t(grid.wavefront)); }

  const std::function<void()> &body;
  size_t current = 0;
  uint32_t number = 0; ///< of the block

private:
  bool runLanes();
  bool runOneWavefront();
  bool advanceWavefront(size_t first);
  void multiplyOf(size_t first, const std::vector<size_t> &lanes);
  std::string advanceBlock();

  const Grid &grid;
  std::vector<Fibre> fibres;
  std::vector<size_t> order;
  std::mt19937 random{1};
  ucontext_t scheduler;
};

Block *running = nullptr;

void enter() {
  running->body();
  running->wait(State::Done, 0);
}

void Block::wait(State state, uint32_t place) {
  Fibre &fibre = self();
  fibre.state = state;
  fibre.place = place;
  swapcontext(&fibre.context, &scheduler);
}

std::string Block::run(uint32_t n) {
  number = n;
  for (Fibre &fibre : fibres) {
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack.get();
    fibre.context.uc_stack.ss_size = kStackBytes;
    fibre.context.uc_link = nullptr;
    makecontext(&fibre.context, enter, 0);
    fibre.state = State::Ready;
  }
  while (true) {
    bool isAlone = grid.order == Order::Ahead || grid.order == Order::Behind;
    if (isAlone ? runOneWavefront() : runLanes())
      continue;
    if (std::all_of(fibres.begin(), fibres.end(), [](auto &fibre) { return fibre.state == State::Done; }))
      return "";
    if (std::string failure = advanceBlock(); !failure.empty())
      return failure;
  }
}

/// All lanes up to where they wait; whether some go on from there.
bool Block::runLanes() {
  if (grid.order == Order::Shuffled)
    std::shuffle(order.begin(), order.end(), random);
  for (size_t i : order)
    if (fibres[i].state == State::Ready) {
      current = i;
      swapcontext(&scheduler, &fibres[i].context);
    }
  bool advances = false;
  for (size_t first = 0; first < fibres.size(); first += size_t(grid.wavefront))
    advances |= advanceWavefront(first);
  return advances;
}

/// The same of one wavefront; false where all of them wait for the block.
bool Block::runOneWavefront() {
  const size_t size = size_t(grid.wavefront), count = (fibres.size() + size - 1) / size;
  for (size_t i = 0; i < count; ++i) {
    size_t first = (grid.order == Order::Behind ? count - 1 - i : i) * size;
    bool advances = false;
    for (current = first; current < std::min(fibres.size(), first + size); ++current)
      if (fibres[current].state == State::Ready) {
        swapcontext(&scheduler, &fibres[current].context);
        advances = true;
      }
    advances |= advanceWavefront(first);
    if (advances)
      return true;
  }
  return false;
}

/// While all lanes wait, so that what they point to stays.
void Block::multiplyOf(size_t first, const std::vector<size_t> &lanes) {
  if (lanes.empty() || !fibres[lanes.front()].unit)
    return;
  std::vector<MatrixOperands> operands{size_t(grid.wavefront)};
  for (size_t i : lanes)
    operands[i - first] = fibres[i].operands;
  multiply(*fibres[lanes.front()].unit, operands);
  for (size_t i : lanes)
    fibres[i].unit = nullptr;
}

/// The lanes at the first place where some of this wavefront wait.
bool Block::advanceWavefront(size_t first) {
  size_t end = std::min(fibres.size(), first + size_t(grid.wavefront));
  uint32_t place = ~0u;
  for (size_t i = first; i < end; ++i)
    if (fibres[i].state == State::InWavefront)
      place = std::min(place, fibres[i].place);
  std::vector<size_t> lanes;
  for (size_t i = first; i < end; ++i)
    if (fibres[i].state == State::InWavefront && fibres[i].place == place)
      lanes.push_back(i);
  multiplyOf(first, lanes);
  std::vector<uint32_t> moved;
  for (size_t i : lanes) {
    size_t from = first + fibres[i].address / 4 % size_t(grid.wavefront);
    moved.push_back(std::binary_search(lanes.begin(), lanes.end(), from) ? fibres[from].value : kNoLane);
  }
  for (size_t k = 0; k < lanes.size(); ++k) {
    fibres[lanes[k]].value = moved[k];
    fibres[lanes[k]].state = State::Ready;
  }
  return !lanes.empty();
}

std::string Block::advanceBlock() {
  uint32_t place = 0;
  size_t waiting = 0;
  for (const Fibre &fibre : fibres)
    if (fibre.state == State::InBlock)
      place = fibre.place;
  for (const Fibre &fibre : fibres)
    waiting += fibre.state == State::InBlock && fibre.place == place;
  if (waiting < fibres.size())
    return "block " + std::to_string(number) + ": " + std::to_string(waiting) + " of " +
           std::to_string(fibres.size()) + " threads are at barrier " + std::to_string(place);
  for (Fibre &fibre : fibres)
    fibre.state = State::Ready;
  return "";
}

uint32_t countBefore(uint32_t mask, uint32_t lanes) {
  return uint32_t(std::popcount(lanes >= 32 ? mask : mask & ((1u << lanes) - 1)));
}

} // namespace

std::string run(const Grid &grid, const std::function<void()> &begin, const std::function<void()> &body) {
  Block block(grid, body);
  running = &block;
  std::string failure;
  for (int64_t i = 0; i < grid.blocks && failure.empty(); ++i) {
    begin();
    int64_t number = grid.order == Order::Reverse ? grid.blocks - 1 - i : i;
    failure = block.run(uint32_t(number));
  }
  running = nullptr;
  return failure;
}

uint32_t thread() { return uint32_t(running->current); }
uint32_t block() { return running->number; }
void meetInBlock(uint32_t place) { running->wait(State::InBlock, place); }
void meetInWavefront(uint32_t place) { running->wait(State::InWavefront, place); }

uint32_t permute(uint32_t address, uint32_t value, uint32_t place) {
  Fibre &fibre = running->self();
  fibre.address = address;
  fibre.value = value;
  meetInWavefront(place);
  return fibre.value;
}

void multiplyInWavefront(const MatrixUnit &unit, const MatrixOperands &operands, uint32_t place) {
  Fibre &fibre = running->self();
  fibre.unit = &unit;
  fibre.operands = operands;
  meetInWavefront(place);
}

uint32_t countLower(uint32_t mask, uint32_t base) { return base + countBefore(mask, running->lane()); }
uint32_t countUpper(uint32_t mask, uint32_t base) {
  uint32_t lane = running->lane();
  return base + (lane > 32 ? countBefore(mask, lane - 32) : 0);
}

} // namespace ortc::fibres
