//===- Folding.cpp - what is known while the graph is walked --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations of constants are computed by the evaluator as soon as they are built, up to a size and an amount of work;
// most of what an exported graph computes is arithmetic on shapes.
#include "compiler/legalize/Legalizer.h"

#include "compiler/evaluator/Evaluator.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ortc::legalize {

/// Results of up to this many bytes are computed at compile time.
static constexpr int64_t kFoldBytes = 1 << 20;
/// A repetition of a constant is kept as an operation above this size: the small operand is the better
/// literal.
static constexpr int64_t kFoldBroadcastBytes = evaluator::kInlineConstantBytes;

/// An operation that takes more multiplications than this is left to the program.
static constexpr int64_t kFoldWork = int64_t(1) << 28;

static int64_t countOf(Type type) { return elementCount(cast<RankedTensorType>(type).getShape()); }

int64_t bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return countOf(type) * ((tensor.getElementType().getIntOrFloatBitWidth() + 7) / 8);
}

/// How many elements an operation looks at for each one of its first result, at most.
static int64_t workOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case<nn::MaxPoolOp, nn::AvgPoolOp, nn::MaxPoolGradOp, nn::AvgPoolGradOp>(
          [](auto pool) { return elementCount(pool.getWindow()); })
      .Case<nn::ConvOp, nn::ConvInputGradOp>([](auto conv) { return countOf(conv.getFilter().getType()); })
      .Case<nn::DotOp>([](nn::DotOp dot) {
        int64_t count = 1;
        for (int64_t dim : dot.getLhsContract())
          count *= cast<RankedTensorType>(dot.getLhs().getType()).getDimSize(dim);
        return count;
      })
      .Case<nn::ScanOp>([](nn::ScanOp scan) {
        int64_t work = 0;
        scan.getBody().walk([&](Operation *op) {
          for (Type type : op->getResultTypes())
            work += countOf(type);
        });
        return std::min(work, kMostElements) * scan.getTripCount();
      })
      .Default(int64_t(1));
}

const HostTensor *Legalizer::constantValue(Value value) {
  value = resolve(value);
  auto found = constants.find(value);
  if (found != constants.end())
    return found->second.get();
  ElementsAttr attribute = argumentData.lookup(value);
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    attribute = dyn_cast<ElementsAttr>(constant.getValue());
  if (!attribute || attribute.size() > kMostListed) // a splat would be listed, too
    return nullptr;
  auto tensor = HostTensor::fromAttribute(attribute);
  if (failed(tensor))
    return nullptr;
  return (constants[value] = std::make_unique<HostTensor>(std::move(*tensor))).get();
}

bool Legalizer::keepConstant(Value value, StringRef why) {
  if (auto widened = value.getDefiningOp<arith::ExtFOp>()) // by prepareOperands
    value = widened.getIn();
  auto found = parameters.find(resolve(value));
  if (found == parameters.end() || rolesAreFixed)
    return false;
  initializers[found->second].trained = false;
  initializers[found->second].reason = why;
  again = true;
  return true;
}

Value Legalizer::resolve(Value value) const {
  auto found = replaced.find(value);
  return found == replaced.end() ? value : found->second;
}

Value Legalizer::constantOf(ElementsAttr value) {
  return arith::ConstantOp::create(*b, cast<TypedAttr>(value));
}

/// `tensor` as an attribute; a splat when all elements are equal.
static ElementsAttr attributeOf(const HostTensor &tensor) {
  RankedTensorType type = tensor.getType();
  auto sameBits = [&](int64_t i) {
    if (!tensor.isFloat())
      return tensor.getInt(i) == tensor.getInt(0);
    return llvm::bit_cast<uint64_t>(tensor.getFloat(i)) == llvm::bit_cast<uint64_t>(tensor.getFloat(0));
  };
  if (tensor.size() < 2 || !llvm::all_of(llvm::seq<int64_t>(1, tensor.size()), sameBits))
    return tensor.toAttribute();
  HostTensor one(RankedTensorType::get({}, type.getElementType()));
  one.copy(0, tensor, 0);
  return cast<DenseElementsAttr>(one.toAttribute()).resizeSplat(type);
}

LogicalResult Legalizer::foldOne(Operation *op, std::string &error) {
  OpBuilder::InsertionGuard guard(*b); // later operations of the same node use the result
  b->setInsertionPoint(op);
  auto replace = [&](Value from, Value to) {
    from.replaceAllUsesWith(to);
    replaced[from] = to;
  };
  bool isEmpty = llvm::any_of(op->getResultTypes(), [](Type type) { return countOf(type) == 0; });
  if (isEmpty) {
    for (Value result : op->getResults())
      replace(result, constantOf(HostTensor(cast<RankedTensorType>(result.getType())).toAttribute()));
    return success();
  }
  SmallVector<Attribute> attributes;
  bool allSplats = true;
  for (Value operand : op->getOperands()) {
    auto constant = operand.getDefiningOp<arith::ConstantOp>();
    if (!constant)
      return success();
    attributes.push_back(constant.getValue());
    allSplats &= isa<SplatElementsAttr>(constant.getValue());
  }
  SmallVector<OpFoldResult> results;
  if (allSplats && !attributes.empty() && succeeded(op->fold(attributes, results)) &&
      results.size() == op->getNumResults()) {
    for (auto [result, folded] : llvm::zip_equal(op->getResults(), results))
      replace(result, isa<Value>(folded) ? cast<Value>(folded)
                                         : constantOf(cast<ElementsAttr>(cast<Attribute>(folded))));
    return success();
  }
  int64_t limit = isa<nn::BroadcastOp>(op) ? kFoldBroadcastBytes : kFoldBytes;
  if (!evaluator::Evaluator::isKnown(op) ||
      llvm::any_of(op->getResultTypes(), [&](Type type) { return bytesOf(type) > limit; }) ||
      workOf(op) > kFoldWork / countOf(op->getResult(0).getType()))
    return success();
  SmallVector<const HostTensor *> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(constantValue(operand));
    if (!operands.back())
      return success();
  }
  ScopedDiagnosticHandler handler(b->getContext(), [&](Diagnostic &diagnostic) {
    error = diagnostic.str();
    return success();
  });
  auto values = evaluator::Evaluator().evaluate(op, operands);
  if (failed(values))
    return isa<nn::CheckIndexOp>(op) ? failure() : success();
  for (auto [result, value] : llvm::zip_equal(op->getResults(), *values))
    replace(result, constantOf(attributeOf(value)));
  return success();
}

LogicalResult Legalizer::foldSince(Operation *from, std::string &error) {
  SmallVector<Operation *> fresh;
  Block *here = b->getInsertionBlock();
  for (auto it = from ? std::next(from->getIterator()) : here->begin(); it != here->end(); ++it)
    if (!isa<arith::ConstantOp>(*it))
      fresh.push_back(&*it);
  for (Operation *op : fresh)
    if (failed(foldOne(op, error)))
      return failure();
  return success();
}

} // namespace ortc::legalize
