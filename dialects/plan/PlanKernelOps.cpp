// Verifier and effects of plan.kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/plan/PlanDialect.h"

using namespace mlir;

namespace ortc::plan {

void KernelOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (getKind() == KernelKind::check)
    effects.emplace_back(MemoryEffects::Write::get());
}

int64_t storedBytes(ShapedType type) {
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

int64_t scratchOf(Operation *kernel) {
  auto bytes = kernel->getAttrOfType<IntegerAttr>(kScratch);
  return bytes ? bytes.getInt() : 0;
}

static int64_t bytesOf(Type type) { return storedBytes(cast<ShapedType>(type)); }

LogicalResult KernelOp::verify() {
  Block &block = getBody().front();
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || block.getArgumentTypes() != getInputs().getTypes() ||
      yield.getValues().getTypes() != getResultTypes())
    return emitOpError() << "C1: arguments or yielded values do not have the types of operands and results";
  ArrayRef<int64_t> pairs = getInPlace().value_or(ArrayRef<int64_t>());
  if (pairs.size() % 2 != 0)
    return emitOpError() << "C2: in_place needs pairs";
  for (size_t i = 0; i < pairs.size(); i += 2) {
    int64_t operand = pairs[i], result = pairs[i + 1];
    if (operand < 0 || operand >= static_cast<int64_t>(getInputs().size()) || result < 0 ||
        result >= static_cast<int64_t>(getNumResults()) ||
        bytesOf(getInputs()[operand].getType()) != bytesOf(getResult(result).getType()))
      return emitOpError() << "C2: operand " << operand << " and result " << result << " cannot share memory";
  }
  return success();
}

} // namespace ortc::plan
