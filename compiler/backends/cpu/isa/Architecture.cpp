// What most architectures have in common, and instructions that one need not have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/Architecture.h"

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
