// One table of constants for the programs of several families.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace ortc::driver {

/// The symbols of the tensors of `module`.
llvm::StringSet<> listTensors(mlir::ModuleOp module);

/// Programs that were cut in different ways have different constants. Gives every module all of them, with the names of
/// the first module that has one and in the order of the first module, behind whose tensors stand those that only
/// others have. Initial values of the same bytes become one. `known`: the tensors that all modules had before.
void shareConstants(llvm::ArrayRef<mlir::ModuleOp> modules, const llvm::StringSet<> &known);

} // namespace ortc::driver
