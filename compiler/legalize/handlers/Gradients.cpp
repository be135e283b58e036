// Gradients that are chosen.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// compiler/frontend/OwnOperators.h has the operators.
#include "compiler/legalize/Node.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace ortc::legalize::handlers {

static Bound detached(TensorBuilder &b, const Bound &bound) {
  bool isFloat = bound.value && isa<FloatType>(TensorBuilder::elementOf(bound.value));
  return isFloat ? bound.with(b.detach(bound.value)) : bound;
}

LogicalResult detach(Node &n) {
  const Items *items = n.items(0);
  if (!items)
    return n.yieldBound(detached(n.b, n.bound(0)));
  if (failed(n.list(kNumbersPerItem * static_cast<int64_t>(items->size()))))
    return failure();
  Items copies;
  for (const Bound &item : *items)
    copies.push_back(detached(n.b, item));
  Bound sequence;
  sequence.items = std::make_shared<const Items>(std::move(copies));
  return n.yieldBound(sequence);
}

/// "2x3 of f32".
static std::string describe(Value value) {
  std::string text = shapeText(TensorBuilder::shapeOf(value)) + " of ";
  llvm::raw_string_ostream(text) << TensorBuilder::elementOf(value);
  return text;
}

LogicalResult straightThrough(Node &n) {
  if (n[0].getType() != n[1].getType())
    return n.refuse("'" + n.name(0) + "' is " + describe(n[0]) + ", and '" + n.name(1) +
                    "', which its gradient goes to, is " + describe(n[1]) + "; both have one shape and type");
  if (!n.isFloat(0))
    return n.yieldBound(n.bound(0));
  return n.yieldBound(n.bound(0).with(nn::StraightThroughOp::create(n.b, n[0], n[1])));
}

} // namespace ortc::legalize::handlers
