// Convolutions and their gradients as products of matrices that are never stored.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/conv/ConvAccess.h"

#include "compiler/backends/gpu/product/ScalarAccess.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::gpu {

namespace {

using Indices = SmallVector<Value>;

ArrayRef<int64_t> sizesOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

SmallVector<int64_t> concat(std::initializer_list<ArrayRef<int64_t>> lists) {
  SmallVector<int64_t> all;
  for (ArrayRef<int64_t> list : lists)
    all.append(list.begin(), list.end());
  return all;
}

/// What the three have in common.
class ConvAccess : public ProductAccess {
public:
  ConvAccess(const ConvForm &form, const ConvShape &shape, ArrayRef<Value> buffers,
             const MathOptions &options)
      : form(form), shape(shape), buffers(buffers), epilogue(codeOf(form.epilogue, options)) {}

protected:
  /// How far an operand of the convolution moves with its indices. An index may be less than zero: the element that is
  /// read is where several such sums lead to.
  Value placeOf(ThreadBuilder &b, unsigned operand, ArrayRef<Value> indices) {
    Value at = b.index(0);
    for (auto [index, size] : llvm::zip_equal(indices, sizesOf(form.op->getOperand(operand))))
      at = b.add(b.mul(at, size), index);
    return at;
  }
  /// An element of an operand; null `inside`: it is always there.
  ElementPlace elementAt(unsigned operand, Value place, Value inside = {}) {
    return {buffers[form.operands[operand].buffer], place, inside};
  }
  /// Of neighbours along the innermost dimension of an operand: features.
  int64_t features(unsigned operand) const { return sizesOf(form.op->getOperand(operand)).back(); }
  /// Stores the element of the result at `indices`, after the epilogue.
  void storeAt(ThreadBuilder &b, ArrayRef<Value> indices, Value sum) {
    auto place = [&](unsigned operand) {
      const ConvOperand &to = form.operands[operand];
      Value at = b.index(to.offset);
      for (auto [index, stride] : llvm::zip_equal(indices, to.strides))
        if (stride != 0)
          at = b.add(at, b.mul(index, stride));
      return std::make_pair(buffers[to.buffer], at);
    };
    finishElement(b, epilogue, place, sum);
  }
  /// 0 <= value < size, as numbers without sign.
  static Value isWithin(ThreadBuilder &b, Value value, int64_t size) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, value, b.index(size));
  }
  /// Whether the threads of a block have the tap in common, of which there are `size` steps: `k.start` tells it.
  static bool isInTap(const DepthPosition &k, int64_t size) { return k.span > 1 && size % k.span == 0; }
  /// What a window reads in one dimension: an element for each of its taps.
  struct Reach {
    Value start;                  ///< of the window
    SmallVector<int64_t> offsets; ///< of the taps from there on
    Value tap;                    ///< the one that is read
    int64_t size = 0;             ///< elements that there are
  };
  /// That elements are there in all of these dimensions. Where a block's threads have the tap in common (`isCommon`), a
  /// window knows before the loop which of its taps find none, by a bit each.
  static Value areThere(ThreadBuilder &b, ArrayRef<Reach> reaches, bool isCommon) {
    size_t taps = 0;
    for (const Reach &reach : reaches)
      taps += reach.offsets.size();
    Value inside;
    if (!isCommon || taps > 32) {
      for (const Reach &reach : reaches) {
        int64_t step = reach.offsets.size() > 1 ? reach.offsets[1] - reach.offsets[0] : 0;
        Value offset = b.add(b.mul(reach.tap, step), reach.offsets[0]);
        inside = b.both(inside, isWithin(b, b.add(reach.start, offset), reach.size));
      }
      return inside;
    }
    Value missing = b.constant32(0), read = missing;
    int64_t bit = 0;
    for (const Reach &reach : reaches) {
      Value own = arith::ShLIOp::create(b, b.constant32(int64_t(1) << bit), b.toI32(reach.tap));
      read = arith::OrIOp::create(b, read, own);
      for (int64_t offset : reach.offsets) {
        Value isThere = isWithin(b, b.add(reach.start, offset), reach.size);
        Value one = b.choose(isThere, b.constant32(0), b.constant32(int64_t(1) << bit++));
        missing = arith::OrIOp::create(b, missing, one);
      }
    }
    Value without = arith::AndIOp::create(b, missing, read);
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, without, b.constant32(0));
  }
  /// The element of the input that the window at an output, with its image, reads with a tap, with its channel. What
  /// belongs to the output and what belongs to the tap are added last: in a loop one of them stays as it is.
  ElementPlace locateInput(ThreadBuilder &b, ArrayRef<Value> output, ArrayRef<Value> tap, bool isCommon) {
    Indices start{output.front()}, offset{b.index(0)};
    SmallVector<Reach> reaches;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      start.push_back(b.sub(b.mul(output[d + 1], shape.strides[d]), b.index(shape.low[d])));
      offset.push_back(b.mul(tap[d], shape.dilations[d]));
      int64_t last = (shape.output[d] - 1) * shape.strides[d] + (shape.filter[d] - 1) * shape.dilations[d];
      if (shape.low[d] <= 0 && last - shape.low[d] < shape.input[d])
        continue;
      Reach &reach = reaches.emplace_back(Reach{start.back(), {}, tap[d], shape.input[d]});
      for (int64_t i = 0; i < shape.filter[d]; ++i)
        reach.offsets.push_back(i * shape.dilations[d]);
    }
    start.push_back(b.index(0)), offset.push_back(tap.back());
    Value inside = reaches.empty() ? Value() : areThere(b, reaches, isCommon);
    return elementAt(0, b.add(placeOf(b, 0, start), placeOf(b, 0, offset)), inside);
  }

  const ConvForm &form;
  const ConvShape shape;
  ArrayRef<Value> buffers;
  const Epilogue epilogue;
};

class ForwardAccess final : public ConvAccess {
public:
  using ConvAccess::ConvAccess;

  static ProductShape productOf(const ConvShape &shape, Type element) {
    int64_t taps = nn::elementCount(shape.filter);
    ProductShape product{shape.groups, shape.batch * nn::elementCount(shape.output), shape.groupFeatures(),
                         taps * shape.groupChannels(), element};
    product.row = {.isAlongDepth = true, .run = shape.groupChannels()};
    product.column.run = shape.groupFeatures();
    product.gatheredRun = shape.groupChannels();
    return product;
  }
  void begin(ThreadBuilder &, Value number) override { group = number; }
  ElementPlace locate(ThreadBuilder &b, Side side, Value index, const DepthPosition &k) override {
    Indices tap = delinearize(b, k, concat({shape.filter, {shape.groupChannels()}}));
    if (side == Side::column) {
      tap.push_back(featureOf(b, index));
      return elementAt(1, placeOf(b, 1, tap));
    }
    tap.back() = b.add(b.mul(group, shape.groupChannels()), tap.back());
    return locateInput(b, outputAt(b, index), tap, isInTap(k, shape.groupChannels()));
  }
  /// Of the filter: the depth is all of its other dimensions.
  std::optional<ElementStrides> stridesOf(Side side, int64_t) const override {
    return side == Side::column ? std::optional(ElementStrides{1, features(1)}) : std::nullopt;
  }
  void store(ThreadBuilder &b, Value row, Value column, Value sum) override {
    Indices at = outputAt(b, row);
    at.push_back(featureOf(b, column));
    storeAt(b, at, sum);
  }

private:
  Value featureOf(ThreadBuilder &b, Value column) {
    return b.add(b.mul(group, shape.groupFeatures()), column);
  }
  /// Image and position.
  Indices outputAt(ThreadBuilder &b, Value row) {
    return delinearize(b, row, concat({{shape.batch}, shape.output}));
  }

  Value group;
};

class InputGradAccess final : public ConvAccess {
public:
  using ConvAccess::ConvAccess;

  static ProductShape productOf(const ConvShape &shape, Type element) {
    ProductShape product{shape.groups, shape.batch, shape.groupChannels(), shape.groupFeatures(), element};
    for (int64_t d = 0; d < shape.rank(); ++d) {
      product.products *= phases(shape, d);
      product.rows *= points(shape, d);
      product.depth *= taps(shape, d);
    }
    product.row = product.column = {.isAlongDepth = true, .run = shape.groupFeatures()};
    product.gatheredRun = shape.groupFeatures();
    return product;
  }
  void begin(ThreadBuilder &b, Value number) override {
    SmallVector<int64_t> sizes;
    for (int64_t d = 0; d < shape.rank(); ++d)
      sizes.push_back(phases(shape, d));
    sizes.push_back(shape.groups);
    phase = delinearize(b, number, sizes);
    group = phase.pop_back_val();
    for (int64_t d = 0; d < shape.rank(); ++d) {
      Value shifted = b.add(phase[d], shape.low[d]);
      firstTap.push_back(b.rem(shifted, phases(shape, d)));
      firstOutput.push_back(b.div(shifted, phases(shape, d)));
    }
  }
  ElementPlace locate(ThreadBuilder &b, Side side, Value index, const DepthPosition &k) override {
    SmallVector<int64_t> sizes;
    for (int64_t d = 0; d < shape.rank(); ++d)
      sizes.push_back(taps(shape, d));
    sizes.push_back(shape.groupFeatures());
    Indices step = delinearize(b, k, sizes);
    Value feature = b.add(b.mul(group, shape.groupFeatures()), step.pop_back_val());
    return side == Side::column ? locateFilter(b, step, feature, index)
                                : locateGradient(b, index, step, feature, isInTap(k, shape.groupFeatures()));
  }
  /// Of the filter, within a tap.
  std::optional<ElementStrides> stridesOf(Side side, int64_t span) const override {
    if (side == Side::row || shape.groupFeatures() % span != 0)
      return std::nullopt;
    return ElementStrides{features(1), 1};
  }
  /// A phase that no filter position meets.
  Value isEmpty(ThreadBuilder &b) override {
    Value meets;
    for (int64_t d = 0; d < shape.rank(); ++d)
      if (phases(shape, d) > shape.filter[d])
        meets = b.both(meets, b.less(firstTap[d], shape.filter[d]));
    Value one = meets ? arith::ConstantOp::create(b, b.getBoolAttr(true)).getResult() : Value();
    return meets ? arith::XOrIOp::create(b, meets, one).getResult() : Value();
  }
  void store(ThreadBuilder &b, Value row, Value column, Value sum) override {
    Indices at = pointAt(b, row);
    Value inside;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      Value &position = at[d + 1] = b.add(b.mul(at[d + 1], phases(shape, d)), phase[d]);
      if (shape.input[d] % phases(shape, d) != 0)
        inside = b.both(inside, b.less(position, shape.input[d]));
    }
    at.push_back(b.add(b.mul(group, shape.groupChannels()), column));
    if (inside)
      b.guarded(inside, [&] { storeAt(b, at, sum); });
    else
      storeAt(b, at, sum);
  }

private:
  // Position `phase + phases * point` of the input meets filter position `firstTap + phases * step` at output
  // `firstOutput + point - step`, where the filter has that position and the output this one.
  static int64_t phases(const ConvShape &shape, int64_t d) {
    return shape.dilations[d] == 1 ? shape.strides[d] : 1;
  }
  static int64_t points(const ConvShape &shape, int64_t d) {
    return llvm::divideCeilSigned(shape.input[d], phases(shape, d));
  }
  static int64_t taps(const ConvShape &shape, int64_t d) {
    return llvm::divideCeilSigned(shape.filter[d], phases(shape, d));
  }
  /// Image and point.
  Indices pointAt(ThreadBuilder &b, Value row) {
    SmallVector<int64_t> sizes{shape.batch};
    for (int64_t d = 0; d < shape.rank(); ++d)
      sizes.push_back(points(shape, d));
    return delinearize(b, row, sizes);
  }
  ElementPlace locateFilter(ThreadBuilder &b, ArrayRef<Value> step, Value feature, Value channel) {
    Indices tap;
    Value inside;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      tap.push_back(b.add(firstTap[d], b.mul(step[d], phases(shape, d))));
      if (shape.filter[d] % phases(shape, d) != 0)
        inside = b.both(inside, b.less(tap.back(), shape.filter[d]));
    }
    tap.append({channel, feature});
    return elementAt(1, placeOf(b, 1, tap), inside);
  }
  /// As locateInput: what belongs to the row and what belongs to the depth are added last, where nothing is divided.
  ElementPlace locateGradient(ThreadBuilder &b, Value row, ArrayRef<Value> step, Value feature,
                              bool isCommon) {
    Indices point = pointAt(b, row), start{point.front()}, offset{b.index(0)};
    SmallVector<Reach> reaches;
    Value inside;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      Value from = b.add(firstOutput[d], point[d + 1]);
      Value back = b.sub(b.index(0), b.mul(step[d], shape.dilations[d]));
      if (shape.strides[d] == phases(shape, d)) {
        start.push_back(from), offset.push_back(back);
        Reach &reach = reaches.emplace_back(Reach{from, {}, step[d], shape.output[d]});
        for (int64_t i = 0; i < taps(shape, d); ++i)
          reach.offsets.push_back(-i * shape.dilations[d]);
      } else {
        start.push_back(divide(b, d, b.add(from, back), inside)), offset.push_back(b.index(0));
      }
    }
    start.push_back(b.index(0)), offset.push_back(feature);
    if (!reaches.empty())
      inside = b.both(inside, areThere(b, reaches, isCommon));
    return elementAt(0, b.add(placeOf(b, 0, start), placeOf(b, 0, offset)), inside);
  }
  /// The output whose window begins at `from`, where there is one.
  Value divide(ThreadBuilder &b, int64_t d, Value from, Value &inside) {
    int64_t stride = shape.strides[d];
    inside = b.both(inside, isWithin(b, from, (shape.output[d] - 1) * stride + 1));
    Value isWhole = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, b.rem(from, stride), b.index(0));
    inside = b.both(inside, isWhole);
    return b.div(from, stride);
  }

  Value group;
  Indices phase, firstTap, firstOutput;
};

class FilterGradAccess final : public ConvAccess {
public:
  using ConvAccess::ConvAccess;

  static ProductShape productOf(const ConvShape &shape, Type element) {
    int64_t taps = nn::elementCount(shape.filter);
    ProductShape product{shape.parts * shape.groups, taps * shape.groupChannels(), shape.groupFeatures(),
                         shape.batch * nn::elementCount(shape.output), element};
    product.row.run = shape.groupChannels(), product.column.run = shape.groupFeatures();
    return product;
  }
  void begin(ThreadBuilder &b, Value number) override {
    auto digits = delinearize(b, number, {shape.parts, shape.groups});
    part = digits[0], group = digits[1];
  }
  ElementPlace locate(ThreadBuilder &b, Side side, Value index, const DepthPosition &k) override {
    Indices output = delinearize(b, k, concat({{shape.batch}, shape.output}));
    output.front() = b.add(b.mul(part, shape.batch), output.front());
    if (side == Side::column) {
      output.push_back(featureOf(b, index));
      return elementAt(1, placeOf(b, 1, output));
    }
    Indices tap = tapAt(b, index);
    tap.back() = b.add(b.mul(group, shape.groupChannels()), tap.back());
    return locateInput(b, output, tap, /*isCommon=*/false);
  }
  /// Of the gradient: the depth is its positions.
  std::optional<ElementStrides> stridesOf(Side side, int64_t) const override {
    return side == Side::column ? std::optional(ElementStrides{1, features(1)}) : std::nullopt;
  }
  void store(ThreadBuilder &b, Value row, Value column, Value sum) override {
    Indices at;
    if (shape.parts > 1)
      at.push_back(part);
    at.append(tapAt(b, row));
    at.push_back(featureOf(b, column));
    storeAt(b, at, sum);
  }

private:
  Value featureOf(ThreadBuilder &b, Value column) {
    return b.add(b.mul(group, shape.groupFeatures()), column);
  }
  /// Filter position and channel of the group.
  Indices tapAt(ThreadBuilder &b, Value row) {
    return delinearize(b, row, concat({shape.filter, {shape.groupChannels()}}));
  }

  Value part, group;
};

/// Channels or features of a group are neighbours in operands and filters alike: all steps to others are multiples of
/// their number.
void limitRuns(ProductShape &product, const ConvForm &form, const KernelBuilder &kernel) {
  for (unsigned operand : {0, 1}) {
    OperandLayout &layout = operand == 0 ? product.row : product.column;
    layout.narrow = form.narrow[operand];
    Type stored = layout.narrow ? layout.narrow : product.element;
    layout.run = longestRun({layout.run}, stored.getIntOrFloatBitWidth(),
                            kernel.alignmentOf(form.operands[operand].buffer));
  }
}

template <typename Access>
ConvProduct makeProduct(const ConvForm &form, const MathOptions &options, const KernelBuilder &kernel) {
  ConvShape shape = shapeOfConv(form.op);
  Type element = cast<RankedTensorType>(form.op->getResult(0).getType()).getElementType();
  ProductShape product = Access::productOf(shape, element);
  limitRuns(product, form, kernel);
  product.areProductsInRows = product.isGathered = product.mayCutDepth = true;
  return {product, [&form, &options, shape](ArrayRef<Value> buffers) {
            return std::make_unique<Access>(form, shape, buffers, options);
          }};
}

} // namespace

ConvProduct makeConvProduct(const ConvForm &form, const MathOptions &options, const KernelBuilder &kernel) {
  if (isa<nn::ConvOp>(form.op))
    return makeProduct<ForwardAccess>(form, options, kernel);
  if (isa<nn::ConvInputGradOp>(form.op))
    return makeProduct<InputGradAccess>(form, options, kernel);
  return makeProduct<FilterGradAccess>(form, options, kernel);
}

} // namespace ortc::gpu
