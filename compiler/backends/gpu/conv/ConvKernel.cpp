// Convolutions and their gradients on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/conv/ConvKernel.h"

#include "compiler/backends/emit/WindowRange.h"
#include "compiler/backends/gpu/contraction/ScalarAccess.h"
#include "compiler/kernels/conv/ConvForm.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::gpu {

namespace {

ArrayRef<int64_t> sizesOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// An element of the result is a thread's.
class ConvEmitter {
public:
  ConvEmitter(ThreadBuilder &b, const ConvForm &form, ArrayRef<Value> buffers, const MathOptions &options)
      : b(b), form(form), shape(shapeOfConv(form.op)), buffers(buffers), options(options) {}

  void emit(Value position) {
    ArrayRef<int64_t> sizes = sizesOf(form.op->getResult(0));
    SmallVector<Value> digits = delinearize(b, position, sizes);
    Value zero = arith::ConstantOp::create(
        b, b.getZeroAttr(cast<RankedTensorType>(form.op->getResult(0).getType()).getElementType()));
    Value sum = isa<nn::ConvOp>(form.op)            ? sumForward(digits, zero)
                : isa<nn::ConvInputGradOp>(form.op) ? sumInputGrad(digits, zero)
                                                    : sumFilterGrad(digits, zero);
    auto place = [&](unsigned operand) {
      const ConvOperand &to = form.operands[operand];
      Value at = b.index(to.offset);
      for (auto [digit, stride] : llvm::zip_equal(digits, to.strides))
        if (stride != 0)
          at = b.add(at, b.mul(digit, stride));
      return std::make_pair(buffers[to.buffer], at);
    };
    finishElement(b, codeOf(form.epilogue, options), place, sum);
  }

private:
  using Indices = SmallVector<Value>;
  using Terms = llvm::function_ref<Value(const Indices &, Value sum)>;

  /// Row-major position in an operand of the convolution.
  Value load(unsigned operand, const Indices &indices) {
    Value at = b.index(0);
    for (auto [index, size] : llvm::zip_equal(indices, sizesOf(form.op->getOperand(operand))))
      at = b.add(b.mul(at, size), index);
    return b.loadScalar(buffers[form.operands[operand].buffer], at);
  }
  Value multiplyAdd(Value x, Value y, Value sum) {
    return emit::multiplyAdd(b, b.getLoc(), x, y, sum, options);
  }
  Value along(int64_t begin, int64_t end, Value sum, llvm::function_ref<Value(Value, Value)> body) {
    return along({b.index(begin), b.index(end)}, sum, body);
  }
  Value along(IndexRange range, Value sum, llvm::function_ref<Value(Value, Value)> body) {
    return b.fold(range, 1, sum, [&](Value i, ValueRange carried) -> SmallVector<Value> {
      return {body(i, carried[0])};
    })[0];
  }

  /// Walks ranges of the spatial dimensions, outermost first.
  Value overSpace(llvm::function_ref<IndexRange(int64_t d)> rangeOf, Indices &indices, Value sum,
                  Terms body) {
    int64_t d = static_cast<int64_t>(indices.size());
    if (d == shape.rank())
      return body(indices, sum);
    return along(rangeOf(d), sum, [&](Value i, Value carried) {
      indices.push_back(i);
      Value next = overSpace(rangeOf, indices, carried, body);
      indices.pop_back();
      return next;
    });
  }

  WindowDim windowDim(int64_t d) const {
    return {shape.input[d], shape.filter[d], shape.strides[d], shape.low[d], shape.dilations[d]};
  }
  /// Output positions whose filter position `tap` reads from within the input.
  IndexRange outputsInside(int64_t d, Value tap) {
    Value shift = b.sub(b.mul(tap, shape.dilations[d]), b.index(shape.low[d]));
    Value first = b.ceilDivPositive(b.sub(b.index(0), shift), shape.strides[d]);
    Value last = b.ceilDivPositive(b.sub(b.index(shape.input[d]), shift), shape.strides[d]);
    return {first, b.minimum(last, b.index(shape.output[d]))};
  }
  Value sumForward(ArrayRef<Value> result, Value sum) {
    Value feature = result.back();
    Value firstChannel = b.mul(b.div(feature, shape.groupFeatures()), shape.groupChannels());
    Indices taps;
    return overSpace([&](int64_t d) { return tapsInside(b, windowDim(d), result[d + 1]); }, taps, sum,
                     [&](const Indices &tap, Value carried) {
                       Indices x{result[0]}, w(tap);
                       for (auto [d, t] : llvm::enumerate(tap))
                         x.push_back(tapPosition(b, windowDim(d), result[d + 1], t));
                       return along(0, shape.groupChannels(), carried, [&](Value c, Value inner) {
                         Indices atX(x), atW(w);
                         atX.push_back(b.add(firstChannel, c));
                         atW.append({c, feature});
                         return multiplyAdd(load(0, atX), load(1, atW), inner);
                       });
                     });
  }

  Value sumInputGrad(ArrayRef<Value> result, Value sum) {
    Value channel = result.back();
    Value firstFeature = b.mul(b.div(channel, shape.groupChannels()), shape.groupFeatures());
    Value inGroup = b.rem(channel, shape.groupChannels());
    Indices taps;
    return overSpace([&](int64_t d) { return IndexRange{b.index(0), b.index(shape.filter[d])}; }, taps, sum,
                     [&](const Indices &tap, Value carried) {
                       Indices y{result[0]}, w(tap);
                       Value isThere;
                       for (auto [d, t] : llvm::enumerate(tap)) {
                         Value from =
                             b.sub(b.add(result[d + 1], b.index(shape.low[d])), b.mul(t, shape.dilations[d]));
                         Value isRead = isOutput(d, from);
                         isThere = isThere ? arith::AndIOp::create(b, isThere, isRead).getResult() : isRead;
                         y.push_back(b.div(from, shape.strides[d]));
                       }
                       return b.guarded(isThere, carried, [&]() -> SmallVector<Value> {
                         return {along(0, shape.groupFeatures(), carried, [&](Value f, Value inner) {
                           Indices atY(y), atW(w);
                           atY.push_back(b.add(firstFeature, f));
                           atW.append({inGroup, b.add(firstFeature, f)});
                           return multiplyAdd(load(0, atY), load(1, atW), inner);
                         })};
                       })[0];
                     });
  }
  /// Whether `from` is a multiple of the stride that leads to an output.
  Value isOutput(int64_t d, Value from) {
    int64_t stride = shape.strides[d];
    auto compare = [&](arith::CmpIPredicate predicate, Value x, int64_t y) -> Value {
      return arith::CmpIOp::create(b, predicate, x, b.index(y));
    };
    // As a number without sign, what is below zero is too large.
    Value isWithin = compare(arith::CmpIPredicate::ult, from, (shape.output[d] - 1) * stride + 1);
    if (stride == 1)
      return isWithin;
    return arith::AndIOp::create(b, isWithin, compare(arith::CmpIPredicate::eq, b.rem(from, stride), 0));
  }

  Value sumFilterGrad(ArrayRef<Value> result, Value sum) {
    Value part = shape.parts > 1 ? result.front() : b.index(0);
    ArrayRef<Value> tap = shape.parts > 1 ? result.drop_front() : result;
    Value feature = result.back(), inGroup = result.drop_back().back();
    Value channel = b.add(b.mul(b.div(feature, shape.groupFeatures()), shape.groupChannels()), inGroup);
    return along(0, shape.batch, sum, [&](Value n, Value carried) {
      Value image = b.add(b.mul(part, shape.batch), n);
      Indices outputs;
      return overSpace([&](int64_t d) { return outputsInside(d, tap[d]); }, outputs, carried,
                       [&](const Indices &o, Value inner) {
                         Indices x{image}, y{image};
                         for (auto [d, at] : llvm::enumerate(o)) {
                           x.push_back(tapPosition(b, windowDim(d), at, tap[d]));
                           y.push_back(at);
                         }
                         x.push_back(channel);
                         y.push_back(feature);
                         return multiplyAdd(load(0, x), load(1, y), inner);
                       });
    });
  }

  ThreadBuilder &b;
  const ConvForm &form;
  const ConvShape shape;
  ArrayRef<Value> buffers;
  const MathOptions &options;
};

} // namespace

LogicalResult generateConv(KernelBuilder &kernel, func::FuncOp function, const GeneratorOptions &options) {
  std::string reason;
  auto outputs = function.getBody().front().getTerminator()->getOperands();
  auto form = ConvForm::analyze(function.getArguments(), outputs, reason);
  if (!form)
    return function.emitError() << "no convolution kernel can be made of this program: " << reason;
  MathOptions math{options.usesFma(), /*rounding=*/true};
  kernel.launchThreads(nn::elementCount(sizesOf(form->op->getResult(0))),
                       [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value position) {
                         ConvEmitter(b, *form, arguments.buffers, math).emit(position);
                       });
  return success();
}

} // namespace ortc::gpu
