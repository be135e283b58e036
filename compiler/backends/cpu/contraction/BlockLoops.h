// Loops over the chunks and blocks of a contraction, whose bounds may be constants.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/IndexBuilder.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ortc::cpu {

/// A position in a range that is cut in chunks: bounds are static when there is one chunk.
struct ChunkRange {
  emit::Offset begin, end;
  mlir::Value isLast; ///< null when there is one chunk
};

/// Common to emitters of contractions: where they emit, and control flow.
class BlockLoops {
protected:
  using Body = llvm::function_ref<void(emit::Offset)>;

  explicit BlockLoops(mlir::OpBuilder &builder)
      : builder(builder), loc(builder.getUnknownLoc()), index(builder, loc) {}

  /// No loop where the bounds are static and leave one step or none.
  void loop(emit::Offset from, emit::Offset to, int64_t step, Body body);
  /// `body` where `condition` holds; null holds always.
  void guarded(mlir::Value condition, llvm::function_ref<void()> body);
  /// Chunk `chunk` of `count`, each `size` of `total`.
  ChunkRange rangeOf(emit::Offset chunk, int64_t count, int64_t size, int64_t total);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  emit::IndexBuilder index;
};

} // namespace ortc::cpu
