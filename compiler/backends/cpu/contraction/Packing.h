// Copies panels of the vector operand of a contraction to the workspace.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/IndexBuilder.h"

namespace ortc::cpu {

/// Panels of `depth` rows of vectors * lanes elements, row after row. Columns beyond the live ones are zero.
struct PanelCopy {
  mlir::Value source;
  emit::Offset sourceAt;   ///< of the first column at k = 0
  int64_t laneStride = 1;  ///< between columns
  int64_t depthStride = 1; ///< between values of k
  mlir::Type narrowType;   ///< f16 or bf16 stored as i16, converted while copying; null otherwise

  mlir::Value panel;
  emit::Offset panelAt; ///< of the first panel
  int64_t vectors = 1, lanes = 1, tail = 1;
  emit::Offset panels = 1; ///< side by side in the source
  int64_t panelStep = 0;   ///< between panels in the workspace

  emit::Offset depth; ///< values of k
  /// depth modulo lanes where that is known to be one of two numbers: zero, or this in the block where `isLast` holds.
  int64_t lastRemainder = 0;
  mlir::Value isLast; ///< null: always
};

/// Where rows lie far apart no processor fetches the next one by itself: copies ask for the row that comes so
/// many later.
constexpr int64_t kFetchedRows = 8;

/// What elements are fetched for: to be read or written soon, or to be read from the second-level cache.
enum class Fetch { Read, Write, ReadLater };

/// Fetches `elements` elements from `at` on into a cache. They need not exist.
void fetchRun(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer, emit::Offset at,
              int64_t elements, Fetch fetch = Fetch::Read);

void emitPanelCopy(mlir::OpBuilder &builder, mlir::Location loc, const PanelCopy &copy);

} // namespace ortc::cpu
