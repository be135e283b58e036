//===- FindSuspect.h - which operation a wrong gradient comes from --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/autodiff/Differentiate.h"
#include "compiler/evaluator/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <map>
#include <string>

namespace ortc::driver {

/// The value of a graph input or of a train.tensor, in the layout that the program has it in. Fails where there is none.
using ValueSource = std::function<mlir::FailureOr<evaluator::HostTensor>(mlir::func::FuncOp function, unsigned argument)>;

/// Gradients by tensor name, dense and in the layout of the ONNX file.
using NamedGradients = std::map<std::string, std::vector<double>>;

/// Looks for the cause of wrong gradients, one sentence. First the evaluator computes them too: where it has other numbers
/// than `compiled`, the generated code is wrong. Otherwise every operation of forward part and loss, in the order of the
/// program, is differentiated alone, by its rule and by differences, and the first that disagrees is named.
/// `parts` is the program after phase `differentiate`.
std::string findSuspect(mlir::ModuleOp parts, const ValueSource &values, const NamedGradients &compiled,
                        const autodiff::DifferentiateOptions &options, double tolerance);

} // namespace ortc::driver
