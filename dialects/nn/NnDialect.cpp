// Registration of the nn dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/nn/NnDialect.h"

#include "dialects/nn/PackedOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/nn/NnDialect.cpp.inc"
#include "dialects/nn/NnEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/nn/NnAttributes.cpp.inc"

void ortc::nn::NnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/nn/NnAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/nn/NnOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/nn/NnPackedOps.cpp.inc"
      >();
}

mlir::Operation *ortc::nn::NnDialect::materializeConstant(mlir::OpBuilder &builder, mlir::Attribute value,
                                                          mlir::Type type, mlir::Location loc) {
  return mlir::arith::ConstantOp::materialize(builder, value, type, loc);
}
