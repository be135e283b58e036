// atom and red on integers. Atomics on floating-point numbers are refused: their sum depends on the order of
// threads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/lanes/Access.h"
#include "test/gpu/emulator/lanes/Lists.h"

namespace ortc::emulator {
namespace {

template <class T> T combine(AtomicOperation operation, bool isSigned, T old, T value) {
  using Signed = std::make_signed_t<T>;
  switch (operation) {
  case AtomicOperation::Add:
    return old + value;
  case AtomicOperation::And:
    return old & value;
  case AtomicOperation::Or:
    return old | value;
  case AtomicOperation::Xor:
    return old ^ value;
  case AtomicOperation::Min:
    return (isSigned ? Signed(value) < Signed(old) : value < old) ? value : old;
  case AtomicOperation::Max:
    return (isSigned ? Signed(value) > Signed(old) : value > old) ? value : old;
  case AtomicOperation::Inc:
    return old >= value ? 0 : old + 1;
  case AtomicOperation::Dec:
    return old == 0 || old > value ? value : old - 1;
  default:
    return value;
  }
}

/// d (or none): the old value; b: the operand; c: of CompareExchange the new value, when the old one equals
/// b.
template <class T> void atomic(Warp &warp, const Instruction &i, uint32_t mask) {
  Addresses at(warp, i, mask, sizeof(T));
  const T *b = warp.cells<T>(i.b);
  const AtomicOperation operation = AtomicOperation(i.mode);
  T olds[kLanes];
  at.eachChecked<Touch::Atomic>(warp, i, [&](uint32_t l, std::byte *data) {
    T *place = reinterpret_cast<T *>(data);
    T old = __atomic_load_n(place, __ATOMIC_RELAXED), next;
    do {
      if (operation == AtomicOperation::CompareExchange)
        next = old == b[l] ? warp.cells<T>(i.c)[l] : old;
      else
        next = combine<T>(operation, i.detail, old, b[l]);
    } while (!__atomic_compare_exchange_n(place, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    olds[l] = old;
  });
  if (i.d != kNone && !warp.block->isFailed)
    eachActive(mask, [&](uint32_t l) { warp.cells<T>(i.d)[l] = olds[l]; });
}

} // namespace

namespace ORTC_EMULATOR_ISA {
void listAtomics(LaneCode &code) {
  code.atomic32 = atomic<uint32_t>;
  code.atomic64 = atomic<uint64_t>;
}
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
