// A program's functions by the evaluator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/evaluator/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "support/Expected.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ortc::check {

/// The value of a graph input or of a train.tensor, in the layout that the program has it in. Fails where
/// there is none.
using ValueSource =
    std::function<mlir::FailureOr<evaluator::HostTensor>(mlir::func::FuncOp function, unsigned argument)>;

/// Every value of a function.
using ProgramValues = llvm::DenseMap<mlir::Value, evaluator::HostTensor>;

/// Evaluates `function`, keeping every value. `outputs`: results of other functions by name, which arguments
/// may ask for; those of this one are added. Fails on an operation that the evaluator does not know and on an
/// index out of range.
Expected<ProgramValues> evaluateFunction(mlir::func::FuncOp function, const ValueSource &source,
                                         llvm::StringMap<evaluator::HostTensor> &outputs);

/// What a program gives, by what it is: "loss", "gradient of 'W'", "output 'y'". Dense; gradients in the layout of the
/// ONNX file.
using NamedValues = std::map<std::string, std::vector<double>>;

/// How one value of generated code compares with the evaluator's.
struct CodeComparison {
  std::string name;
  int64_t elements = 0;
  /// largest difference of two elements, relative to the largest magnitude; infinite where one is finite alone
  double distance = 0;
  bool isGood = true;
};

/// Compares `compiled` with the results of `function`. Magnitudes below 1e-4 of the largest gradient count as
/// that much: a gradient that is zero in theory is rounding errors of two kinds. Values that `compiled` lacks
/// are left out.
Expected<std::vector<CodeComparison>> compareWithEvaluator(mlir::func::FuncOp function,
                                                           const ValueSource &source,
                                                           const NamedValues &compiled, double tolerance);

/// Dense values in the order of the file, permuted to the order that the program has the tensor in.
evaluator::HostTensor toProgramLayout(const std::vector<double> &values, mlir::Operation *tensor);

} // namespace ortc::check
