// setp: comparisons of integers and numbers, which give predicates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/lanes/Floats.h"
#include "test/gpu/emulator/lanes/Lists.h"

namespace ortc::emulator {
namespace {

#define COMPARE(name, suffix, T, ...)                                                                        \
  ORTC_BINARY("setp." name "." suffix, Predicate, T, T, predicateOf(__VA_ARGS__))
#define EQUALITY(suffix, T) COMPARE("eq", suffix, T, a == b), COMPARE("ne", suffix, T, a != b)
#define ORDER(suffix, T)                                                                                     \
  COMPARE("lt", suffix, T, a < b), COMPARE("le", suffix, T, a <= b), COMPARE("gt", suffix, T, a > b),        \
      COMPARE("ge", suffix, T, a >= b)
#define UNSIGNED_ORDER(suffix, T)                                                                            \
  COMPARE("lo", suffix, T, a < b), COMPARE("ls", suffix, T, a <= b), COMPARE("hi", suffix, T, a > b),        \
      COMPARE("hs", suffix, T, a >= b)
#define SIGNED(suffix, T) EQUALITY(suffix, T), ORDER(suffix, T)
#define UNSIGNED(suffix, T) EQUALITY(suffix, T), ORDER(suffix, T), UNSIGNED_ORDER(suffix, T)
/// Those that end in u hold for NaNs; x and y are the operands as they are compared.
#define NUMBERS(suffix, T, read)                                                                             \
  COMPARE("eq", suffix, T, read(a) == read(b)),                                                              \
      COMPARE("ne", suffix, T, (read(a) < read(b)) | (read(a) > read(b))),                                   \
      COMPARE("lt", suffix, T, read(a) < read(b)), COMPARE("le", suffix, T, read(a) <= read(b)),             \
      COMPARE("gt", suffix, T, read(a) > read(b)), COMPARE("ge", suffix, T, read(a) >= read(b)),             \
      COMPARE("equ", suffix, T, !((read(a) < read(b)) | (read(a) > read(b)))),                               \
      COMPARE("neu", suffix, T, read(a) != read(b)), COMPARE("ltu", suffix, T, !(read(a) >= read(b))),       \
      COMPARE("leu", suffix, T, !(read(a) > read(b))), COMPARE("gtu", suffix, T, !(read(a) <= read(b))),     \
      COMPARE("geu", suffix, T, !(read(a) < read(b))),                                                       \
      COMPARE("num", suffix, T, (read(a) == read(a)) & (read(b) == read(b))),                                \
      COMPARE("nan", suffix, T, (read(a) != read(a)) | (read(b) != read(b)))

template <class T> ORTC_INLINE T same(T value) { return value; }

const Operation kOperations[] = {EQUALITY("b16", uint16_t),
                                 EQUALITY("b32", uint32_t),
                                 EQUALITY("b64", uint64_t),
                                 SIGNED("s16", int16_t),
                                 SIGNED("s32", int32_t),
                                 SIGNED("s64", int64_t),
                                 UNSIGNED("u16", uint16_t),
                                 UNSIGNED("u32", uint32_t),
                                 UNSIGNED("u64", uint64_t),
                                 NUMBERS("f32", float, same),
                                 NUMBERS("f64", double, same),
                                 NUMBERS("ftz.f32", float, flush),
                                 NUMBERS("f16", Half, toFloat),
                                 NUMBERS("bf16", Brain, toFloat),
                                 NUMBERS("ftz.f16", Half, toFlushedFloat),
                                 NUMBERS("ftz.bf16", Brain, toFlushedFloat)};

} // namespace

namespace ORTC_EMULATOR_ISA {
OperationList compareOperations() { return {kOperations, sizeof kOperations / sizeof *kOperations}; }
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
