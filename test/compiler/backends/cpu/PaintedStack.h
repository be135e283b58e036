// What a call takes of the stack, measured.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <alloca.h>
#include <cstddef>
#include <cstdint>

namespace ortc::cpu::test {

constexpr size_t kPaintedBytes = 256 << 10;

/// What a call has done to the paint.
struct Unpainted {
  size_t bytes; ///< how far down it is gone
  size_t gap;   ///< the most bytes in between of which all are left
};

/// Paints the stack below its own frame, calls `function` with arguments that all fit into registers, and looks.
/// Writes nothing below the stack pointer in between: it calls nothing else.
template <typename Result, typename... Parameters>
[[gnu::noinline]] Unpainted measureStackAt(size_t shift, Result (*function)(Parameters...),
                                           Parameters... arguments) {
  constexpr uint64_t kPaint = 0x5ad1e7c0ffee4b1d;
  void *volatile moved = alloca(shift);
  uint64_t *top = static_cast<uint64_t *>(moved);
#if defined(__x86_64__)
  __asm__ volatile("movq %%rsp, %0" : "=r"(top));
#endif
  volatile uint64_t *place = top - kPaintedBytes / 8;
  for (; place < top; ++place)
    *place = kPaint;
  function(arguments...);
  for (place = top - kPaintedBytes / 8; place < top && *place == kPaint;)
    ++place;
  Unpainted result{static_cast<size_t>(top - place) * 8, 0};
  for (volatile uint64_t *last = place; place < top; ++place)
    if (*place != kPaint) {
      size_t gap = static_cast<size_t>(place - last) * 8;
      result.gap = gap > result.gap ? gap : result.gap;
      last = place;
    }
  return result;
}

/// The most over the alignments that a stack pointer may have: multiples of 16 bytes within 64.
template <typename Result, typename... Parameters>
size_t measureStack(Result (*function)(Parameters...), Parameters... arguments) {
  size_t most = 0;
  for (size_t shift = 16; shift <= 64; shift += 16)
    most = std::max(most, measureStackAt(shift, function, arguments...).bytes);
  return most;
}

} // namespace ortc::cpu::test
