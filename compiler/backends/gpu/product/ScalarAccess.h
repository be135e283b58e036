// The operands of an epilogue at one element.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/Epilogue.h"
#include "compiler/backends/gpu/ThreadBuilder.h"

namespace ortc::gpu {

/// Access of an epilogue at the element of a thread.
class ScalarAccess final : public EpilogueAccess {
public:
  /// `at`: the position of an operand in its buffer.
  using Place = llvm::function_ref<std::pair<mlir::Value, mlir::Value>(unsigned operand)>;
  explicit ScalarAccess(Place place) : place(place) {}

  mlir::Value load(mlir::OpBuilder &builder, mlir::Location loc, unsigned operand) override {
    auto [buffer, at] = place(operand);
    return mlir::memref::LoadOp::create(builder, loc, buffer, mlir::ValueRange{at});
  }
  void store(mlir::OpBuilder &builder, mlir::Location loc, unsigned operand, mlir::Value value) override {
    auto [buffer, at] = place(operand);
    mlir::memref::StoreOp::create(builder, loc, value, buffer, mlir::ValueRange{at});
  }
  int64_t lanes() const override { return 0; }

private:
  Place place;
};

/// Runs the epilogue on a finished element. Without one, stores the element as operand 2.
inline void finishElement(ThreadBuilder &b, const Epilogue &epilogue, ScalarAccess::Place place,
                          mlir::Value sum) {
  ScalarAccess access(place);
  if (epilogue)
    epilogue(b, b.getLoc(), access, sum);
  else
    access.store(b, b.getLoc(), FusedEpilogue::firstOperand, sum);
}

} // namespace ortc::gpu
