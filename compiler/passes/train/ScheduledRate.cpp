// Rates that a step computes from its number.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instantiates the formulas of support/Rate.h with operations in place of numbers.
#include "compiler/passes/train/ScheduledRate.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "support/Rate.h"

using namespace mlir;

namespace ortc::train {
namespace {

using nn::TensorBuilder;

/// A number of a program.
struct Number {
  TensorBuilder *b;
  Value value;
};

/// What a comparison gives.
struct Condition {
  Value value;
};

Number number(Number like, double value) { return {like.b, like.b->constantLike(like.value, value)}; }
Number operator+(Number x, Number y) { return {x.b, x.b->add(x.value, y.value)}; }
Number operator-(Number x, Number y) { return {x.b, x.b->sub(x.value, y.value)}; }
Number operator*(Number x, Number y) { return {x.b, x.b->mul(x.value, y.value)}; }
Number operator/(Number x, Number y) { return {x.b, x.b->div(x.value, y.value)}; }
Number operator+(Number x, double y) { return x + number(x, y); }
Number operator-(Number x, double y) { return x - number(x, y); }
Number operator-(double x, Number y) { return number(y, x) - y; }
Number operator*(Number x, double y) { return x * number(x, y); }
Condition operator<(Number x, double y) {
  return {x.b->compare(arith::CmpFPredicate::OLT, x.value, number(x, y).value)};
}
Number select(Condition condition, Number x, Number y) {
  return {x.b, x.b->select(condition.value, x.value, y.value)};
}
Number floor(Number x) { return {x.b, x.b->createOrFold<math::FloorOp>(x.value)}; }
Number sqrt(Number x) { return {x.b, x.b->sqrt(x.value)}; }

} // namespace

Value schedule(TensorBuilder &b, const Schedule &schedule, Value rate, Value updates) {
  Value step = b.cast(updates, b.getF64Type());
  return rates::rateOf(schedule, Number{&b, rate}, Number{&b, step}).value;
}

} // namespace ortc::train
