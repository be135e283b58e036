// The elementwise operations behind a contraction or convolution as code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/emit/Epilogue.h"

#include "compiler/backends/emit/ElementEmitter.h"
#include "compiler/backends/emit/StorageConversion.h"

using namespace mlir;

namespace ortc::emit {

using namespace kernels;

Epilogue codeOf(std::shared_ptr<const FusedEpilogue> analysis, MathOptions options) {
  if (!analysis->computes)
    return nullptr;
  return [analysis, options](OpBuilder &builder, Location loc, EpilogueAccess &access, Value sum) {
    Type element = analysis->element;
    LoopBuilder b(loc, builder);
    ElementEmitter emitter(b, analysis->program, {}, options);
    emitter.setWidth(access.lanes());
    emitter.setSupplier([&](unsigned number) -> Value {
      const LoopNode &node = analysis->program.nodes[number];
      if (node.kind != LoopNode::load)
        return {};
      if (analysis->resultNodes.contains(number))
        return element.isF16() || element.isBF16() ? truncateFromF32(b, loc, sum, element) : sum;
      Value value = access.load(b, loc, analysis->loadOperand.lookup(number));
      if (!node.element.isInteger(1))
        return value;
      Value zero = arith::ConstantOp::create(b, b.getZeroAttr(value.getType()));
      return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
    });
    // Everything is read before anything is written: outputs may lie where inputs do.
    SmallVector<Value> values;
    for (const LoopOutput &output : analysis->program.outputs) {
      Value value = emitter.emitVector(output.node);
      if (output.element.isInteger(1))
        value = arith::ExtUIOp::create(
            b, access.lanes() ? Type(VectorType::get({access.lanes()}, b.getI8Type())) : Type(b.getI8Type()),
            value);
      values.push_back(value);
    }
    for (auto [operand, value] : llvm::zip_equal(analysis->outputs, values))
      access.store(b, loc, operand.first, value);
  };
}

Epilogue codeOf(std::shared_ptr<const FusedEpilogue> analysis, Type accumulatorType, MathOptions options) {
  Type element = analysis->element;
  if (analysis->computes || element == accumulatorType)
    return codeOf(std::move(analysis), options);
  return [element](OpBuilder &b, Location loc, EpilogueAccess &access, Value sum) {
    access.store(b, loc, FusedEpilogue::firstOperand, truncateFromF32(b, loc, sum, element));
  };
}

} // namespace ortc::emit
