// Short words for the code of one thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/LoopBuilder.h"
#include "compiler/backends/gpu/Processor.h"

namespace ortc::gpu {

/// Builds what a thread of a block does. Blocks and grids have one dimension.
class ThreadBuilder : public LoopBuilder {
public:
  ThreadBuilder(mlir::Location loc, mlir::OpBuilder &builder, const Processor &processor)
      : LoopBuilder(loc, builder), processor(processor) {}

  Value thread(); ///< within the block
  Value block();  ///< within the grid
  /// The same, read again: what follows from them does not wait in registers from an earlier place on.
  Value threadAgain();
  Value blockAgain(); ///< on AMD block(), which is no register of a thread
  /// While it lives, thread() is what threadAgain() was at its beginning.
  class ThreadAgain {
  public:
    explicit ThreadAgain(ThreadBuilder &b) : b(b), before(b.latest) { b.latest = b.threadAgain(); }
    ~ThreadAgain() { b.latest = before; }
    ThreadAgain(const ThreadAgain &) = delete;
    ThreadAgain &operator=(const ThreadAgain &) = delete;

  private:
    ThreadBuilder &b;
    const Value before;
  };
  /// Ends a branch so that LLVM merges it with no other of equal instructions: it would choose all addresses before the
  /// branches, which takes a register for each. `number`: which branch. On AMD only.
  void endBranch(int64_t number);
  /// An index as one of which LLVM knows nothing: what follows from it is computed anew, not kept from an earlier place
  /// on. It is below 2^31. On AMD only; elsewhere the index itself.
  Value anew(Value at);
  /// No instruction moves across, so that what is loaded on one side does not wait in registers on the other. AMD only.
  void separate();
  /// All threads of the block meet, and see what others have written.
  void barrier();
  /// The warp's lanes see what the others have written.
  void warpBarrier();
  /// The value that the lane `distance` above has; of lanes beyond the warp anything. Any scalar type.
  Value shuffleDown(Value value, int64_t distance);
  /// The value of the lane whose number differs by `bit`, a power of two.
  Value shuffleXor(Value value, int64_t bit);
  /// The value of the warp's first lane.
  Value fromFirstLane(Value value);

  // Indices never leave the range of their type. Constants are added last: places that differ by one share an address.

  Value add(Value a, Value b);
  Value add(Value a, int64_t b) { return add(a, index(b)); }
  Value sub(Value a, Value b);
  Value mul(Value a, int64_t b);

  /// A pointer to element `at` of a buffer, in its address space.
  Value pointerTo(Value buffer, Value at);
  /// So many bytes further.
  Value advance(Value pointer, Value bytes);
  Value advance(Value pointer, int64_t bytes);
  /// `count` neighbours as a vector of the `llvm` dialect, in one access: the pointer is a multiple of their bytes.
  Value loadRun(Value pointer, mlir::Type element, int64_t count);
  void storeRun(Value run, Value pointer);
  Value loadFrom(Value pointer, mlir::Type element);
  Value runOf(mlir::ValueRange elements);
  llvm::SmallVector<Value> elementsOf(Value run);

  /// Assembly that LLVM neither moves nor merges. `result`: null where it has none, a struct where it has several.
  Value runAssembly(mlir::Type result, llvm::StringRef text, llvm::StringRef constraints,
                    mlir::ValueRange operands);
  /// An intrinsic of LLVM; null `result`: it has none.
  Value callIntrinsic(mlir::Type result, llvm::StringRef name, mlir::ValueRange operands);
  /// One whose result is a struct of `count` such values.
  llvm::SmallVector<Value> callIntrinsic(mlir::Type element, int64_t count, llvm::StringRef name,
                                         mlir::ValueRange operands);
  Value constant32(int64_t value);

  /// if (condition) body().
  void guarded(Value condition, llvm::function_ref<void()> body);
  /// Values that are `body`'s where the condition holds, and `others` elsewhere.
  llvm::SmallVector<Value> guarded(Value condition, mlir::ValueRange others,
                                   llvm::function_ref<llvm::SmallVector<Value>()> body);
  Value less(Value a, Value b) {
    return mlir::arith::CmpIOp::create(*this, mlir::arith::CmpIPredicate::slt, a, b);
  }
  Value less(Value a, int64_t b) { return less(a, index(b)); }
  Value choose(Value condition, Value value, Value other) {
    return mlir::arith::SelectOp::create(*this, condition, value, other);
  }
  /// Both conditions hold; `a` may be null, which always does.
  Value both(Value a, Value b) { return a ? mlir::arith::AndIOp::create(*this, a, b).getResult() : b; }

  const Processor &processor;

private:
  Value readByAssembly(llvm::StringRef text, llvm::StringRef constraints, mlir::ValueRange operands);
  Value readThread();
  /// `move` on the 32-bit words of a value.
  Value byWords(Value value, llvm::function_ref<Value(Value)> move);
  Value laneOfWave();
  /// The word that a lane of the wavefront has (AMD).
  Value wordOfLane(Value word, Value lane);

  Value latest; ///< number of the thread; null: as it is read first
};

} // namespace ortc::gpu
