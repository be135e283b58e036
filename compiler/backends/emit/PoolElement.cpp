// An element of the result of pooling, or of its gradient.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward, the taps of a window that lie inside the input are walked; gradients walk, for each element of the input,
// the windows that cover it. So nothing is scattered, and bounds are loop bounds, not branches.
#include "compiler/backends/emit/PoolElement.h"

#include "compiler/backends/emit/WindowRange.h"
#include "dialects/nn/NnDialect.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;

namespace ortc::emit {

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

class PoolEmitter {
public:
  PoolEmitter(LoopBuilder &builder, Operation *op, ArrayRef<Value> buffers)
      : b(builder), op(op), buffers(buffers) {
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
    spatial = input.size() - 2;
    channels = input.back();
    element = cast<FloatType>(result.getElementType());
  }

  void emit(ArrayRef<Value> position, Value channel, int64_t width) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](nn::MaxPoolOp) { emitMax(position, channel, width); })
        .Case([&](nn::MaxPoolGradOp) { emitMaxGrad(position, channel, width); })
        .Case([&](nn::AvgPoolOp) { emitAvg(position, channel, width); })
        .Case([&](nn::AvgPoolGradOp) { emitAvgGrad(position, channel, width); });
  }

private:
  static Type laneType(Type element, int64_t width) {
    return width > 0 ? Type(VectorType::get({width}, element)) : element;
  }
  /// A nest over `ranges` that carries `values`; `body` gets the indices and the values and returns the new values.
  SmallVector<Value> nest(ArrayRef<IndexRange> ranges, SmallVector<Value> indices, ValueRange values,
                          llvm::function_ref<SmallVector<Value>(ArrayRef<Value>, ValueRange)> body) {
    if (ranges.empty())
      return body(indices, values);
    return b.fold(ranges.front(), 1, values, [&](Value i, ValueRange carried) {
      auto inner = indices;
      inner.push_back(i);
      return nest(ranges.drop_front(), inner, carried, body);
    });
  }

  /// Position of an element in a tensor of `shape`, given all indices but the channel.
  Value linear(ArrayRef<int64_t> shape, ArrayRef<Value> indices, Value channel) {
    Value at = indices.front();
    for (size_t d = 1; d < indices.size(); ++d)
      at = b.add(b.mul(at, shape[d]), indices[d]);
    return b.add(b.mul(at, channels), channel);
  }

  WindowDim windowDim(int64_t d) const {
    return {input[d + 1], window.size[d], window.strides[d], window.low[d], window.dilations[d]};
  }
  /// Taps of the window at output position `o` of dimension `d` that lie inside the input.
  IndexRange tapsInside(int64_t d, Value o) { return emit::tapsInside(b, windowDim(d), o); }
  /// Where tap `w` of the window at `o` reads.
  Value tapPosition(int64_t d, Value o, Value w) { return emit::tapPosition(b, windowDim(d), o, w); }

  /// Windows that may cover input position `i` of dimension `d`.
  IndexRange windowsOver(int64_t d, Value i) {
    int64_t reach = (window.size[d] - 1) * window.dilations[d];
    Value at = b.add(i, b.index(window.low[d]));
    Value first = b.ceilDivPositive(b.sub(at, b.index(reach)), window.strides[d]);
    Value last = b.add(b.div(at, window.strides[d]), b.index(1));
    return {first, b.minimum(last, b.index(output[d + 1]))};
  }

  /// How many elements the window at `o` counts, as a float of `element`; the product over the dimensions.
  Value windowCount(ArrayRef<Value> o) {
    Value count;
    for (int64_t d = 0; d < spatial; ++d) {
      IndexRange taps = tapsInside(d, o[d]);
      if (window.countPadding) {
        Value start = b.sub(b.mul(o[d], window.strides[d]), b.index(window.low[d]));
        Value held =
            b.ceilDivPositive(b.sub(b.index(input[d + 1] + window.high[d]), start), window.dilations[d]);
        taps = {b.index(0), b.minimum(held, b.index(window.size[d]))};
      }
      Value size = b.sub(taps.end, taps.begin);
      count = count ? b.createOrFold<arith::MulIOp>(count, size) : size;
    }
    return arith::SIToFPOp::create(b, element, b.toI32(count));
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
      number = b.add(b.mul(number, window.size[d]), w[d]);
    return number;
  }

  void emitMax(ArrayRef<Value> position, Value channel, int64_t width) {
    auto ranges = taps(position);
    SmallVector<Value> first;
    for (IndexRange range : ranges)
      first.push_back(range.begin);
    Value start = b.spread(b.toI32(numberOf(first)), width);
    auto best = nest(ranges, {}, {b.splat(element, -std::numeric_limits<double>::infinity(), width), start},
                     [&](ArrayRef<Value> w, ValueRange best) {
                       auto at = tapIndices(position, w);
                       Value value = b.load(buffers[0], linear(input, at, channel), width);
                       Value larger = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, value, best[0]);
                       Value valid = arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, best[0], best[0]);
                       Value take = arith::AndIOp::create(b, larger, valid);
                       return SmallVector<Value>{
                           arith::SelectOp::create(b, take, value, best[0]),
                           arith::SelectOp::create(b, take, b.spread(b.toI32(numberOf(w)), width), best[1])};
                     });
    Value to = linear(output, position, channel);
    b.store(best[0], buffers[1], to);
    if (Type stored = cast<MemRefType>(buffers[2].getType()).getElementType(); !stored.isInteger(32))
      best[1] = arith::TruncIOp::create(b, laneType(stored, width), best[1]);
    b.store(best[1], buffers[2], to);
  }

  void emitAvg(ArrayRef<Value> position, Value channel, int64_t width) {
    auto sum = nest(taps(position), {}, {b.splat(element, 0, width)}, [&](ArrayRef<Value> w, ValueRange sum) {
      Value value = b.load(buffers[0], linear(input, tapIndices(position, w), channel), width);
      return SmallVector<Value>{arith::AddFOp::create(b, sum[0], value)};
    });
    Value count = b.spread(windowCount(position.drop_front()), width);
    b.store(arith::DivFOp::create(b, sum[0], count), buffers[1], linear(output, position, channel));
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
      w.push_back(b.div(distance(position, o, d), window.dilations[d]));
    return w;
  }

  /// How far `position` is from where the window at `o` starts, in dimension `d`; not negative for windowsOver().
  Value distance(ArrayRef<Value> position, ArrayRef<Value> o, int64_t d) {
    return b.sub(b.add(position[d + 1], b.index(window.low[d])), b.mul(o[d], window.strides[d]));
  }

  void emitMaxGrad(ArrayRef<Value> position, Value channel, int64_t width) {
    auto sum =
        nest(windows(position), {}, {b.splat(element, 0, width)}, [&](ArrayRef<Value> o, ValueRange sum) {
          SmallVector<Value> at{position[0]};
          llvm::append_range(at, o);
          Value from = linear(output, at, channel);
          Value chosen = b.load(buffers[1], from, width);
          if (auto i32 = laneType(b.getI32Type(), width); chosen.getType() != i32)
            chosen = arith::ExtUIOp::create(b, i32, chosen);
          Value mine = b.spread(b.toI32(numberOf(tapsAt(position, o))), width);
          Value hit = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, chosen, mine);
          if (Value covered = isCovered(position, o))
            hit = arith::AndIOp::create(b, hit, b.spread(covered, width));
          Value gradient = b.load(buffers[0], from, width);
          Value added = arith::AddFOp::create(b, sum[0], gradient);
          return SmallVector<Value>{arith::SelectOp::create(b, hit, added, sum[0])};
        });
    b.store(sum[0], buffers[2], linear(input, position, channel));
  }

  void emitAvgGrad(ArrayRef<Value> position, Value channel, int64_t width) {
    auto sum =
        nest(windows(position), {}, {b.splat(element, 0, width)}, [&](ArrayRef<Value> o, ValueRange sum) {
          SmallVector<Value> at{position[0]};
          llvm::append_range(at, o);
          Value gradient = b.load(buffers[0], linear(output, at, channel), width);
          Value share = arith::DivFOp::create(b, gradient, b.spread(windowCount(o), width));
          Value added = arith::AddFOp::create(b, sum[0], share);
          if (Value covered = isCovered(position, o))
            added = arith::SelectOp::create(b, covered, added, sum[0]);
          return SmallVector<Value>{added};
        });
    b.store(sum[0], buffers[1], linear(input, position, channel));
  }

  /// With dilation, whether the window at `o` has a tap on the position and not beside it; null when it surely has.
  Value isCovered(ArrayRef<Value> position, ArrayRef<Value> o) {
    Value covered;
    for (int64_t d = 0; d < spatial; ++d) {
      if (window.dilations[d] == 1)
        continue;
      Value hit = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        b.rem(distance(position, o, d), window.dilations[d]), b.index(0));
      covered = covered ? arith::AndIOp::create(b, covered, hit).getResult() : hit;
    }
    return covered;
  }

  LoopBuilder &b;
  Operation *op;
  ArrayRef<Value> buffers;
  Window window;
  SmallVector<int64_t> input, output; // shapes
  int64_t spatial, channels;
  FloatType element;
};

} // namespace

bool isPool(Operation *op) {
  if (!isa<nn::MaxPoolOp, nn::MaxPoolGradOp, nn::AvgPoolOp, nn::AvgPoolGradOp>(op))
    return false;
  Type element = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
  return element.isF32() || element.isF64();
}

int64_t countTaps(Operation *op) {
  int64_t taps = 1;
  llvm::TypeSwitch<Operation *>(op).Case<nn::MaxPoolOp, nn::MaxPoolGradOp, nn::AvgPoolOp, nn::AvgPoolGradOp>(
      [&](auto pool) {
        for (int64_t size : pool.getWindow())
          taps *= size;
      });
  return taps;
}

void emitPoolElement(LoopBuilder &builder, Operation *op, ArrayRef<Value> buffers, ArrayRef<Value> position,
                     Value channel, int64_t width) {
  PoolEmitter(builder, op, buffers).emit(position, channel, width);
}

} // namespace ortc::emit
