// A tensor program as scalar nodes over one loop nest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The analysis behind loop kernels and behind the decision what to fuse. Every value of a kernel is written
// as a function of the indices of one loop nest (the domain): movement (broadcast, reshape, transpose, slice,
// pad, concat, gather, ...) turns into index arithmetic, arithmetic into nodes, reductions into passes over
// the domain's reduced dimensions.
#pragma once

#include "compiler/kernels/KernelWork.h"
#include "dialects/nn/NnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>
#include <vector>

namespace ortc::kernels {

/// constant + sum of scales[d] * index of dimension d + sum of dynamic[i].scale * value of node dynamic[i].node.
struct IndexExpr {
  struct Dynamic {
    unsigned node;
    int64_t scale;
    bool operator==(const Dynamic &other) const { return node == other.node && scale == other.scale; }
  };
  int64_t constant = 0;
  llvm::SmallVector<int64_t, 6> scales; ///< one per dimension of the domain
  llvm::SmallVector<Dynamic, 1> dynamic;

  bool operator==(const IndexExpr &other) const {
    return constant == other.constant && scales == other.scales && dynamic == other.dynamic;
  }
};

struct LoopDim {
  int64_t size = 1;
  bool reduced = false;
};

struct LoopNode {
  enum Kind {
    load,      ///< element `at` of buffer `buffer`
    constant,  ///< element `at` of the constant `op`
    iota,      ///< `at` as a number
    random,    ///< word `index` of the random bits of `op`: counter `at` and the step, operands[0]
    operation, ///< elementwise `op` of `operands`
    reduction, ///< the result of reduction `index`, at the current row
    range,     ///< operands[0] where low <= at < high and (at - low) % step == 0, operands[1] elsewhere
    quotient,  ///< at / step, an index
    remainder, ///< at % step, an index
  };
  Kind kind;
  mlir::Type element; ///< of the tensor; index for quotient and remainder
  IndexExpr at;
  unsigned buffer = 0;
  mlir::Operation *op = nullptr;
  llvm::SmallVector<unsigned, 3> operands;
  unsigned index = 0;
  int64_t low = 0, high = 0, step = 1;

  uint64_t dims = 0; ///< bit d: the value changes with dimension d
  int64_t cost = 0;  ///< of this node alone, in simple operations per element
  unsigned depth =
      0; ///< passes that must be over before it can be computed: 1 + that of the reductions it reads
};

/// A reduction over all reduced dimensions. Pass `pass` computes it.
struct LoopReduction {
  nn::ReduceKind kind;
  mlir::Operation *op = nullptr;
  mlir::Type element;
  unsigned input = 0; ///< node
  unsigned node = 0;  ///< the node of kind reduction that stands for the result
  unsigned pass = 0;
};

struct LoopOutput {
  unsigned buffer = 0; ///< inputs come first, then outputs
  unsigned node = 0;
  mlir::Type element;
  IndexExpr at;
  bool perRow = false; ///< one element per index of the parallel dimensions
  unsigned pass = 0;   ///< the pass that stores it; perRow ones are stored after the last pass
};

struct LoopProgram {
  llvm::SmallVector<LoopDim> dims; ///< outermost first, none of size one
  std::vector<LoopNode> nodes;     ///< operands before users
  llvm::SmallVector<LoopReduction> reductions;
  llvm::SmallVector<LoopOutput> outputs;
  llvm::SmallVector<mlir::Type> buffers; ///< tensor types
  unsigned passes = 1;                   ///< walks over the reduced dimensions
  int laneDim = -1; ///< the dimension whose neighbours fill a vector: the last one, or none at all

  bool lanesReduced() const { return laneDim >= 0 && dims[laneDim].reduced; }
  int64_t elements(bool reduced) const;
  llvm::SmallVector<int64_t> steps() const; ///< of dims: how many points apart its indices are, row-major
  uint64_t reducedMask() const;
  /// The nodes that a pass computes: inputs of its reductions, and outputs but those of rows.
  llvm::SmallVector<unsigned> rootsOf(unsigned pass) const;
  /// Whether a node is an element of a table that code keeps in registers or close by: 16, 32, 128 or 256 numbers of
  /// four bytes, at a place that another node names.
  bool isLookup(const LoopNode &node) const;
  /// In simple operations per point of the domain, all passes.
  int64_t costPerPoint() const;
  /// Floating-point operations of the whole program as KernelWork counts them; what does not change along a dimension
  /// is counted once.
  int64_t flops() const;
  KernelWork work() const; ///< without bytes
  /// Pairs (input, output) that may share memory: each element of the input is read before the output's element in the
  /// same place is written.
  llvm::SmallVector<int64_t> inPlacePairs() const;
};

/// Writes `outputs` as functions of `inputs`, which are buffers 0, 1, ...; outputs are the buffers after
/// them. Everything between is defined by operations outside of any plan.kernel boundary. Nothing and
/// `reason` when one loop nest cannot compute them.
std::optional<LoopProgram> analyzeLoops(mlir::ValueRange inputs, mlir::ValueRange outputs,
                                        std::string &reason);

/// Whether `op` can be part of a loop program at all.
bool isLoopOperation(mlir::Operation *op);
/// Cost of an elementwise operation in simple operations.
int64_t elementwiseCost(mlir::Operation *op);

/// Narrow numbers that are extended to f32. Readers of narrow tensors extend them where they load them.
struct Widening {
  mlir::Value from;
  mlir::Type type; ///< f16 or bf16, or an integer of 8 or 16 bits that says whether it is signed
};
/// The extension that `value` is, if it is one.
std::optional<Widening> findWidening(mlir::Value value);

/// The only operation of `kind` that `outputs` are computed with; null when there is none or more.
mlir::Operation *findOnly(mlir::ValueRange inputs, mlir::ValueRange outputs,
                          llvm::function_ref<bool(mlir::Operation *)> kind);

} // namespace ortc::kernels
