// How an operation is applied to the lanes of a warp.
//
// Files that include this are compiled once for every set of vector instructions, into a namespace of its
// own. All of it has internal linkage: a linker that merged equal functions would take the vector code to
// other processors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "test/gpu/emulator/lanes/LaneTables.h"
#include "test/gpu/emulator/run/Block.h"
#include "test/gpu/emulator/run/Warp.h"

/// Before a loop over lanes: vectors instead of 32 copies of its body.
#if defined(__clang__)
#define ORTC_LANE_LOOP _Pragma("clang loop vectorize(enable) unroll(disable)")
/// Where vectors would gather, which takes longer.
#define ORTC_SCALAR_LOOP _Pragma("clang loop vectorize(disable)")
#else
#define ORTC_LANE_LOOP _Pragma("GCC unroll 1")
#define ORTC_SCALAR_LOOP
#endif
#define ORTC_INLINE __attribute__((always_inline)) inline

namespace ortc::emulator {
namespace {

/// A predicate's cell: all ones, or zero.
struct Predicate {
  uint32_t bits;
};
ORTC_INLINE Predicate predicateOf(bool is) { return {is ? ~0u : 0u}; }
/// f16 and bf16, as bits.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

template <class T> constexpr Width kWidth = std::is_same_v<T, Predicate> ? 1 : 8 * sizeof(T);
template <class T> using CellOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

/// A cell holds the value in its low bytes.
template <class T> ORTC_INLINE T fromCell(CellOf<T> cell) {
  if constexpr (std::is_integral_v<T>) {
    return T(cell);
  } else {
    T value;
    std::memcpy(&value, &cell, sizeof value);
    return value;
  }
}
/// The other bytes become zero.
template <class T> ORTC_INLINE CellOf<T> toCell(T value) {
  if constexpr (std::is_integral_v<T>) {
    return CellOf<T>(std::make_unsigned_t<T>(value));
  } else {
    CellOf<T> cell = 0;
    std::memcpy(&cell, &value, sizeof value);
    return cell;
  }
}

struct LaneBits {
  uint32_t of[kLanes];
};
constexpr LaneBits makeLaneBits() {
  LaneBits bits{};
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    bits.of[lane] = 1u << lane;
  return bits;
}
constexpr LaneBits kLaneBits = makeLaneBits();

/// Lanes whose predicate holds.
ORTC_INLINE uint32_t lanesWith(const uint32_t *predicate) {
  uint32_t mask = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    mask |= predicate[lane] & kLaneBits.of[lane];
  return mask;
}

/// result[lane] = compute(lane) for the lanes of the mask. `compute` also runs for other lanes, on whatever
/// they hold. Results go through an array of their own: the result may be an operand, which would forbid
/// vectors.
template <class Cell, class Compute> ORTC_INLINE void eachLane(Cell *result, uint32_t mask, Compute compute) {
  alignas(64) Cell values[kLanes];
  ORTC_LANE_LOOP
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    values[lane] = compute(lane);
  if (mask == kAllLanes) {
    std::memcpy(result, values, sizeof values);
    return;
  }
  ORTC_LANE_LOOP
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    Cell old = result[lane], fresh = values[lane];
    result[lane] = mask & kLaneBits.of[lane] ? fresh : old;
  }
}

/// visit(lane) for the lanes of the mask, in order.
template <class Visit> ORTC_INLINE void eachActive(uint32_t mask, Visit visit) {
  for (; mask; mask &= mask - 1)
    visit(uint32_t(__builtin_ctz(mask)));
}

template <auto compute, class R, class A> void unary(Warp &warp, const Instruction &i, uint32_t mask) {
  const auto *a = warp.cells<CellOf<A>>(i.a);
  eachLane(warp.cells<CellOf<R>>(i.d), mask,
           [&](uint32_t l) { return toCell<R>(compute(fromCell<A>(a[l]))); });
}

template <auto compute, class R, class A, class B>
void binary(Warp &warp, const Instruction &i, uint32_t mask) {
  const auto *a = warp.cells<CellOf<A>>(i.a);
  const auto *b = warp.cells<CellOf<B>>(i.b);
  eachLane(warp.cells<CellOf<R>>(i.d), mask,
           [&](uint32_t l) { return toCell<R>(compute(fromCell<A>(a[l]), fromCell<B>(b[l]))); });
}

template <auto compute, class R, class A, class B, class C>
void ternary(Warp &warp, const Instruction &i, uint32_t mask) {
  const auto *a = warp.cells<CellOf<A>>(i.a);
  const auto *b = warp.cells<CellOf<B>>(i.b);
  const auto *c = warp.cells<CellOf<C>>(i.c);
  eachLane(warp.cells<CellOf<R>>(i.d), mask, [&](uint32_t l) {
    return toCell<R>(compute(fromCell<A>(a[l]), fromCell<B>(b[l]), fromCell<C>(c[l])));
  });
}

} // namespace
} // namespace ortc::emulator

/// Rows of tables of operations: name, type of the result, types of the operands, value in terms of a, b, c.
#define ORTC_UNARY(name, R, A, ...)                                                                          \
  Operation {                                                                                                \
    name, unary<[](A a) -> R { return __VA_ARGS__; }, R, A>, kWidth<R>, {kWidth<A>, 0, 0}                    \
  }
#define ORTC_BINARY(name, R, A, B, ...)                                                                      \
  Operation {                                                                                                \
    name, binary<[](A a, B b) -> R { return __VA_ARGS__; }, R, A, B>, kWidth<R>, {kWidth<A>, kWidth<B>, 0}   \
  }
#define ORTC_TERNARY(name, R, A, B, C, ...)                                                                  \
  Operation {                                                                                                \
    name, ternary<[](A a, B b, C c) -> R { return __VA_ARGS__; }, R, A, B, C>, kWidth<R>, {                  \
      kWidth<A>, kWidth<B>, kWidth<C>                                                                        \
    }                                                                                                        \
  }
