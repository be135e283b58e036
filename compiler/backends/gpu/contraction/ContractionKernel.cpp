// Contractions with views of their operands and elementwise operations on their result, on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/contraction/ContractionKernel.h"

#include "compiler/backends/emit/StorageConversion.h"
#include "compiler/backends/gpu/product/Product.h"
#include "compiler/backends/gpu/product/ScalarAccess.h"
#include "compiler/kernels/SumOrder.h"
#include "compiler/kernels/contraction/ContractionForm.h"

using namespace mlir;

namespace ortc::gpu {

namespace {

struct ContractionJob {
  const ContractionShape &shape;
  const ContractionAxes &axes;
  Epilogue epilogue;
  MathOptions options;
};

SmallVector<int64_t> sizesOf(ArrayRef<ContractionDim> dims) {
  SmallVector<int64_t> sizes;
  for (const ContractionDim &dim : dims)
    sizes.push_back(dim.size);
  return sizes;
}

/// The operands at the outer indices of a result.
class Operands {
public:
  Operands(const ContractionJob &job, ArrayRef<Value> buffers) : job(job), buffers(buffers) {}

  void begin(ThreadBuilder &b, Value outer) {
    for (const ContractionOperand &operand : job.shape.operands)
      places.push_back(b.index(operand.offset));
    auto digits = delinearize(b, outer, sizesOf(job.axes.outer));
    for (auto [dim, digit] : llvm::zip_equal(job.axes.outer, digits))
      for (auto [place, stride] : llvm::zip_equal(places, dim.strides))
        if (stride != 0)
          place = b.add(place, b.mul(digit, stride));
  }
  Value placeOf(unsigned operand) const { return places[operand]; }
  Value bufferOf(unsigned operand) const { return buffers[job.shape.operands[operand].buffer]; }
  Value load(ThreadBuilder &b, unsigned operand, Value at) {
    Value value = b.loadScalar(bufferOf(operand), at);
    Type narrow = job.shape.narrow(operand);
    return narrow ? extendToF32(b, b.getLoc(), value, narrow) : value;
  }
  void store(ThreadBuilder &b, Value row, Value column, Value sum) {
    auto place = [&](unsigned operand) {
      Value at = b.add(places[operand], b.mul(row, job.axes.row.strides[operand]));
      at = b.add(at, b.mul(column, job.axes.lane.strides[operand]));
      return std::make_pair(buffers[job.shape.operands[operand].buffer], at);
    };
    finishElement(b, job.epilogue, place, sum);
  }

  const ContractionJob &job;

private:
  ArrayRef<Value> buffers;
  SmallVector<Value> places; ///< of every operand
};

class ContractionAccess final : public ProductAccess {
public:
  ContractionAccess(const ContractionJob &job, ArrayRef<Value> buffers)
      : operands(job, buffers), depthDims(job.axes.depthDims()) {}

  void begin(ThreadBuilder &b, Value number) override { operands.begin(b, number); }
  ElementPlace locate(ThreadBuilder &b, Side side, Value index, const DepthPosition &k) override {
    const ContractionAxes &axes = operands.job.axes;
    bool isRow = side == Side::row;
    unsigned operand = isRow ? axes.rowOperand : axes.laneOperand;
    Value at = b.mul(index, (isRow ? axes.row : axes.lane).strides[operand]);
    at = b.add(operands.placeOf(operand), at);
    for (auto [dim, digit] : llvm::zip_equal(depthDims, delinearize(b, k, sizesOf(depthDims))))
      at = b.add(at, b.mul(digit, dim.strides[operand]));
    return {operands.bufferOf(operand), at, {}};
  }
  std::optional<ElementStrides> stridesOf(Side side, int64_t span) const override {
    const ContractionAxes &axes = operands.job.axes;
    if (depthDims.size() > 1 && depthDims.back().size % span != 0)
      return std::nullopt;
    unsigned operand = side == Side::row ? axes.rowOperand : axes.laneOperand;
    return ElementStrides{(side == Side::row ? axes.row : axes.lane).strides[operand],
                          depthDims.back().strides[operand]};
  }
  void store(ThreadBuilder &b, Value row, Value column, Value sum) override {
    operands.store(b, row, column, sum);
  }

private:
  Operands operands;
  SmallVector<ContractionDim> depthDims;
};

/// How `dim`, the rows or columns of the product, lie in an operand. `alignment`: of its buffer, in bytes.
OperandLayout layoutOf(const ContractionJob &job, unsigned operand, const ContractionDim &dim,
                       int64_t alignment) {
  SmallVector<ContractionDim> depthDims = job.axes.depthDims();
  OperandLayout layout;
  layout.narrow = job.shape.narrow(operand);
  layout.isAlongDepth = depthDims.back().strides[operand] == 1 && dim.strides[operand] != 1;
  const ContractionDim &along = layout.isAlongDepth ? depthDims.back() : dim;
  if (along.strides[operand] != 1)
    return layout;
  SmallVector<int64_t> strides{along.size, job.shape.operands[operand].offset};
  auto add = [&](const ContractionDim &other) {
    if (&other != &along)
      strides.push_back(other.strides[operand]);
  };
  add(dim);
  llvm::for_each(depthDims, add);
  llvm::for_each(job.axes.outer, add);
  Type stored = layout.narrow ? layout.narrow : job.shape.accumulatorType;
  layout.run = longestRun(strides, stored.getIntOrFloatBitWidth(), alignment);
  return layout;
}

ProductShape makeProduct(const ContractionJob &job, Numerics numerics, const KernelBuilder &kernel) {
  const ContractionAxes &axes = job.axes;
  ProductShape product{axes.outerTotal, axes.row.size, axes.lane.size, sizeOf(axes.depthDims()),
                       job.shape.accumulatorType};
  auto layout = [&](unsigned operand, const ContractionDim &dim) {
    return layoutOf(job, operand, dim, kernel.alignmentOf(job.shape.operands[operand].buffer));
  };
  product.row = layout(axes.rowOperand, axes.row);
  product.column = layout(axes.laneOperand, axes.lane);
  product.mayCutDepth = numerics == Numerics::Fast;
  return product;
}

/// As DotKernel of CPUs: 16 sums, joined in halves.
void emitDot(ThreadBuilder &b, const ContractionJob &job, ArrayRef<Value> buffers, Value position) {
  const ContractionAxes &axes = job.axes;
  auto digits = delinearize(b, position, {axes.outerTotal, axes.row.size, axes.lane.size});
  Operands operands(job, buffers);
  operands.begin(b, digits[0]);
  ContractionDim depth = collapseDims(job.shape.k).front();
  int64_t whole = depth.size / kDotLanes * kDotLanes;
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(job.shape.accumulatorType));
  auto load = [&](unsigned operand, Value k) {
    Value at = b.add(operands.placeOf(operand), b.mul(digits[1], axes.row.strides[operand]));
    at = b.add(at, b.mul(digits[2], axes.lane.strides[operand]));
    return operands.load(b, operand, b.add(at, b.mul(k, depth.strides[operand])));
  };
  auto addProducts = [&](Value k, ValueRange carried, int64_t live) {
    SmallVector<Value> next;
    for (auto [lane, sum] : llvm::enumerate(carried)) {
      bool isLive = static_cast<int64_t>(lane) < live;
      Value at = b.add(k, static_cast<int64_t>(lane));
      Value left = isLive ? load(0, at) : zero, right = isLive ? load(1, at) : zero;
      next.push_back(multiplyAdd(b, b.getLoc(), left, right, sum, job.options));
    }
    return next;
  };
  SmallVector<Value> sums(kDotLanes, zero);
  sums = b.fold({b.index(0), b.index(whole)}, kDotLanes, sums,
                [&](Value k, ValueRange carried) { return addProducts(k, carried, kDotLanes); });
  if (whole < depth.size)
    sums = addProducts(b.index(whole), sums, depth.size - whole);
  for (int64_t half = kDotLanes / 2; half >= 1; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane)
      sums[lane] = arith::AddFOp::create(b, sums[lane], sums[lane + half]);
  operands.store(b, digits[1], digits[2], sums[0]);
}

/// The operand that decides about the direction of lanes: the first one written.
unsigned findOutput(const ContractionShape &shape, unsigned inputs) {
  for (size_t i = 2; i < shape.operands.size(); ++i)
    if (shape.operands[i].buffer >= inputs)
      return i;
  return 2;
}

} // namespace

LogicalResult generateContraction(KernelBuilder &kernel, func::FuncOp function,
                                  const GeneratorOptions &options) {
  std::string reason;
  Operation *terminator = function.getBody().front().getTerminator();
  auto form = ContractionForm::analyze(function.getArguments(), terminator->getOperands(), reason);
  if (!form)
    return function.emitError() << "no contraction kernel can be made of this program: " << reason;
  ContractionAxes axes = chooseAxes(form->shape, findOutput(form->shape, function.getNumArguments()));
  MathOptions math = options.math();
  ContractionJob job{form->shape, axes, codeOf(form->epilogue, form->shape.accumulatorType, math), math};
  if (!usesDotKernel(form->shape)) {
    auto makeAccess = [&](ArrayRef<Value> buffers) {
      return std::make_unique<ContractionAccess>(job, buffers);
    };
    emitProduct(kernel, makeProduct(job, options.numerics, kernel), makeAccess, math);
    return success();
  }
  kernel.launchThreads(axes.outerTotal * axes.row.size * axes.lane.size,
                       [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value position) {
                         emitDot(b, job, arguments.buffers, position);
                       });
  return success();
}

} // namespace ortc::gpu
