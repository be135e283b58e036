// Contractions with views of their operands and elementwise operations on their result, on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/contraction/ContractionKernel.h"

#include "compiler/backends/emit/StorageConversion.h"
#include "compiler/backends/gpu/contraction/ScalarAccess.h"
#include "compiler/backends/gpu/contraction/TiledContraction.h"
#include "compiler/kernels/SumOrder.h"
#include "compiler/kernels/contraction/ContractionForm.h"

using namespace mlir;

namespace ortc::gpu {

namespace {

using Places = SmallVector<Value>; ///< of every operand

/// A result is a thread's.
class ResultEmitter {
public:
  ResultEmitter(ThreadBuilder &b, const ContractionJob &job, ArrayRef<Value> buffers)
      : b(b), shape(job.shape), axes(job.axes), buffers(buffers), epilogue(job.epilogue),
        options(job.options) {}

  void emit(Value position) {
    SmallVector<const ContractionDim *> dims;
    for (const ContractionDim &dim : axes.outer)
      dims.push_back(&dim);
    dims.append({&axes.row, &axes.lane});
    SmallVector<int64_t> sizes;
    for (const ContractionDim *dim : dims)
      sizes.push_back(dim->size);
    Places places;
    for (const ContractionOperand &operand : shape.operands)
      places.push_back(b.index(operand.offset));
    for (auto [dim, digit] : llvm::zip_equal(dims, delinearize(b, position, sizes)))
      move(places, *dim, digit);
    finish(usesDotKernel(shape) ? sumInLanes(places) : sumInOrder(places), places);
  }

private:
  void move(Places &places, const ContractionDim &dim, Value index) {
    for (auto [place, stride] : llvm::zip_equal(places, dim.strides))
      if (stride != 0)
        place = b.add(place, b.mul(index, stride));
  }
  Value zero() { return arith::ConstantOp::create(b, b.getZeroAttr(shape.accumulatorType)); }
  Value buffer(unsigned operand) const { return buffers[shape.operands[operand].buffer]; }
  Value load(unsigned operand, Value at) {
    Value value = b.loadScalar(buffer(operand), at);
    Type narrow = shape.narrow(operand);
    return narrow ? extendToF32(b, b.getLoc(), value, narrow) : value;
  }

  Value sumInOrder(const Places &places) { return sumOver(axes.depthDims(), places[0], places[1], zero()); }
  Value sumOver(ArrayRef<ContractionDim> dims, Value atA, Value atB, Value sum) {
    if (dims.empty())
      return multiplyAdd(b, b.getLoc(), load(0, atA), load(1, atB), sum, options);
    const ContractionDim &dim = dims.front();
    return b.fold({b.index(0), b.index(dim.size)}, 1, sum,
                  [&](Value k, ValueRange carried) -> SmallVector<Value> {
                    return {sumOver(dims.drop_front(), b.add(atA, b.mul(k, dim.strides[0])),
                                    b.add(atB, b.mul(k, dim.strides[1])), carried[0])};
                  })[0];
  }

  /// As DotKernel of CPUs: 16 sums, joined in halves.
  Value sumInLanes(const Places &places) {
    ContractionDim depth = collapseDims(shape.k).front();
    int64_t whole = depth.size / kDotLanes * kDotLanes;
    auto step = [&](Value k, ValueRange carried, int64_t live) {
      SmallVector<Value> next;
      for (auto [lane, sum] : llvm::enumerate(carried)) {
        bool isLive = static_cast<int64_t>(lane) < live;
        Value at = b.add(k, static_cast<int64_t>(lane));
        Value left = isLive ? load(0, b.add(places[0], b.mul(at, depth.strides[0]))) : zero();
        Value right = isLive ? load(1, b.add(places[1], b.mul(at, depth.strides[1]))) : zero();
        next.push_back(multiplyAdd(b, b.getLoc(), left, right, sum, options));
      }
      return next;
    };
    SmallVector<Value> sums(kDotLanes, zero());
    sums = b.fold({b.index(0), b.index(whole)}, kDotLanes, sums,
                  [&](Value k, ValueRange carried) { return step(k, carried, kDotLanes); });
    if (whole < depth.size)
      sums = step(b.index(whole), sums, depth.size - whole);
    for (int64_t half = kDotLanes / 2; half >= 1; half /= 2)
      for (int64_t lane = 0; lane < half; ++lane)
        sums[lane] = arith::AddFOp::create(b, sums[lane], sums[lane + half]);
    return sums[0];
  }

  void finish(Value sum, const Places &places) {
    auto place = [&](unsigned operand) { return std::make_pair(buffer(operand), places[operand]); };
    finishElement(b, epilogue, place, sum);
  }

  ThreadBuilder &b;
  const ContractionShape &shape;
  const ContractionAxes &axes;
  ArrayRef<Value> buffers;
  const Epilogue &epilogue;
  const MathOptions &options;
};

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
  MathOptions math{options.usesFma(), /*rounding=*/true};
  ContractionJob job{form->shape, axes, codeOf(form->epilogue, form->shape.accumulatorType, math), math};
  if (auto tile = chooseTile(form->shape, axes)) {
    emitTiled(kernel, job, *tile);
    return success();
  }
  kernel.launchThreads(axes.outerTotal * axes.row.size * axes.lane.size,
                       [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value position) {
                         ResultEmitter(b, job, arguments.buffers).emit(position);
                       });
  return success();
}

} // namespace ortc::gpu
