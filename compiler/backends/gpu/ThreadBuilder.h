// Builds the code that one thread of a block runs: its numbers, barriers, exchanges between lanes, arithmetic on
// indices, memory, assembly and conditions, for both vendors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/LoopBuilder.h"
#include "compiler/backends/gpu/Processor.h"

namespace ortc::gpu {

/// Blocks and grids have one dimension. A warp is kWarp neighbouring threads: half of a wavefront where AMD's have 64
/// lanes.
class ThreadBuilder : public LoopBuilder {
public:
  ThreadBuilder(mlir::Location loc, mlir::OpBuilder &builder, const Processor &processor)
      : LoopBuilder(loc, builder), processor(processor) {}

  Value thread(); ///< within the block
  Value block();  ///< within the grid
  /// The same numbers, read again: values that are computed from them need not wait in registers since an earlier
  /// place.
  Value threadAgain();
  Value blockAgain(); ///< on AMD block(): it takes no register of a thread
  /// While an object of this class lives, thread() gives the threadAgain() of its beginning.
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
  /// Ends a branch with a comment in assembly, so that LLVM merges it with no branch of equal instructions. Merging
  /// would choose all addresses before the branches, which takes a register for each. `number`: of the branch. Does
  /// nothing except on AMD.
  void endBranch(int64_t number);
  /// The index as a value that LLVM knows nothing about: it computes anew what depends on it, and keeps nothing from an
  /// earlier place. The index is below 2^31. Except on AMD, returns the index itself.
  Value anew(Value at);
  /// No instruction moves across, so loads of one side do not wait in registers on the other. Does nothing except on
  /// AMD.
  void separate();
  /// All threads of the block meet here, and see what the others have written.
  void barrier();
  /// The lanes of a warp (on AMD, of a wavefront) meet here, and see what the others have written.
  void warpBarrier();
  /// The value of the lane `distance` above; undefined if that is beyond the warp. Any scalar type.
  Value shuffleDown(Value value, int64_t distance);
  /// The value of the lane whose number differs by `bit`, a power of two below the warp's lanes (on AMD, the
  /// wavefront's).
  Value shuffleXor(Value value, int64_t bit);
  /// The value of the warp's first lane.
  Value fromFirstLane(Value value);

  // Arithmetic on indices, which never overflows. Constants are added last, so places that differ by a constant share
  // an address.

  Value add(Value a, Value b);
  Value add(Value a, int64_t b) { return add(a, index(b)); }
  Value sub(Value a, Value b);
  Value mul(Value a, int64_t b);

  /// A pointer to element `at` of a buffer, in its address space.
  Value pointerTo(Value buffer, Value at);
  /// The pointer, moved by so many bytes.
  Value advance(Value pointer, Value bytes);
  Value advance(Value pointer, int64_t bytes);
  /// Loads `count` neighbours as a vector in one access. The pointer is a multiple of the bytes of all of them.
  Value loadRun(Value pointer, mlir::Type element, int64_t count);
  void storeRun(Value run, Value pointer);
  Value loadFrom(Value pointer, mlir::Type element);
  Value runOf(mlir::ValueRange elements);
  llvm::SmallVector<Value> elementsOf(Value run);

  /// Assembly that LLVM neither moves nor merges. `result`: null where it has none, a struct where it has several.
  Value runAssembly(mlir::Type result, llvm::StringRef text, llvm::StringRef constraints,
                    mlir::ValueRange operands);
  /// Calls an intrinsic of LLVM. Null `result`: it has none.
  Value callIntrinsic(mlir::Type result, llvm::StringRef name, mlir::ValueRange operands);
  /// Calls one whose result is a struct of `count` values of type `element`.
  llvm::SmallVector<Value> callIntrinsic(mlir::Type element, int64_t count, llvm::StringRef name,
                                         mlir::ValueRange operands);
  Value constant32(int64_t value);

  /// if (condition) body().
  void guarded(Value condition, llvm::function_ref<void()> body);
  /// Values of `body` where the condition holds, `others` where it does not.
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

  Value latest; ///< number of the thread inside a ThreadAgain; null outside
};

} // namespace ortc::gpu
