// Arithmetic in f16 and bf16, and in pairs of them.
//
// Sums, products and the like are computed in f32 and rounded once more, which is exact: f32 has more than
// twice the bits. A fused product needs more, and goes through f64 rounded to odd.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/lanes/Floats.h"
#include "test/gpu/emulator/lanes/Lists.h"

namespace ortc::emulator {
namespace {

struct HalfPair {
  Half low, high;
};
struct BrainPair {
  Brain low, high;
};

template <class T> ORTC_INLINE T clear(uint16_t keep, T a) { return {uint16_t(a.bits & keep)}; }
template <class T> ORTC_INLINE T invert(T a) { return {uint16_t(a.bits ^ 0x8000)}; }
template <class T> ORTC_INLINE T sum(T a, T b) { return fromFloat<T>(toFloat(a) + toFloat(b)); }
template <class T> ORTC_INLINE T difference(T a, T b) { return fromFloat<T>(toFloat(a) - toFloat(b)); }
template <class T> ORTC_INLINE T product(T a, T b) { return fromFloat<T>(toFloat(a) * toFloat(b)); }
template <bool isMax, bool wantsNan, class T> ORTC_INLINE T extremeOf(T a, T b) {
  return fromFloat<T>(extreme<isMax, wantsNan>(toFloat(a), toFloat(b)));
}
template <class T> ORTC_INLINE T positive(T a) { return (a.bits & 0x8000) ? T{0} : a; }

#define BOTH(Pair, expression)                                                                               \
  ([&] {                                                                                                     \
    Pair pair;                                                                                               \
    pair.low = [](auto a, auto b, auto c) { return expression; }(x.low, y.low, z.low);                       \
    pair.high = [](auto a, auto b, auto c) { return expression; }(x.high, y.high, z.high);                   \
    return pair;                                                                                             \
  }())
#define ONE_AND_PAIR_1(name, suffix, T, Pair, expression)                                                    \
  ORTC_UNARY(name "." suffix, T, T, expression), Operation {                                                 \
    name "." suffix "x2",                                                                                    \
        unary<[](Pair x) -> Pair {                                                                           \
          Pair y = x, z = x;                                                                                 \
          return BOTH(Pair, ((void)b, (void)c, expression));                                                 \
        },                                                                                                   \
              Pair, Pair>,                                                                                   \
        32, {32, 0, 0}                                                                                       \
  }
#define ONE_AND_PAIR_2(name, suffix, T, Pair, expression)                                                    \
  ORTC_BINARY(name "." suffix, T, T, T, expression), Operation {                                             \
    name "." suffix "x2",                                                                                    \
        binary<[](Pair x, Pair y) -> Pair {                                                                  \
          Pair z = x;                                                                                        \
          return BOTH(Pair, ((void)c, expression));                                                          \
        },                                                                                                   \
               Pair, Pair, Pair>,                                                                            \
        32, {32, 32, 0}                                                                                      \
  }
#define ONE_AND_PAIR_3(name, suffix, T, Pair, expression)                                                    \
  ORTC_TERNARY(name "." suffix, T, T, T, T, expression), Operation {                                         \
    name "." suffix "x2",                                                                                    \
        ternary<[](Pair x, Pair y, Pair z) -> Pair { return BOTH(Pair, expression); }, Pair, Pair, Pair,     \
                Pair>,                                                                                       \
        32, {32, 32, 32}                                                                                     \
  }
#define ARITHMETIC(suffix, T, Pair)                                                                          \
  ONE_AND_PAIR_2("add", suffix, T, Pair, sum(a, b)),                                                         \
      ONE_AND_PAIR_2("sub", suffix, T, Pair, difference(a, b)),                                              \
      ONE_AND_PAIR_2("mul", suffix, T, Pair, product(a, b)),                                                 \
      ONE_AND_PAIR_3("fma", suffix, T, Pair, fusedProduct(a, b, c)),                                         \
      ONE_AND_PAIR_3("fma.relu", suffix, T, Pair, positive(fusedProduct(a, b, c))),                          \
      ONE_AND_PAIR_2("min", suffix, T, Pair, (extremeOf<false, false>(a, b))),                               \
      ONE_AND_PAIR_2("max", suffix, T, Pair, (extremeOf<true, false>(a, b))),                                \
      ONE_AND_PAIR_2("min.NaN", suffix, T, Pair, (extremeOf<false, true>(a, b))),                            \
      ONE_AND_PAIR_2("max.NaN", suffix, T, Pair, (extremeOf<true, true>(a, b))),                             \
      ONE_AND_PAIR_1("abs", suffix, T, Pair, clear(0x7fff, a)),                                              \
      ONE_AND_PAIR_1("neg", suffix, T, Pair, invert(a)),                                                     \
      ONE_AND_PAIR_1("ex2.approx", suffix, T, Pair, fromFloat<decltype(a)>(std::exp2(toFloat(a)))),          \
      ONE_AND_PAIR_1("ex2.approx.ftz", suffix, T, Pair, fromFloat<decltype(a)>(std::exp2(toFloat(a)))),      \
      ONE_AND_PAIR_1("tanh.approx", suffix, T, Pair, fromFloat<decltype(a)>(std::tanh(toFloat(a))))
/// f16 alone has them.
#define FLUSHED(suffix, T, Pair)                                                                             \
  ONE_AND_PAIR_2("add.ftz", suffix, T, Pair, flush(sum(flush(a), flush(b)))),                                \
      ONE_AND_PAIR_2("sub.ftz", suffix, T, Pair, flush(difference(flush(a), flush(b)))),                     \
      ONE_AND_PAIR_2("mul.ftz", suffix, T, Pair, flush(product(flush(a), flush(b)))),                        \
      ONE_AND_PAIR_3("fma.ftz", suffix, T, Pair, flush(fusedProduct(flush(a), flush(b), flush(c)))),         \
      ONE_AND_PAIR_2("min.ftz", suffix, T, Pair, (extremeOf<false, false>(flush(a), flush(b)))),             \
      ONE_AND_PAIR_2("max.ftz", suffix, T, Pair, (extremeOf<true, false>(flush(a), flush(b)))),              \
      ONE_AND_PAIR_2("min.ftz.NaN", suffix, T, Pair, (extremeOf<false, true>(flush(a), flush(b)))),          \
      ONE_AND_PAIR_2("max.ftz.NaN", suffix, T, Pair, (extremeOf<true, true>(flush(a), flush(b)))),           \
      ONE_AND_PAIR_1("abs.ftz", suffix, T, Pair, clear(0x7fff, flush(a))),                                   \
      ONE_AND_PAIR_1("neg.ftz", suffix, T, Pair, invert(flush(a)))

const Operation kOperations[] = {ARITHMETIC("f16", Half, HalfPair), ARITHMETIC("bf16", Brain, BrainPair),
                                 FLUSHED("f16", Half, HalfPair)};

} // namespace

namespace ORTC_EMULATOR_ISA {
OperationList halfOperations() { return {kOperations, sizeof kOperations / sizeof *kOperations}; }
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
