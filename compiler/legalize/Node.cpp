// What a handler works with.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Node.h"
#include "support/Plural.h"

#include "dialects/onnx/InitializerOrigin.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace ortc::legalize {

int64_t elementCount(Ints shape) {
  if (llvm::is_contained(shape, 0))
    return 0;
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size > kMostElements / count)
      return kMostElements + 1;
    count *= size;
  }
  return count;
}

StringRef Node::name(unsigned i) {
  Value value = op.getInput(i);
  if (auto argument = dyn_cast_or_null<BlockArgument>(value)) {
    if (auto graph = dyn_cast<onnx::GraphOp>(argument.getOwner()->getParentOp()))
      return graph.getInputName(argument.getArgNumber());
    return "";
  }
  Operation *producer = value ? value.getDefiningOp() : nullptr;
  if (auto node = dyn_cast_or_null<onnx::NodeOp>(producer))
    return node.getOutputName(cast<OpResult>(value).getResultNumber());
  if (auto initializer = dyn_cast_or_null<onnx::InitializerOp>(producer))
    return initializer.getName();
  return "";
}

LogicalResult Node::constant(unsigned i, StringRef what, const HostTensor *&value) {
  value = constant(i);
  if (value)
    return success();
  if (walk.keepConstant((*this)[i],
                        (what + " of " + op.getOpType() + " has to be known at compile time").str()))
    value = constant(i);
  if (value)
    return success();
  if (int64_t count = walk.constantSize((*this)[i]))
    return list(count);
  return refuse("its " + what + " depends on data, which would make shapes depend on data");
}

LogicalResult Node::ints(unsigned i, StringRef what, SmallVector<int64_t> &values) {
  const HostTensor *tensor = nullptr;
  if (failed(constant(i, what, tensor)))
    return failure();
  if (tensor->isFloat())
    return refuse("its " + what + " is not of an integer type");
  for (int64_t k = 0; k < tensor->size(); ++k)
    values.push_back(tensor->getInt(k));
  return success();
}

LogicalResult Node::floats(unsigned i, StringRef what, SmallVector<double> &values) {
  const HostTensor *tensor = nullptr;
  if (failed(constant(i, what, tensor)))
    return failure();
  for (int64_t k = 0; k < tensor->size(); ++k)
    values.push_back(tensor->isFloat() ? tensor->getFloat(k) : static_cast<double>(tensor->getInt(k)));
  return success();
}

LogicalResult Node::intsAt(unsigned i, StringRef name, SmallVector<int64_t> &values, bool *present) {
  if (present)
    *present = has(i) || hasAttribute(name);
  if (has(i))
    return ints(i, name, values);
  values = getInts(name);
  return success();
}

ElementType Node::elementType(int64_t onnxType) {
  MLIRContext *context = b.getContext();
  auto integer = [&](unsigned width, bool isUnsigned) -> ElementType {
    return {IntegerType::get(context, std::max(width, 8u)), isUnsigned, width < 8 ? width : 0};
  };
  auto floating = [&](Type type) -> ElementType {
    return {options().float64 ? Type(Float64Type::get(context)) : type};
  };
  switch (onnxType) {
  case 1:
    return floating(Float32Type::get(context));
  case 2:
    return integer(8, true);
  case 3:
    return integer(8, false);
  case 4:
    return integer(16, true);
  case 5:
    return integer(16, false);
  case 6:
    return integer(32, false);
  case 7:
    return integer(64, false);
  case 9:
    return {IntegerType::get(context, 1)};
  case 10:
    return floating(Float16Type::get(context));
  case 11:
    return {Float64Type::get(context)};
  case 12:
    return integer(32, true);
  case 13:
    return integer(64, true);
  case 16:
    return floating(BFloat16Type::get(context));
  case 21:
    return integer(4, true);
  case 22:
    return integer(4, false);
  case 25:
    return integer(2, true);
  case 26:
    return integer(2, false);
  default:
    return {};
  }
}

LogicalResult Node::yield(ValueRange values) {
  for (auto [i, value] : llvm::enumerate(values)) {
    if (i >= results.size())
      break;
    results[i].value = value;
    if (!value || !isa<IntegerType>(TensorBuilder::elementOf(value)))
      continue;
    for (const Bound &operand : operands)
      if (operand.value && TensorBuilder::elementOf(operand.value) == TensorBuilder::elementOf(value)) {
        results[i].isUnsigned |= operand.isUnsigned;
        results[i].lowBits = std::max(results[i].lowBits, operand.lowBits);
      }
  }
  return success();
}

LogicalResult Node::yieldAs(Value value, bool isUnsigned, unsigned lowBits) {
  results[0] = {value, isUnsigned, lowBits};
  return success();
}

LogicalResult Node::yieldBound(ArrayRef<Bound> values) {
  for (auto [result, value] : llvm::zip(results, values))
    result = value;
  return success();
}

LogicalResult Node::refuse(const Twine &reason) {
  refusal = reason.str();
  return failure();
}

LogicalResult Node::list(int64_t count) {
  Allowance &allowance = walk.budget().listed;
  if (allowance.take(count))
    return success();
  return refuse(
      "it needs " + Twine(count) + " numbers at compile time; a model may need " +
      Twine(allowance.getMost()) + ", of which " + Twine(allowance.getLeft()) +
      " are left: make it smaller, or compute its result outside the model and feed it as an input");
}

LogicalResult Node::expand(int64_t count) {
  Allowance &allowance = walk.budget().nodes;
  if (allowance.take(count))
    return success();
  return refuse(
      "it comes to " + Twine(count) +
      " nodes; bodies of loops that are taken apart and items of sequences may come to " +
      Twine(allowance.getMost()) + ", of which " + Twine(allowance.getLeft()) +
      " are left: let it have fewer iterations or items, or keep the shapes of what a loop carries");
}

LogicalResult Node::require(ArrayRef<unsigned> which) {
  for (unsigned i : which)
    if (!has(i))
      return refuse("operand " + Twine(i) + " is missing");
  return success();
}

LogicalResult Node::axis(int64_t &axis, int64_t rank) {
  int64_t given = axis;
  if (axis < 0)
    axis += rank;
  if (axis < 0 || axis >= rank)
    return refuse("axis " + Twine(given) + " is out of range for " + formatCount(rank, "dimension"));
  return success();
}

LogicalResult Node::axes(SmallVector<int64_t> &axes, int64_t rank) {
  for (int64_t &each : axes)
    if (failed(axis(each, rank)))
      return failure();
  llvm::sort(axes);
  for (size_t i = 1; i < axes.size(); ++i)
    if (axes[i] == axes[i - 1])
      return refuse("axis " + Twine(axes[i]) + " is given twice");
  return success();
}

std::string shapeText(Ints shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

LogicalResult Node::broadcastShape(ArrayRef<Value> values, Shape &shape) {
  shape.clear();
  for (Value value : values) {
    Ints other = TensorBuilder::shapeOf(value);
    if (other.size() > shape.size())
      shape.insert(shape.begin(), other.size() - shape.size(), 1);
    for (size_t i = 0; i < other.size(); ++i) {
      int64_t &mine = shape[shape.size() - 1 - i], theirs = other[other.size() - 1 - i];
      if (mine != theirs && mine != 1 && theirs != 1) {
        std::string text;
        for (Value each : values)
          text += (text.empty() ? "" : " and ") + shapeText(TensorBuilder::shapeOf(each));
        return refuse("shapes " + text + " cannot be broadcast together");
      }
      if (mine == 1)
        mine = theirs;
    }
  }
  return success();
}

LogicalResult Node::broadcast(MutableArrayRef<Value> values) {
  Shape shape;
  if (failed(broadcastShape(values, shape)))
    return failure();
  for (Value &value : values)
    value = b.broadcastTo(value, shape);
  return success();
}

LogicalResult Node::sameElements(ArrayRef<unsigned> which) {
  std::optional<unsigned> first;
  for (unsigned i : which) {
    if (has(i) && first && element(i) != element(*first))
      return refuse("operands " + Twine(*first) + " and " + Twine(i) + " have different element types");
    if (has(i) && !first)
      first = i;
  }
  return success();
}

Value Node::constantOf(const HostTensor &tensor) {
  return arith::ConstantOp::create(b, cast<TypedAttr>(tensor.toAttribute()));
}

Value Node::intConstant(Ints values, Ints shape, Type element) {
  if (!element)
    element = b.getI64Type();
  HostTensor tensor(RankedTensorType::get(shape, element));
  for (auto [i, value] : llvm::enumerate(values))
    tensor.setInt(i, value);
  return constantOf(tensor);
}

Value Node::floatConstant(ArrayRef<double> values, Ints shape, Type element) {
  HostTensor tensor(RankedTensorType::get(shape, element));
  for (auto [i, value] : llvm::enumerate(values))
    tensor.setFloat(i, value);
  return constantOf(tensor);
}

/// Whether the numbers are places in a dimension of at most `limit` elements, as ArgMax gives them.
static bool arePlaces(Value indices, int64_t limit) {
  while (Operation *op = indices.getDefiningOp()) {
    if (auto place = dyn_cast<nn::ArgReduceOp>(op))
      return cast<RankedTensorType>(place.getInput().getType()).getDimSize(place.getAxis()) <= limit;
    if (!isa<nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp, nn::SliceOp, arith::ExtSIOp, arith::TruncIOp>(
            op))
      return false;
    indices = op->getOperand(0);
  }
  return false;
}

Value Node::index(Value indices, int64_t limit, StringRef name) {
  auto type = cast<RankedTensorType>(indices.getType());
  if (!type.getElementType().isInteger(32) && !type.getElementType().isInteger(64)) {
    (void)refuse("'" + name + "' holds indices that are neither i32 nor i64");
    return {};
  }
  if (limit < 1) {
    (void)refuse("'" + name + "' indexes a dimension without elements");
    return {};
  }
  if (arePlaces(indices, limit))
    return indices;
  if (const HostTensor *known = walk.constantValue(indices)) {
    bool negative = false;
    for (int64_t i = 0; i < known->size(); ++i) {
      int64_t value = known->getInt(i);
      if (value < -limit || value >= limit) {
        (void)refuse("index " + Twine(value) + " in '" + name + "' is not in [" + Twine(-limit) + ", " +
                     Twine(limit) + ")");
        return {};
      }
      negative |= value < 0;
    }
    if (!negative)
      return indices;
  } else {
    indices = nn::CheckIndexOp::create(b, type, indices, name, -limit, limit, IntegerAttr());
  }
  Value wrapped = b.addScalar(indices, static_cast<double>(limit));
  return b.select(b.compare(arith::CmpIPredicate::slt, indices, b.zerosLike(indices)), wrapped, indices);
}

SmallVector<int64_t> channelsLast(int64_t rank) {
  SmallVector<int64_t> permutation = {0};
  for (int64_t i = 2; i < rank; ++i)
    permutation.push_back(i);
  permutation.push_back(1);
  return permutation;
}

SmallVector<int64_t> channelsFirst(int64_t rank) {
  SmallVector<int64_t> permutation = {0, rank - 1};
  for (int64_t i = 1; i < rank - 1; ++i)
    permutation.push_back(i);
  return permutation;
}

SmallVector<int64_t> filterLast(int64_t rank) {
  SmallVector<int64_t> permutation;
  for (int64_t i = 2; i < rank; ++i)
    permutation.push_back(i);
  permutation.append({1, 0});
  return permutation;
}

StringRef Node::ties() {
  auto said = op->getAttrOfType<StringAttr>(onnx::kTracedTies);
  return said ? said.getValue() : StringRef();
}

bool normalizesByBatch(onnx::NodeOp op) {
  if (op->hasAttr(onnx::kTracedNorm))
    return true;
  if (op.getSinceVersion() >= 14)
    return op.getInt("training_mode", 0) != 0;
  for (unsigned i = 1; i < op.getNumResults(); ++i)
    if (!op.getOutputName(i).empty())
      return true;
  return false;
}

Type signlessElement(Type element, bool float64) {
  MLIRContext *context = element.getContext();
  if (element.isF32() || element.isF16() || element.isBF16() || element.isF64())
    return float64 ? Type(Float64Type::get(context)) : element;
  if (auto integer = dyn_cast<IntegerType>(element);
      integer && llvm::is_contained({1, 2, 4, 8, 16, 32, 64}, integer.getWidth()))
    return IntegerType::get(context, integer.getWidth() == 1 ? 1 : std::max(integer.getWidth(), 8u));
  return {};
}

Bound boundAs(Value value, Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  return {value, element.isUnsignedInteger(), width == 2 || width == 4 ? width : 0};
}

ElementsAttr signlessAttribute(ElementsAttr attribute, bool float64, StringRef name) {
  auto from = dyn_cast<RankedTensorType>(attribute.getShapedType());
  Type element = from ? signlessElement(from.getElementType(), float64) : Type();
  if (!element)
    return {};
  auto type = RankedTensorType::get(from.getShape(), element);
  if (type == from)
    return attribute;
  if (isa<FloatType>(element)) {
    auto tensor = HostTensor::fromAttribute(attribute);
    return failed(tensor) ? ElementsAttr() : tensor->withType(type).toAttribute(name);
  }
  if (from.getElementType().isSignlessInteger(2) || from.getElementType().isSignlessInteger(4)) {
    auto tensor = HostTensor::fromAttribute(attribute); // the file's bytes are not sign-extended
    return failed(tensor) ? ElementsAttr() : tensor->withType(type).toAttribute(name);
  }
  if (auto dense = dyn_cast<DenseElementsAttr>(attribute))
    return DenseElementsAttr::getFromRawBuffer(type, dense.getRawData());
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute))
    return DenseResourceElementsAttr::get(type, resource.getRawHandle());
  return {};
}

} // namespace ortc::legalize
