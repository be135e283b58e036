// Rounding to bf16 at random, right on average.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bf16 is the upper half of f32. A random number below 2^16 is added to the bits and the lower half dropped: a carry
// into the upper half has the probability of the lower half's share of 2^16. Magnitudes grow with the bits, so this
// rounds negative numbers in the same way, and across powers of two.
#include "compiler/passes/train/StochasticRounding.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "support/Random.h"

using namespace mlir;

namespace ortc::train {

uint32_t roundingKey(StringRef name, uint64_t seed) {
  return static_cast<uint32_t>(mixBits(hashName(name) + mixBits(seed + kGoldenGamma)) >> 32);
}

LogicalResult checkRounding(TensorOp tensor) {
  int64_t count = nn::elementCount(tensor.getStoredType().getShape());
  if (count <= int64_t(1) << 32)
    return success();
  return tensor.emitError()
         << "parameter '" << tensor.getName() << "' has " << count
         << " elements, but at most 4294967296 are rounded at random; freeze it, or round to "
            "the nearest";
}

Value roundStochastically(nn::TensorBuilder &b, Value value, Value step, uint32_t key) {
  RankedTensorType type = nn::TensorBuilder::typeOf(value), words = type.clone(b.getI32Type());
  constexpr double kLowHalf = 0xffff, kQuiet = 0x400000;
  Value drawn = nn::RandomOp::create(b, words, step, key).getFirst();
  Value bits = arith::BitcastOp::create(b, words, value);
  Value moved = b.add(bits, arith::AndIOp::create(b, drawn, b.constant(words, kLowHalf)));
  // A carry would take a NaN to zero, and half of one to infinity.
  Value quiet = arith::OrIOp::create(b, bits, b.constant(words, kQuiet));
  Value isNaN = b.compare(arith::CmpFPredicate::UNO, value, value);
  Value chosen = b.select(isNaN, quiet, moved);
  Value upper = arith::ShRUIOp::create(b, chosen, b.constant(words, 16));
  Value narrow = arith::TruncIOp::create(b, type.clone(b.getIntegerType(16)), upper);
  return arith::BitcastOp::create(b, type.clone(b.getBF16Type()), narrow);
}

} // namespace ortc::train
