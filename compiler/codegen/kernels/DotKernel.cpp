//===- DotKernel.cpp - nn.dot as a contraction ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/contraction/Contraction.h"
#include "compiler/codegen/kernels/KernelGenerator.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::codegen {

static SmallVector<int64_t> rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

KernelInfo generateDot(ModuleOp module, func::FuncOp function, const Target &target, Numerics numerics) {
  auto dot = *function.getOps<nn::DotOp>().begin();
  auto lhs = cast<RankedTensorType>(dot.getLhs().getType()), rhs = cast<RankedTensorType>(dot.getRhs().getType()),
       result = cast<RankedTensorType>(dot.getType());
  auto lhsStrides = rowMajorStrides(lhs.getShape()), rhsStrides = rowMajorStrides(rhs.getShape()),
       resultStrides = rowMajorStrides(result.getShape());
  ContractionSpec spec;
  spec.name = function.getSymName().str();
  spec.buffers = kernelBuffers(function);
  auto bufferOf = [&](Value value) { return cast<BlockArgument>(value).getArgNumber(); };
  spec.operands = {{bufferOf(dot.getLhs()), 0}, {bufferOf(dot.getRhs()), 0}, {function.getNumArguments(), 0}};
  int64_t at = 0;
  for (auto [l, r] : llvm::zip_equal(dot.getLhsBatch(), dot.getRhsBatch()))
    spec.batch.push_back({lhs.getDimSize(l), {lhsStrides[l], rhsStrides[r], resultStrides[at++]}});
  for (int64_t dim : nn::freeDimensions(lhs.getRank(), dot.getLhsBatch(), dot.getLhsContract()))
    spec.m.push_back({lhs.getDimSize(dim), {lhsStrides[dim], 0, resultStrides[at++]}});
  for (int64_t dim : nn::freeDimensions(rhs.getRank(), dot.getRhsBatch(), dot.getRhsContract()))
    spec.n.push_back({rhs.getDimSize(dim), {0, rhsStrides[dim], resultStrides[at++]}});
  for (auto [l, r] : llvm::zip_equal(dot.getLhsContract(), dot.getRhsContract()))
    spec.k.push_back({lhs.getDimSize(l), {lhsStrides[l], rhsStrides[r], 0}});
  spec.accumulatorType = result.getElementType();
  spec.partialOperand = 2;
  spec.numerics = numerics;
  OpBuilder builder(module.getContext());
  return emitContraction(builder, module, spec, target);
}

} // namespace ortc::codegen
