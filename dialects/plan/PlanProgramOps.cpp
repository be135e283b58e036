// Verifiers of scheduled programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/plan/PlanDialect.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace ortc::plan {

LogicalResult ProgramOp::verify() {
  if (int64_t bytes = getBytes(); bytes < 0 || bytes % 64 != 0)
    return emitOpError() << "C1: bytes " << bytes << " is negative or no multiple of 64";
  return success();
}

LogicalResult BufferOp::verify() {
  int64_t offset = getOffset();
  if (offset < 0 || (getRegion() != Region::external && offset % 64 != 0))
    return emitOpError() << "C1: offset " << offset << " is negative or no multiple of 64";
  for (int64_t stride : getStrides().value_or(ArrayRef<int64_t>()))
    if (stride < 0)
      return emitOpError() << "C2: stride " << stride << " is negative";
  return success();
}

LogicalResult LoopOp::verify() {
  if (int64_t count = getTripCount(); count < 1)
    return emitOpError() << "C1: trip count " << count << " is below 1";
  if (!getLimit())
    return success();
  auto type = cast<MemRefType>(getLimit().getType());
  auto buffer = getLimit().getDefiningOp<BufferOp>();
  if (getReverse() || !type.getElementType().isInteger(32) || type.getNumElements() != 1 ||
      (buffer && buffer.getStrides()))
    return emitOpError() << "C2: the limit is " << type << " of a loop that runs "
                         << (getReverse() ? "downwards" : "upwards");
  return success();
}

/// Whether a buffer can hold a tensor.
static bool holds(Type buffer, Type tensor) {
  auto memref = cast<MemRefType>(buffer);
  auto type = dyn_cast<RankedTensorType>(tensor);
  return type && type.getShape() == memref.getShape() && type.getElementType() == memref.getElementType();
}

LogicalResult StepOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<FunctionOpInterface>((*this)->getParentOp(), getKernelAttr());
  if (!kernel)
    return emitOpError() << "C1: there is no kernel " << getKernelAttr();
  if (!llvm::equal(getInputs().getTypes(), kernel.getArgumentTypes(), holds) ||
      !llvm::equal(getOutputs().getTypes(), kernel.getResultTypes(), holds))
    return emitOpError() << "C1: buffers do not fit the arguments and results of " << getKernelAttr();
  int64_t needed = scratchOf(kernel);
  if (getScratch().has_value() != (needed > 0))
    return emitOpError() << "C2: " << getKernelAttr() << " needs " << needed << " bytes of scratch";
  int64_t offset = getScratch().value_or(0), room = (*this)->getParentOfType<ProgramOp>().getBytes();
  if (offset < 0 || offset % 64 != 0 || (needed > 0 && (needed > room || offset > room - needed)))
    return emitOpError() << "C2: scratch of " << needed << " bytes at " << offset
                         << " is no place in a program of " << room;
  return success();
}

LogicalResult GuardOp::verify() {
  if (cast<MemRefType>(getLoss().getType()).getNumElements() != 1)
    return emitOpError() << "C1: the loss must have one element";
  return success();
}

} // namespace ortc::plan
