// Pooling and its gradients.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward kernels loop over the taps of a window that lie inside the input; gradients loop, for each element of the
// input, over the windows that cover it. So nothing is scattered, and bounds are loop bounds, not branches.
#include "compiler/backends/cpu/pool/PoolKernel.h"

#include "compiler/backends/emit/WindowRange.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;

namespace ortc::cpu {

namespace {

struct Window {
  SmallVector<int64_t> size, strides, low, high, dilations;
  bool countPadding = false;
};

template <typename OpType> Window windowOf(OpType op) {
  auto list = [](ArrayRef<int64_t> values) { return SmallVector<int64_t>(values); };
  return {list(op.getWindow()), list(op.getStrides()), list(op.getPaddingLow()), list(op.getPaddingHigh()),
          list(op.getDilations())};
}

class PoolEmitter : public LoopBuilder {
public:
  PoolEmitter(ModuleOp module, StringRef name, Operation *op, const Target &target)
      : LoopBuilder(UnknownLoc::get(module.getContext()), module.getContext()), op(op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](nn::MaxPoolOp pool) { window = windowOf(pool); })
        .Case([&](nn::MaxPoolGradOp pool) { window = windowOf(pool); })
        .Case([&](nn::AvgPoolOp pool) {
          window = windowOf(pool), window.countPadding = pool.getCountIncludePad();
        })
        .Case([&](nn::AvgPoolGradOp pool) {
          window = windowOf(pool), window.countPadding = pool.getCountIncludePad();
        });
    auto operand = cast<RankedTensorType>(op->getOperand(0).getType()),
         result = cast<RankedTensorType>(op->getResult(0).getType());
    bool forward = isa<nn::MaxPoolOp, nn::AvgPoolOp>(op);
    input = llvm::to_vector((forward ? operand : result).getShape());
    output = llvm::to_vector((forward ? result : operand).getShape());
    walked = llvm::to_vector(result.getShape());
    spatial = input.size() - 2;
    channels = input.back();
    element = cast<FloatType>(result.getElementType());
    lanes = target.lanes(element.getWidth());

    int64_t taps = nn::elementCount(window.size),
            perRow = std::max<int64_t>(1, nn::elementCount(ArrayRef(walked).drop_front(2)) * taps);
    rows = walked[0] * walked[1];
    rowsPerChunk = std::min(rows, std::max<int64_t>(1, target.machine.parallel.poolWork / perRow));
    info.name = name.str();
    info.chunks = (rows + rowsPerChunk - 1) / rowsPerChunk;
    SmallVector<KernelBuffer> buffers;
    auto addBuffer = [&](Value value, bool written) {
      auto type = cast<RankedTensorType>(value.getType());
      buffers.push_back({type.getElementType(), type.getNumElements(), written, true});
    };
    for (Value value : op->getOperands())
      addBuffer(value, false);
    for (Value value : op->getResults())
      addBuffer(value, true);
    kernel = createKernelFunction(*this, module, info, buffers);
  }

  KernelInfo emit() {
    Value begin = mul(kernel.chunk, rowsPerChunk), end = minimum(add(begin, rowsPerChunk), index(rows));
    loop({begin, end}, 1, [&](Value row) {
      SmallVector<Value> position{div(row, walked[1]), rem(row, walked[1])};
      overPositions(position);
    });
    return info;
  }

private:
  /// A nest over `ranges` that carries `values`; `body` gets the indices and the values and returns the new values.
  SmallVector<Value> nest(ArrayRef<IndexRange> ranges, SmallVector<Value> indices, ValueRange values,
                          llvm::function_ref<SmallVector<Value>(ArrayRef<Value>, ValueRange)> body) {
    if (ranges.empty())
      return body(indices, values);
    return fold(ranges.front(), 1, values, [&](Value i, ValueRange carried) {
      auto inner = indices;
      inner.push_back(i);
      return nest(ranges.drop_front(), inner, carried, body);
    });
  }

  /// Walks the remaining spatial dimensions, then the channels in vectors and what remains of them in a shorter one.
  void overPositions(SmallVector<Value> &position) {
    if (static_cast<int64_t>(position.size()) < spatial + 1) {
      loop(0, walked[position.size()], 1, [&](Value i) {
        position.push_back(i);
        overPositions(position);
        position.pop_back();
      });
      return;
    }
    tiles(channels, lanes, [&](Value channel, int64_t width) { emitElement(position, channel, width); });
  }

  /// Position of an element in a tensor of `shape`, given all indices but the channel.
  Value linear(ArrayRef<int64_t> shape, ArrayRef<Value> indices, Value channel) {
    Value at = indices.front();
    for (size_t d = 1; d < indices.size(); ++d)
      at = add(mul(at, shape[d]), indices[d]);
    return add(mul(at, channels), channel);
  }

  WindowDim windowDim(int64_t d) const {
    return {input[d + 1], window.size[d], window.strides[d], window.low[d], window.dilations[d]};
  }
  /// Taps of the window at output position `o` of dimension `d` that lie inside the input.
  IndexRange tapsInside(int64_t d, Value o) { return emit::tapsInside(*this, windowDim(d), o); }
  /// Where tap `w` of the window at `o` reads.
  Value tapPosition(int64_t d, Value o, Value w) { return emit::tapPosition(*this, windowDim(d), o, w); }

  /// Windows that may cover input position `i` of dimension `d`.
  IndexRange windowsOver(int64_t d, Value i) {
    int64_t reach = (window.size[d] - 1) * window.dilations[d];
    Value at = add(i, index(window.low[d]));
    Value first = ceilDivPositive(sub(at, index(reach)), window.strides[d]);
    Value last = add(div(at, window.strides[d]), index(1));
    return {first, minimum(last, index(output[d + 1]))};
  }

  /// How many elements the window at `o` counts, as a float of `element`; the product over the dimensions.
  Value windowCount(ArrayRef<Value> o) {
    Value count;
    for (int64_t d = 0; d < spatial; ++d) {
      IndexRange taps = tapsInside(d, o[d]);
      if (window.countPadding) {
        Value start = sub(mul(o[d], window.strides[d]), index(window.low[d]));
        Value held = ceilDivPositive(sub(index(input[d + 1] + window.high[d]), start), window.dilations[d]);
        taps = {index(0), minimum(held, index(window.size[d]))};
      }
      Value size = sub(taps.end, taps.begin);
      count = count ? createOrFold<arith::MulIOp>(count, size) : size;
    }
    return arith::SIToFPOp::create(*this, element, toI32(count));
  }

  void emitElement(ArrayRef<Value> position, Value channel, int64_t width) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](nn::MaxPoolOp) { emitMax(position, channel, width); })
        .Case([&](nn::MaxPoolGradOp) { emitMaxGrad(position, channel, width); })
        .Case([&](nn::AvgPoolOp) { emitAvg(position, channel, width); })
        .Case([&](nn::AvgPoolGradOp) { emitAvgGrad(position, channel, width); });
  }

  /// IndexRanges over the taps, and the tap's position in the input.
  SmallVector<IndexRange> taps(ArrayRef<Value> position) {
    SmallVector<IndexRange> ranges;
    for (int64_t d = 0; d < spatial; ++d)
      ranges.push_back(tapsInside(d, position[d + 1]));
    return ranges;
  }
  SmallVector<Value> tapIndices(ArrayRef<Value> position, ArrayRef<Value> w) {
    SmallVector<Value> at{position[0]};
    for (int64_t d = 0; d < spatial; ++d)
      at.push_back(tapPosition(d, position[d + 1], w[d]));
    return at;
  }
  /// Row-major number of a place in its window.
  Value numberOf(ArrayRef<Value> w) {
    Value number = w[0];
    for (int64_t d = 1; d < spatial; ++d)
      number = add(mul(number, window.size[d]), w[d]);
    return number;
  }

  void emitMax(ArrayRef<Value> position, Value channel, int64_t width) {
    auto ranges = taps(position);
    SmallVector<Value> first;
    for (IndexRange range : ranges)
      first.push_back(range.begin);
    Value start = spread(toI32(numberOf(first)), width);
    auto best = nest(ranges, {}, {splat(element, -std::numeric_limits<double>::infinity(), width), start},
                     [&](ArrayRef<Value> w, ValueRange best) {
                       auto at = tapIndices(position, w);
                       Value value = load(kernel.buffers[0], linear(input, at, channel), width);
                       Value larger = arith::CmpFOp::create(*this, arith::CmpFPredicate::UGT, value, best[0]);
                       Value valid =
                           arith::CmpFOp::create(*this, arith::CmpFPredicate::ORD, best[0], best[0]);
                       Value take = arith::AndIOp::create(*this, larger, valid);
                       return SmallVector<Value>{
                           arith::SelectOp::create(*this, take, value, best[0]),
                           arith::SelectOp::create(*this, take, spread(toI32(numberOf(w)), width), best[1])};
                     });
    Value to = linear(output, position, channel);
    store(best[0], kernel.buffers[1], to);
    if (Type stored = cast<MemRefType>(kernel.buffers[2].getType()).getElementType(); !stored.isInteger(32))
      best[1] = arith::TruncIOp::create(*this, VectorType::get({width}, stored), best[1]);
    store(best[1], kernel.buffers[2], to);
  }

  void emitAvg(ArrayRef<Value> position, Value channel, int64_t width) {
    auto sum = nest(taps(position), {}, {splat(element, 0, width)}, [&](ArrayRef<Value> w, ValueRange sum) {
      Value value = load(kernel.buffers[0], linear(input, tapIndices(position, w), channel), width);
      return SmallVector<Value>{arith::AddFOp::create(*this, sum[0], value)};
    });
    Value count = spread(windowCount(position.drop_front()), width);
    store(arith::DivFOp::create(*this, sum[0], count), kernel.buffers[1], linear(output, position, channel));
  }

  SmallVector<IndexRange> windows(ArrayRef<Value> position) {
    SmallVector<IndexRange> ranges;
    for (int64_t d = 0; d < spatial; ++d)
      ranges.push_back(windowsOver(d, position[d + 1]));
    return ranges;
  }

  /// The places of windows at `o` that lie on `position`, where isCovered() says that they do.
  SmallVector<Value> tapsAt(ArrayRef<Value> position, ArrayRef<Value> o) {
    SmallVector<Value> w;
    for (int64_t d = 0; d < spatial; ++d)
      w.push_back(div(distance(position, o, d), window.dilations[d]));
    return w;
  }

  /// How far `position` is from where the window at `o` starts, in dimension `d`; not negative for windowsOver().
  Value distance(ArrayRef<Value> position, ArrayRef<Value> o, int64_t d) {
    return sub(add(position[d + 1], index(window.low[d])), mul(o[d], window.strides[d]));
  }

  void emitMaxGrad(ArrayRef<Value> position, Value channel, int64_t width) {
    auto sum =
        nest(windows(position), {}, {splat(element, 0, width)}, [&](ArrayRef<Value> o, ValueRange sum) {
          SmallVector<Value> at{position[0]};
          llvm::append_range(at, o);
          Value from = linear(output, at, channel);
          Value chosen = load(kernel.buffers[1], from, width);
          if (auto i32 = VectorType::get({width}, getI32Type()); chosen.getType() != i32)
            chosen = arith::ExtUIOp::create(*this, i32, chosen);
          Value mine = spread(toI32(numberOf(tapsAt(position, o))), width);
          Value hit = arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, chosen, mine);
          if (Value covered = isCovered(position, o))
            hit = arith::AndIOp::create(*this, hit, spread(covered, width));
          Value gradient = load(kernel.buffers[0], from, width);
          Value added = arith::AddFOp::create(*this, sum[0], gradient);
          return SmallVector<Value>{arith::SelectOp::create(*this, hit, added, sum[0])};
        });
    store(sum[0], kernel.buffers[2], linear(input, position, channel));
  }

  void emitAvgGrad(ArrayRef<Value> position, Value channel, int64_t width) {
    auto sum =
        nest(windows(position), {}, {splat(element, 0, width)}, [&](ArrayRef<Value> o, ValueRange sum) {
          SmallVector<Value> at{position[0]};
          llvm::append_range(at, o);
          Value gradient = load(kernel.buffers[0], linear(output, at, channel), width);
          Value share = arith::DivFOp::create(*this, gradient, spread(windowCount(o), width));
          Value added = arith::AddFOp::create(*this, sum[0], share);
          if (Value covered = isCovered(position, o))
            added = arith::SelectOp::create(*this, covered, added, sum[0]);
          return SmallVector<Value>{added};
        });
    store(sum[0], kernel.buffers[1], linear(input, position, channel));
  }

  /// With dilation, whether the window at `o` has a tap on the position and not beside it; null when it surely has.
  Value isCovered(ArrayRef<Value> position, ArrayRef<Value> o) {
    Value covered;
    for (int64_t d = 0; d < spatial; ++d) {
      if (window.dilations[d] == 1)
        continue;
      Value hit = arith::CmpIOp::create(*this, arith::CmpIPredicate::eq,
                                        rem(distance(position, o, d), window.dilations[d]), index(0));
      covered = covered ? arith::AndIOp::create(*this, covered, hit).getResult() : hit;
    }
    return covered;
  }

  Operation *op;
  Window window;
  SmallVector<int64_t> input, output, walked; // shapes; `walked` is that of the result
  int64_t spatial, channels, lanes, rows, rowsPerChunk;
  FloatType element;
  KernelInfo info;
  KernelFunction kernel;
};

} // namespace

bool isPool(Operation *op) {
  if (!isa<nn::MaxPoolOp, nn::MaxPoolGradOp, nn::AvgPoolOp, nn::AvgPoolGradOp>(op))
    return false;
  Type element = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
  return element.isF32() || element.isF64();
}

KernelInfo generatePoolKernel(ModuleOp module, StringRef name, Operation *op, const Target &target) {
  return PoolEmitter(module, name, op, target).emit();
}

} // namespace ortc::cpu
