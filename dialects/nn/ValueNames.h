// Which value of the model a tensor is.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reports speak of tensors in the words of the model. An operation's location is that of the node it was made
// for; around it stands a mark when the operation makes a value that has a name, or a gradient of one.
// Locations are no part of what is compiled: with or without marks the code is the same.
#pragma once

#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"

#include <string>

namespace ortc::nn {

/// Metadata of the fused location that operations of a gradient have; inside is the location of what was
/// differentiated.
inline constexpr llvm::StringLiteral kGradientLocation = "gradient";

/// Marks that the operation at `location` which makes `result` makes the value `name`. So does what it transposes or
/// reshapes and is at `location`, too. An operation that has a mark keeps it.
void nameValue(mlir::Value result, llvm::StringRef name, mlir::Location location);

/// The same of an argument.
void nameArgument(mlir::BlockArgument argument, llvm::StringRef name);

/// Marks that the operation which made `gradient`, at `location`, makes the gradient of `value`. Nothing happens when
/// `value` has no name.
void nameGradient(mlir::Value gradient, mlir::Value value, mlir::Location location);

/// "relu1"; "gradient of relu1"; "part of Softmax:node_3" and "part of the gradient of Softmax:node_3" for
/// what has no name itself; "" where the location does not tell.
std::string findValueName(mlir::Location location);

/// The location of something with several results, a kernel, that knows their names; and what it says of one
/// of them, "" where it says nothing.
mlir::Location nameResults(mlir::Location location, llvm::ArrayRef<std::string> names);
std::string findResultName(mlir::Location location, unsigned result);

} // namespace ortc::nn
