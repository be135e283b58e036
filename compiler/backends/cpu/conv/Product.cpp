// Convolutions whose window is a point: products of matrices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/conv/ConvAlgorithms.h"

#include "compiler/backends/cpu/contraction/Contraction.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

/// The product of all points of all images; nothing where the window is no point, or where the epilogue's
/// operands do not follow the points in one stride.
static std::optional<ContractionSpec> productOf(const ConvSpec &spec) {
  ConvShape shape = shapeOfConv(spec.op);
  auto all = [](ArrayRef<int64_t> values, int64_t wanted) {
    return llvm::all_of(values, [&](int64_t value) { return value == wanted; });
  };
  if (shape.groups != 1 || !all(shape.filter, 1) || !all(shape.strides, 1) || !all(shape.low, 0) ||
      shape.input != shape.output)
    return std::nullopt;
  ContractionSpec product;
  product.name = spec.name;
  product.buffers = spec.buffers;
  product.epilogue = spec.epilogue;
  product.rollEpilogue = spec.rollEpilogue;
  product.numerics = spec.numerics;
  product.choices = spec.choices;
  product.accumulatorType = getElementTypeOrSelf(spec.op->getResult(0).getType());
  product.narrowA = spec.narrow[0], product.narrowB = spec.narrow[1];
  int64_t points = shape.batch * nn::elementCount(shape.input), channels = shape.channels,
          features = shape.features;
  ContractionDim m, n, k;
  if (isa<nn::ConvOp>(spec.op))
    m = {points, {channels, 0}}, n = {features, {0, 1}}, k = {channels, {1, features}};
  else if (isa<nn::ConvFilterGradOp>(spec.op))
    m = {channels, {1, 0}}, n = {features, {0, 1}}, k = {points, {channels, features}};
  else
    m = {points, {features, 0}}, n = {channels, {0, features}}, k = {features, {1, 1}};
  ArrayRef<int64_t> result = cast<RankedTensorType>(spec.op->getResult(0).getType()).getShape();
  if (shape.parts > 1) {
    result = result.drop_front();
    product.batch.push_back(
        {shape.parts, {points * channels, points * features, spec.operands[2].strides.front()}});
  }
  for (auto [i, operand] : llvm::enumerate(spec.operands)) {
    product.operands.push_back({operand.buffer, operand.offset});
    if (i < 2)
      continue;
    // All dimensions but the last are one.
    int64_t step = 0;
    std::optional<int64_t> next;
    for (size_t d = result.size() - 1; d-- > 0;) {
      if (result[d] == 1)
        continue;
      int64_t stride = ArrayRef(operand.strides).take_back(result.size())[d];
      if (!next)
        step = stride;
      else if (stride != *next)
        return std::nullopt;
      next = stride * result[d];
    }
    m.strides.push_back(step), n.strides.push_back(operand.strides.back()), k.strides.push_back(0);
    const KernelBuffer &buffer = spec.buffers[operand.buffer];
    if (product.partialOperand < 0 && buffer.written && buffer.distinct &&
        buffer.elementType == product.accumulatorType)
      product.partialOperand = static_cast<int>(i);
  }
  product.m.push_back(m), product.n.push_back(n), product.k.push_back(k);
  return product;
}

bool isProduct(const ConvSpec &spec) { return productOf(spec).has_value(); }

bool isProductForUnit(const ConvSpec &spec, const Target &target) {
  std::optional<ContractionSpec> product = productOf(spec);
  return product && isFasterOnUnit(*product, target);
}

FailureOr<KernelInfo> emitProduct(ModuleOp module, const ConvSpec &spec, const Target &target) {
  OpBuilder builder(module.getContext());
  return emitContraction(builder, module, *productOf(spec), target);
}

} // namespace ortc::cpu
