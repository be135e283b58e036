// Parts of formulas that have two branches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Zero belongs to the positive branch in every part of the logistic functions.
#include "compiler/passes/train/losses/Branches.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

Value clampAtZero(TensorBuilder &b, Value x) {
  Value zero = b.zerosLike(x);
  return b.select(b.compare(arith::CmpFPredicate::OLE, x, zero), zero, x);
}

/// exp(-|x|), and whether x is at least 0.
static std::pair<Value, Value> decayOf(TensorBuilder &b, Value x) {
  Value positive = b.compare(arith::CmpFPredicate::OGE, x, b.zerosLike(x));
  return {b.exp(b.select(positive, b.neg(x), x)), positive};
}

Value sigmoid(TensorBuilder &b, Value x) {
  auto [decay, positive] = decayOf(b, x);
  return b.div(b.select(positive, b.constantLike(x, 1), decay), b.addScalar(decay, 1));
}

Value softplus(TensorBuilder &b, Value x) {
  auto [decay, positive] = decayOf(b, x);
  return b.add(b.select(positive, x, b.zerosLike(x)), b.createOrFold<math::Log1pOp>(decay));
}

Value binaryCrossEntropy(TensorBuilder &b, Value x, Value y) {
  auto [decay, positive] = decayOf(b, x);
  Value rest = b.createOrFold<math::Log1pOp>(decay);
  return b.add(b.sub(b.select(positive, x, b.zerosLike(x)), b.mul(x, y)), rest);
}

} // namespace ortc::train
