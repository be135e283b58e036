// What most architectures have in common, and instructions that one need not have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/Architecture.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/CodeGen/MachineFrameInfo.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::cpu {

std::optional<uint64_t> Architecture::findAlignedFrame(const llvm::MachineFrameInfo &info,
                                                       uint64_t stackAlign, uint64_t returnAddress) const {
  return returnAddress + info.getStackSize() + info.getMaxAlign().value() - stackAlign;
}

Architecture::Relocated Architecture::writeDistance(const Relocation &relocation, uint8_t *bytes) {
  if (!llvm::isInt<32>(relocation.distance()))
    return Relocated::TooFar;
  llvm::support::endian::write32le(bytes, static_cast<uint32_t>(relocation.distance()));
  return Relocated::Done;
}

Value Architecture::emitDenormalMode(OpBuilder &, Location, bool) const { return Value(); }

void Architecture::emitRestoreMode(OpBuilder &, Location, Value) const {}

Value Architecture::withBits(OpBuilder &builder, Location loc, Value word, uint64_t bits, bool areSet) {
  Value mask =
      LLVM::ConstantOp::create(builder, loc, word.getType(), static_cast<int64_t>(areSet ? bits : ~bits));
  if (areSet)
    return LLVM::OrOp::create(builder, loc, word, mask);
  return LLVM::AndOp::create(builder, loc, word, mask);
}

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
