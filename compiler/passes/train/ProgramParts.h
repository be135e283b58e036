// Finding, making and inlining parts of a program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/nn/TensorBuilder.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace ortc::train {

/// e.g. ("forward_train", 0) -> "forward_train_0".
std::string partName(llvm::StringRef part, int64_t binding);
/// The part, or null.
mlir::func::FuncOp findPart(mlir::ModuleOp module, llvm::StringRef part, int64_t binding);

/// The type of the argument of a part that is the input of that name, or null.
mlir::Type findInput(mlir::func::FuncOp part, llvm::StringRef wanted);
/// The bindings that have a forward function, in order.
llvm::SmallVector<int64_t> findBindings(mlir::ModuleOp module);

/// A value that goes in or out under an attribute, e.g. {train.tensor = @w}.
struct Port {
  mlir::NamedAttribute attribute;
  mlir::Value value;
  mlir::DictionaryAttr all = {}; ///< every attribute of the result it was, if it was one
};

/// Values by the name and the value of an attribute.
using ValuesByAttribute = llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, mlir::Value>;

/// A function being put together from others: arguments with equal attributes are one. Its type and the
/// attributes of its arguments are set at the end, at once: one after the other, each would cost as much as
/// all before it.
class FunctionComposer {
public:
  /// Appends a private function named `name` to the module.
  FunctionComposer(mlir::ModuleOp module, llvm::StringRef name, mlir::Location loc);

  mlir::func::FuncOp getFunction() { return function; }
  nn::TensorBuilder &getBuilder() { return builder; }

  /// The argument under `attribute`, added when it is missing. Fails when it is there with another type.
  /// `all` holds further attributes that a new argument gets.
  mlir::FailureOr<mlir::Value> getArgument(mlir::NamedAttribute attribute, mlir::Type type,
                                           mlir::DictionaryAttr all = {});
  /// The argument under `attribute`, or null.
  mlir::Value findArgument(mlir::NamedAttribute attribute) const;
  /// The attributes of every argument so far.
  llvm::ArrayRef<mlir::DictionaryAttr> getArgumentAttributes() const { return argumentAttributes; }
  /// Clones the body of `part`; its arguments are taken from `given` where the attribute is there, from this
  /// function's arguments elsewhere. Returns its results.
  mlir::FailureOr<llvm::SmallVector<Port>> inlinePart(mlir::func::FuncOp part,
                                                      llvm::ArrayRef<Port> given = {});
  /// Ends the function. Erases what nobody needs and, with `dropArguments`, arguments that are not used.
  void finish(llvm::ArrayRef<Port> results, bool dropArguments);

private:
  mlir::func::FuncOp function;
  nn::TensorBuilder builder;
  llvm::SmallVector<mlir::DictionaryAttr> argumentAttributes;
  ValuesByAttribute arguments;
};

/// Parameters of floating point, in the order of declaration.
llvm::SmallVector<TensorOp> findParameters(mlir::ModuleOp module);

mlir::NamedAttribute unitAttribute(mlir::MLIRContext *context, llvm::StringRef name);
mlir::NamedAttribute symbolAttribute(TensorOp tensor, llvm::StringRef name);
mlir::NamedAttribute nameAttribute(mlir::MLIRContext *context, llvm::StringRef name, llvm::StringRef value);

} // namespace ortc::train
