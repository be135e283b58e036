// The dialects nn, arith and math on host tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plain meaning of a tensor program, one loop per operation. It folds constants at compile time and is the oracle
// that tests compare generated code and gradients with; it shares nothing with code generation.
#pragma once

#include "compiler/evaluator/HostTensor.h"
#include "mlir/IR/Operation.h"

namespace ortc::nn {
class ScanOp;
}

namespace ortc::evaluator {

enum class Precision {
  declared, ///< every result is rounded to its element type; sums are kept in double until then
  f64,      ///< floating-point results are never rounded: a float32 program as float64 would run it
};

class Evaluator {
public:
  explicit Evaluator(Precision precision = Precision::declared) : precision(precision) {}

  /// Evaluates one operation. Fails, without a diagnostic, on an operation it does not know (see `isKnown`), and with
  /// one on an index out of range.
  mlir::FailureOr<llvm::SmallVector<HostTensor>> evaluate(mlir::Operation *op,
                                                          llvm::ArrayRef<const HostTensor *> operands) const;

  /// Evaluates a single-block region from its arguments to its terminator's operands. Emits an error at the first
  /// operation that fails.
  mlir::FailureOr<llvm::SmallVector<HostTensor>> evaluate(mlir::Block &block,
                                                          llvm::ArrayRef<HostTensor> arguments) const;

  /// Whether `evaluate` knows operations of this name.
  static bool isKnown(mlir::Operation *op);

private:
  mlir::FailureOr<llvm::SmallVector<HostTensor>>
  evaluateScan(nn::ScanOp scan, llvm::ArrayRef<const HostTensor *> operands) const;

  Precision precision;
};

} // namespace ortc::evaluator
