// What is known while the graph is walked.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations of constants are computed by the evaluator as soon as they are built, up to a size and an amount of work;
// most of what an exported graph computes is arithmetic on shapes.
#include "compiler/legalize/Legalizer.h"

#include "compiler/evaluator/Evaluator.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::legalize {

/// Results of up to this many bytes are computed at compile time.
static constexpr int64_t kFoldBytes = 1 << 20;
/// A repetition of a constant is kept as an operation above this size: the small operand is the better
/// literal.
static constexpr int64_t kFoldBroadcastBytes = evaluator::kInlineConstantBytes;

/// An operation that looks at no more elements than this, as arithmetic on shapes does, costs nothing: it is
/// never left to the program.
static constexpr int64_t kFreeWork = 1024;

static int64_t countOf(Type type) { return elementCount(cast<RankedTensorType>(type).getShape()); }

int64_t bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return countOf(type) * ((tensor.getElementType().getIntOrFloatBitWidth() + 7) / 8);
}

/// How many elements an operation looks at for each one of its first result, at most.
static int64_t workPerElement(Operation *op) {
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case<nn::MaxPoolOp, nn::AvgPoolOp, nn::MaxPoolGradOp, nn::AvgPoolGradOp>(
          [](auto pool) { return elementCount(pool.getWindow()); })
      .Case<nn::ConvOp, nn::ConvInputGradOp>([](auto conv) { return countOf(conv.getFilter().getType()); })
      .Case([](nn::ArgSortOp sort) { // comparisons
        return static_cast<int64_t>(llvm::Log2_64_Ceil(countOf(sort.getInput().getType()) + 2));
      })
      .Case<nn::DotOp>([](nn::DotOp dot) {
        int64_t count = 1;
        for (int64_t dim : dot.getLhsContract())
          count *= cast<RankedTensorType>(dot.getLhs().getType()).getDimSize(dim);
        return count;
      })
      .Default(int64_t(1));
}

/// How many elements an operation looks at, at most; saturates far above what is folded.
static int64_t workOf(Operation *op) {
  auto add = [](int64_t a, int64_t b) { return std::min(a + b, kMostElements); };
  int64_t results = 0, operands = 0;
  for (Type type : op->getResultTypes())
    results = add(results, countOf(type));
  for (Type type : op->getOperandTypes())
    operands = add(operands, countOf(type));
  int64_t work = add(elementCount({results, workPerElement(op)}), operands);
  if (auto scan = dyn_cast<nn::ScanOp>(op))
    for (Operation &inner : scan.getBlock())
      work = add(work, elementCount({workOf(&inner), static_cast<int64_t>(scan.getTripCount())}));
  return work;
}

ElementsAttr Legalizer::constantAttribute(Value value) const {
  value = resolve(value);
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    return dyn_cast<ElementsAttr>(constant.getValue());
  return argumentData.lookup(value);
}

int64_t Legalizer::constantSize(Value value) {
  ElementsAttr attribute = constantAttribute(value);
  return attribute ? elementCount(attribute.getShapedType().getShape()) : 0;
}

const HostTensor *Legalizer::readConstant(Value value, Allowance &allowance) {
  value = resolve(value);
  auto found = constants.find(value);
  if (found != constants.end())
    return found->second.get();
  ElementsAttr attribute = constantAttribute(value);
  if (!attribute ||
      (constantSize(value) > kFreeWork && !allowance.take(constantSize(value)))) // splats are listed, too
    return nullptr;
  auto tensor = HostTensor::fromAttribute(attribute);
  if (failed(tensor))
    return nullptr;
  return (constants[value] = std::make_unique<HostTensor>(std::move(*tensor))).get();
}

bool Legalizer::keepConstant(Value value, StringRef why) {
  auto widened = value.getDefiningOp<arith::ExtFOp>(); // by prepareOperands
  auto found = parameters.find(resolve(widened ? widened.getIn() : value));
  if (found == parameters.end() || rolesAreFixed)
    return false;
  Initializer &entry = initializers[found->second];
  entry.trained = false;
  entry.reason = why;
  again = true;
  argumentData[resolve(value)] = signlessAttribute(entry.op.getValue(), settings.float64, entry.name);
  return true;
}

Value Legalizer::resolve(Value value) const {
  auto found = replaced.find(value);
  return found == replaced.end() ? value : found->second;
}

LogicalResult Legalizer::resolve(Node &node, Bound &bound) {
  bound.value = resolve(bound.value);
  if (!bound.items ||
      llvm::none_of(*bound.items, [&](const Bound &item) { return replaced.contains(item.value); }))
    return success();
  if (failed(node.list(static_cast<int64_t>(bound.items->size()) * kNumbersPerItem)))
    return failure();
  Items items(*bound.items); // tensors: there are no sequences of sequences
  for (Bound &item : items)
    item.value = resolve(item.value);
  bound.items = std::make_shared<const Items>(std::move(items));
  return success();
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

bool Legalizer::mayFold(Operation *op) {
  int64_t limit = isa<nn::BroadcastOp>(op) ? kFoldBroadcastBytes : kFoldBytes;
  if (!evaluator::Evaluator::isKnown(op) ||
      llvm::any_of(op->getResultTypes(), [&](Type type) { return bytesOf(type) > limit; }))
    return false;
  int64_t work = workOf(op);
  return work <= kFreeWork || spending.folded.take(work);
}

Status Legalizer::foldOne(Operation *op) {
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
    return Status();
  }
  SmallVector<Attribute> attributes;
  bool allSplats = true;
  for (Value operand : op->getOperands()) {
    auto constant = operand.getDefiningOp<arith::ConstantOp>();
    if (!constant)
      return Status();
    attributes.push_back(constant.getValue());
    allSplats &= isa<SplatElementsAttr>(constant.getValue());
  }
  SmallVector<OpFoldResult> results;
  if (allSplats && !attributes.empty() && succeeded(op->fold(attributes, results)) &&
      results.size() == op->getNumResults()) {
    for (auto [result, folded] : llvm::zip_equal(op->getResults(), results))
      replace(result, isa<Value>(folded) ? cast<Value>(folded)
                                         : constantOf(cast<ElementsAttr>(cast<Attribute>(folded))));
    return Status();
  }
  if (!mayFold(op))
    return Status();
  SmallVector<const HostTensor *> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(readConstant(operand, spending.folded));
    if (!operands.back())
      return Status();
  }
  std::string error;
  ScopedDiagnosticHandler handler(b->getContext(), [&](Diagnostic &diagnostic) {
    error = diagnostic.str();
    return success();
  });
  auto values = evaluator::Evaluator().evaluate(op, operands);
  if (failed(values))
    return isa<nn::CheckIndexOp>(op) ? Status::refusal(error) : Status();
  for (auto [result, value] : llvm::zip_equal(op->getResults(), *values))
    replace(result, constantOf(attributeOf(value)));
  return Status();
}

Status Legalizer::foldSince(Operation *from) {
  SmallVector<Operation *> fresh; // what the nodes of a subgraph have folded is still there, without users
  Block *here = b->getInsertionBlock();
  for (auto it = from ? std::next(from->getIterator()) : here->begin(); it != here->end(); ++it)
    if (!isa<arith::ConstantOp>(*it) &&
        !llvm::all_of(it->getResults(), [&](Value value) { return replaced.contains(value); }))
      fresh.push_back(&*it);
  for (Operation *op : fresh)
    ORTC_TRY(foldOne(op));
  return Status();
}

} // namespace ortc::legalize
