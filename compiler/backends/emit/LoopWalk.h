// The walk over one point's reduced dimensions, pass by pass.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A point is an index of the parallel dimensions: one element, or a vector of neighbours along the lane dimension.
#pragma once

#include "compiler/backends/emit/ElementEmitter.h"

namespace ortc::emit {

class LoopWalk {
public:
  LoopWalk(LoopBuilder &builder, const kernels::LoopProgram &program, mlir::ValueRange buffers);

protected:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;
  /// Points side by side, each with its emitter.
  using Group = llvm::ArrayRef<ElementEmitter *>;
  using List = llvm::ArrayRef<unsigned>; ///< of reductions

  /// All passes from `pass` on.
  void emitGroup(Group members, unsigned pass = 0);
  /// Loops over the reduced dimensions from `level` on; returns the sums over them, reduction by reduction and
  /// member by member. Long loops are cut in blocks, whose sums are joined in order.
  Values walkReduced(Group members, unsigned pass, List list, size_t level);
  /// Adds the sums over `range` of the dimension at `level`, and all of those inside, to `start`.
  Values walkRange(Group members, unsigned pass, List list, size_t level, IndexRange range,
                   mlir::ValueRange start);
  Values joined(Group members, List list, mlir::ValueRange total, llvm::ArrayRef<Value> part);
  /// One point of the domain: the inputs of the reductions of a pass, and the stores of outputs.
  Values emitPoint(Group members, unsigned pass, List list);
  /// Binds the results of a pass.
  void finishPass(Group members, List list, llvm::ArrayRef<Value> sums);
  void storePerRow(ElementEmitter &emitter);

  /// Evaluates what does not change with the dimensions in `inner`: of everything, or of one pass.
  void hoistRoots(ElementEmitter &emitter, uint64_t inner);
  void hoistPass(ElementEmitter &emitter, unsigned pass, uint64_t inner);

  llvm::SmallVector<unsigned> reductionsOf(unsigned pass) const;
  bool storesIn(unsigned pass) const;
  Value identityOf(unsigned number, const ElementEmitter &member);
  /// Of every reduction, those of all members.
  Values identitiesOf(Group members, List list);
  /// The input of a reduction at the point, in the type of the accumulator.
  Value accumulated(ElementEmitter &emitter, const kernels::LoopReduction &reduction);

  LoopBuilder &b;
  const kernels::LoopProgram &program;
  Values buffers;
  uint64_t reducedMask;
  llvm::SmallVector<unsigned> outerReduced; ///< reduced dimensions but the lane one

private:
  void hoistReady(ElementEmitter &emitter, unsigned number, uint64_t inner, llvm::BitVector &seen);
};

} // namespace ortc::emit
