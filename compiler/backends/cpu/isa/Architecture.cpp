// Instructions that an architecture need not have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/Architecture.h"

#include "llvm/Support/ErrorHandling.h"

using namespace mlir;

namespace ortc::cpu {

Value Architecture::emitScaling(OpBuilder &, Location, Value, Value) const { return Value(); }

void Architecture::emitUnitBegin(OpBuilder &, Location, Value) const {
  llvm_unreachable("an Isa without matrix unit has no products of blocks");
}

void Architecture::emitUnitEnd(OpBuilder &, Location) const {
  llvm_unreachable("an Isa without matrix unit has no products of blocks");
}

void Architecture::emitBlockProduct(OpBuilder &, Location, const BlockProduct &) const {
  llvm_unreachable("an Isa without matrix unit has no products of blocks");
}

Value Architecture::emitPairProduct(OpBuilder &, Location, Value, Value, Value) const {
  llvm_unreachable("an Isa without products of pairs has none");
}

} // namespace ortc::cpu
