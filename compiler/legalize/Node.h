// What a handler works with.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A handler is a function `LogicalResult f(Node &n)` that reads operands and attributes of one ONNX node,
// builds nn, arith and math operations with `n.b`, and ends with `n.yield(...)` or `n.refuse("why")`. It
// knows every shape, and may ask for the value of an operand where the standard's meaning depends on it
// (shapes, axes, scales).
#pragma once

#include "compiler/evaluator/HostTensor.h"
#include "compiler/legalize/Budget.h"
#include "compiler/legalize/Legalize.h"
#include "dialects/nn/TensorBuilder.h"
#include "dialects/onnx/OnnxDialect.h"

#include <memory>
#include <vector>

namespace ortc::legalize {

using evaluator::HostTensor;
using mlir::failed;
using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::success;
using mlir::Type;
using mlir::Value;
using nn::Shape;
using nn::TensorBuilder;
using Ints = llvm::ArrayRef<int64_t>;

/// No tensor has more elements: sizes in bytes and products of sizes stay far from overflow.
inline constexpr int64_t kMostElements = int64_t(1) << 40;
/// Product of the dimensions; kMostElements + 1 when it is larger than kMostElements.
int64_t elementCount(Ints shape);

/// Sizes, counts, pads and strides beyond this are taken for damage. What a node lists has limits of its own
/// (`Node::list`).
inline constexpr int64_t kMostSize = int64_t(1) << 26;

/// A legalised ONNX value: a tensor, or a sequence of them, which exists at compile time only. Signedness is
/// no part of the types: unsigned integers are marked here, and so are integers of 2 and 4 bits, which
/// programs hold as i8.
struct Bound {
  Value value;
  bool isUnsigned = false;
  unsigned lowBits = 0;                                      ///< 2 or 4; 0 for every other type
  std::shared_ptr<const std::vector<Bound>> items = nullptr; ///< of a sequence

  explicit operator bool() const { return value || items; }
  /// Another value of the same ONNX type.
  Bound with(Value other) const { return {other, isUnsigned, lowBits, nullptr}; }
  /// Whether both are tensors of one ONNX element type; shapes are another matter.
  bool isLike(const Bound &other) const { return isUnsigned == other.isUnsigned && lowBits == other.lowBits; }
};
using Items = std::vector<Bound>;
/// What an item that is copied takes from the numbers of the budget.
inline constexpr int64_t kNumbersPerItem = sizeof(Bound) / sizeof(int64_t);

/// An ONNX element type in a program.
struct ElementType {
  Type type; ///< null when the type is not supported
  bool isUnsigned = false;
  unsigned lowBits = 0;

  unsigned width() const { return lowBits ? lowBits : type.getIntOrFloatBitWidth(); }
};

class Node;

/// What handlers need from the walk around them.
class Walk {
public:
  virtual ~Walk() = default;
  virtual const LegalizeOptions &options() const = 0;
  virtual Budget &budget() = 0;
  /// The value of a constant: an arith.constant or an initializer that is not trained. Null otherwise, and
  /// when the budget does not allow its elements.
  virtual const HostTensor *constantValue(Value value) = 0;
  /// How many elements a constant has; 0 for other values.
  virtual int64_t constantSize(Value value) = 0;
  /// An initializer that would be trained is needed at compile time: keeps it constant, for this node at once
  /// and for the whole program in another walk. False if `value` is none.
  virtual bool keepConstant(Value value, llvm::StringRef why) = 0;
  /// The running statistic, or the range of a quantiser, behind an ONNX value as a state tensor, or null when it is
  /// not a constant.
  virtual Value stateOf(Value onnxValue, onnx::NodeOp user) = 0;
  virtual void updateState(Value onnxValue, onnx::NodeOp user, Value newValue) = 0;
  /// The number of training steps done so far (i64, rank 0), which random operators draw by and quantisers observe by;
  /// state that every training step counts up.
  virtual Value stepsBefore() = 0;
  /// What random operations draw by: the number of steps and the scalar `random.seed`. Equal to the former where that
  /// is 0.
  virtual Value randomStep() = 0;
  /// The key of a node's draws: from the seed (the node's own, or else the caller's) and the name of its first
  /// output, so that it does not depend on what else the model holds. `part` tells several draws of a node apart.
  virtual uint32_t randomKey(onnx::NodeOp user, std::optional<uint64_t> seed, unsigned part) = 0;
  /// What ByMode gives is larger in training than what it is in inference.
  virtual void noteWideMask(onnx::NodeOp node) = 0;
  /// Legalises a subgraph of `node` in place, at the builder's insertion point, and returns its outputs.
  /// Fails when a node of it is refused, which is in the report then.
  virtual LogicalResult inlineGraph(Node &node, onnx::GraphOp graph, llvm::ArrayRef<Bound> arguments,
                                    SmallVector<Bound> &outputs) = 0;
  /// Runs `build`, which makes a body that runs several times. Fails when it fails or draws random numbers,
  /// which no two runs may share; what it has refused is forgotten then.
  virtual LogicalResult attempt(llvm::function_ref<LogicalResult()> build) = 0;
  /// Takes an operation that was given up out of the program.
  virtual void discard(mlir::Operation *op) = 0;
};

class Node {
public:
  Node(onnx::NodeOp op, TensorBuilder &b, Walk &walk, SmallVector<Bound> operands)
      : op(op), b(b), walk(walk), operands(std::move(operands)), results(op.getNumResults()) {}

  onnx::NodeOp op;
  TensorBuilder &b;
  Walk &walk;

  const LegalizeOptions &options() const { return walk.options(); }
  int64_t version() const { return static_cast<int64_t>(const_cast<onnx::NodeOp &>(op).getSinceVersion()); }

  // Operands: null when absent.
  unsigned size() const { return operands.size(); }
  Value operator[](unsigned i) const { return i < operands.size() ? operands[i].value : Value(); }
  bool has(unsigned i) const { return static_cast<bool>((*this)[i]); }
  bool isUnsigned(unsigned i) const { return i < operands.size() && operands[i].isUnsigned; }
  Bound bound(unsigned i) const { return i < operands.size() ? operands[i] : Bound(); }
  /// The tensors of operand i, which is a sequence; null when it is none.
  const Items *items(unsigned i) const { return i < operands.size() ? operands[i].items.get() : nullptr; }
  Ints shape(unsigned i) const { return TensorBuilder::shapeOf((*this)[i]); }
  int64_t rank(unsigned i) const { return TensorBuilder::rankOf((*this)[i]); }
  Type element(unsigned i) const { return TensorBuilder::elementOf((*this)[i]); }
  /// The element type of operand i, signedness and low bits included.
  ElementType typeOf(unsigned i) const { return {element(i), operands[i].isUnsigned, operands[i].lowBits}; }
  bool isFloat(unsigned i) const { return mlir::isa<mlir::FloatType>(element(i)); }
  /// The ONNX name of operand i.
  llvm::StringRef name(unsigned i);

  /// The value of operand i if it is known at compile time, else null.
  const HostTensor *constant(unsigned i) { return has(i) ? walk.constantValue((*this)[i]) : nullptr; }
  /// The value of an operand that has to be known at compile time; refuses otherwise. `what` is its name in
  /// the standard.
  LogicalResult constant(unsigned i, llvm::StringRef what, const HostTensor *&value);
  LogicalResult ints(unsigned i, llvm::StringRef what, SmallVector<int64_t> &values);
  LogicalResult floats(unsigned i, llvm::StringRef what, SmallVector<double> &values);
  /// Integers that moved from attribute to operand: operand i when present, else the attribute. Empty when
  /// neither is.
  LogicalResult intsAt(unsigned i, llvm::StringRef name, SmallVector<int64_t> &values,
                       bool *present = nullptr);

  // Attributes.
  int64_t getInt(llvm::StringRef name, int64_t orElse) { return op.getInt(name, orElse); }
  double getFloat(llvm::StringRef name, float orElse) { return op.getFloat(name, orElse); }
  llvm::StringRef getString(llvm::StringRef name, llvm::StringRef orElse) {
    return op.getString(name, orElse);
  }
  SmallVector<int64_t> getInts(llvm::StringRef name) { return llvm::to_vector(op.getInts(name)); }
  bool hasAttribute(llvm::StringRef name) { return static_cast<bool>(op.getOnnxAttr(name)); }
  /// The type for an ONNX element type number (TensorProto.DataType).
  ElementType elementType(int64_t onnxType);

  /// Who gets the gradient of equal elements, as the exported program has it; empty where nothing says so.
  llvm::StringRef ties();

  /// Whether result i has a name, that is may be used.
  bool wants(unsigned i) { return i < results.size() && !op.getOutputName(i).empty(); }
  LogicalResult yield(Value value) { return yield(mlir::ValueRange(value)); }
  /// The first results; unsignedness follows from operands of the same type unless set by `yieldAs`.
  LogicalResult yield(mlir::ValueRange values);
  LogicalResult yieldAs(Value value, bool isUnsigned, unsigned lowBits = 0);
  LogicalResult yieldBound(llvm::ArrayRef<Bound> values);
  /// Says why the node cannot be compiled (lower case, no full stop).
  LogicalResult refuse(const llvm::Twine &reason);

  // Before any work and allocation, what it takes; refuses what the budget does not allow.
  /// Numbers at compile time, of which the node holds `count` at once.
  LogicalResult list(int64_t count);
  /// Nodes, or items of sequences, that the node is expanded to.
  LogicalResult expand(int64_t count);

  // Helpers that many handlers share.
  /// Refuses a node without one of these operands. The importer has checked operators of the standard already.
  LogicalResult require(llvm::ArrayRef<unsigned> which);
  /// An axis counted from the end when negative; refuses one that is out of range.
  LogicalResult axis(int64_t &axis, int64_t rank);
  /// All of them, sorted; refuses repeated ones.
  LogicalResult axes(SmallVector<int64_t> &axes, int64_t rank);
  /// The shape that NumPy's rules give for operands of these shapes; refuses shapes that do not fit.
  LogicalResult broadcastShape(llvm::ArrayRef<Value> values, Shape &shape);
  /// Broadcasts all values to one shape.
  LogicalResult broadcast(llvm::MutableArrayRef<Value> values);
  /// Refuses operands whose element types differ; those that are absent do not count.
  LogicalResult sameElements(llvm::ArrayRef<unsigned> which);
  Value constantOf(const HostTensor &tensor);
  /// A constant of integers (i64 unless said otherwise) of that shape.
  Value intConstant(Ints values, Ints shape, Type element = {});
  Value intVector(Ints values) { return intConstant(values, {static_cast<int64_t>(values.size())}); }
  /// A constant of floating-point values rounded to `element`.
  Value floatConstant(llvm::ArrayRef<double> values, Ints shape, Type element);
  /// Indices in [-limit, limit) checked (at compile time where they are known) and counted from the start.
  /// Null when a known one is out of range, which is refused.
  Value index(Value indices, int64_t limit, llvm::StringRef name);

  SmallVector<Bound> takeResults() { return std::move(results); }
  const std::string &reason() const { return refusal; }

private:
  SmallVector<Bound> operands, results;
  std::string refusal;
};

/// NCx -> NxC and back, and the filter's permutation (features and channels to the end), for a rank.
SmallVector<int64_t> channelsLast(int64_t rank);
SmallVector<int64_t> channelsFirst(int64_t rank);
SmallVector<int64_t> filterLast(int64_t rank);

/// Whether the file says that a BatchNormalization uses the statistics of its batch. Before opset 14 only the
/// number of outputs tells.
bool normalizesByBatch(onnx::NodeOp op);

/// "2x3x4".
std::string shapeText(Ints shape);

/// Converts an attribute of the onnx dialect (signed and unsigned element types) to a signless one; with
/// `float64`, floating-point data to f64. Null when the element type is not supported.
/// Integers of 2 and 4 bits become i8.
mlir::ElementsAttr signlessAttribute(mlir::ElementsAttr attribute, bool float64, llvm::StringRef name);
/// A value with the signedness and the width that `element` of the onnx dialect has.
Bound boundAs(Value value, Type element);
/// The signless element type for an element type of the onnx dialect; null when it is not supported.
Type signlessElement(Type element, bool float64);

} // namespace ortc::legalize
