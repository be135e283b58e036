// Code for the nodes of a loop program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/LoopBuilder.h"
#include "compiler/backends/emit/MathExpansion.h"
#include "compiler/kernels/loop/LoopProgram.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>

namespace ortc::emit {

/// The type that holds `element` in a buffer: f16 and bf16 are their bits, booleans take a byte.
mlir::Type bufferType(mlir::Type element);

/// Evaluates nodes at one point of the domain, or at `width` neighbours along the lane dimension. What does not change
/// along the lanes is a scalar. Values are remembered in the innermost open scope; a scope belongs to one
/// place in the code (a loop body), so outer scopes' values can be used in inner ones.
class ElementEmitter {
public:
  using Value = mlir::Value;
  /// Supplies a node's value (scalar or lanes, as isLanes says), or null for the ordinary way.
  using Supplier = std::function<Value(unsigned node)>;

  ElementEmitter(LoopBuilder &builder, const kernels::LoopProgram &program, mlir::ValueRange buffers,
                 const MathOptions &options)
      : b(builder), program(program), buffers(buffers.begin(), buffers.end()), options(options),
        position(program.dims.size()) {
    openScope();
  }

  void openScope() { scopes.emplace_back(); }
  void closeScope() { scopes.pop_back(); }

  /// The index along a dimension, as of now; for the lane dimension that of the first lane.
  void setIndex(unsigned dim, Value index) { position[dim] = index; }
  Value getIndex(unsigned dim) const { return position[dim]; }
  /// 0: every dimension has one index, everything is scalar. Otherwise lanes lie along the lane dimension.
  void setWidth(int64_t lanes) { width = lanes; }
  int64_t getWidth() const { return width; }
  /// The index along the lane dimension is so much larger than the one that was set: a constant that is added last, as
  /// LLVM must see neighbours.
  void setShift(int64_t lanes) { shift = lanes; }
  /// Vectors that are loaded and stored fetch those `count` indices of a dimension ahead; 0: nothing.
  void setFetch(unsigned dim, int64_t count) {
    fetchDim = dim;
    fetch = count;
  }
  void setSupplier(Supplier function) { supplier = std::move(function); }

  /// Binds a node to a value, in the innermost scope.
  void bind(unsigned node, Value value) { scopes.back()[node] = value; }
  /// The node's value: a scalar, or a vector when it changes along the lanes.
  Value emit(unsigned node);
  /// As `emit`, spread over the lanes when there are any.
  Value emitVector(unsigned node) { return spreadLanes(emit(node)); }
  /// Evaluates now, in the innermost scope, every part of `node` that does not change with the dimensions in
  /// `inner`. What is in `seen` has been visited: an expression with shared parts has more paths than can be
  /// walked.
  void hoist(unsigned node, uint64_t inner, llvm::BitVector &seen);
  /// The scalar part of an index expression: lanes left out.
  Value emitIndex(const kernels::IndexExpr &expr);
  /// Stores a value of element type `element` (scalar or lanes) at `at`, in the buffer's form.
  void store(Value value, mlir::Type element, Value buffer, Value at);
  void store(Value value, mlir::Type element, Value buffer, const kernels::IndexExpr &at);
  Value loadContiguous(mlir::Type element, Value buffer, Value at);
  bool isLanes(unsigned node) const {
    return width > 0 && program.laneDim >= 0 && (program.nodes[node].dims >> program.laneDim & 1);
  }
  Value spreadLanes(Value value);
  /// An element of a buffer as a value: booleans are bytes in memory.
  Value fromStorage(Value value, mlir::Type element);

private:
  Value lookup(unsigned node) const;
  Value create(unsigned number, const kernels::LoopNode &node);
  void fetchAhead(Value buffer, Value at, const kernels::IndexExpr &expr, bool writes);
  Value createLoad(unsigned number, const kernels::LoopNode &node);
  /// An element of a small table, if the target finds it in registers; null if not.
  Value createLookup(const kernels::LoopNode &node);
  Value createConstant(unsigned number, const kernels::LoopNode &node);
  Value createIota(unsigned number, const kernels::LoopNode &node);
  Value createRandom(unsigned number, const kernels::LoopNode &node);
  Value createOperation(unsigned number, const kernels::LoopNode &node);
  Value createRange(unsigned number, const kernels::LoopNode &node);
  Value createDivision(unsigned number, const kernels::LoopNode &node);
  Value applyOperation(mlir::Operation *op, llvm::ArrayRef<Value> operands, bool lanes);
  /// The indices of all lanes as a vector of i64.
  Value laneIndices(const kernels::IndexExpr &expr);
  Value laneOf(Value value, int64_t lane);
  Value asIndex(Value value);
  Value inRange(Value index, const kernels::LoopNode &node);
  Value loadLanes(const kernels::IndexExpr &expr, llvm::function_ref<Value(Value)> loadAt);

  LoopBuilder &b;
  const kernels::LoopProgram &program;
  llvm::SmallVector<Value> buffers;
  MathOptions options;
  llvm::SmallVector<Value> position;
  int64_t width = 0, shift = 0, fetch = 0;
  unsigned fetchDim = 0;
  Supplier supplier;
  llvm::SmallVector<llvm::DenseMap<unsigned, Value>, 4> scopes;
};

} // namespace ortc::emit
