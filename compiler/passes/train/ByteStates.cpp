// States of optimizers in eight bits a value.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Codes of magnitudes are found without a search: in a power of ten they are evenly spaced, so that a product and a sum
// give a code that is right or one too small, and a table says from which magnitude on the next one is nearer.
#include "compiler/passes/train/ByteStates.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static constexpr int kTens = 7;
static constexpr float kScales[kTens] = {1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f, 1};

/// Means in the power of ten, and codes of magnitudes below its first one.
static int meansOf(int ten, bool isSigned) { return 1 << (ten + !isSigned); }
static int codesBelow(int ten, bool isSigned) { return isSigned ? 1 << ten : (2 << ten) - 1; }

/// 0, the means, 1.
static std::vector<float> magnitudes(bool isSigned) {
  std::vector<float> values{0};
  for (int ten = 0; ten < kTens; ++ten) {
    const int n = meansOf(ten, isSigned);
    const float step = (1.0f - 0.1f) / static_cast<float>(n);
    auto bound = [&](int k) { // of torch.linspace(0.1, 1, n + 1)
      return k < (n + 1) / 2 ? std::fma(step, static_cast<float>(k), 0.1f)
                             : std::fma(-step, static_cast<float>(n - k), 1.0f);
    };
    for (int k = 0; k < n; ++k)
      values.push_back(kScales[ten] * ((bound(k) + bound(k + 1)) / 2));
  }
  values.push_back(1);
  return values;
}

std::array<float, 256> createDynamicMap(bool isSigned) {
  std::vector<float> values = magnitudes(isSigned);
  if (isSigned)
    for (size_t i = values.size() - 1; i-- > 1;)
      values.push_back(-values[i]);
  std::array<float, 256> map{};
  assert(values.size() == map.size());
  llvm::copy(values, map.begin());
  llvm::sort(map);
  return map;
}

Blocks::Blocks(TensorBuilder &b, ArrayRef<int64_t> shape, ArrayRef<int64_t> axes)
    : b(b), shape(shape), axes(axes), isMoved(!llvm::is_sorted(axes)) {
  for (int64_t size : shape)
    elements *= size;
  count = (elements + kSize - 1) / kSize;
}

Value Blocks::cut(Value tensor) const {
  if (isMoved)
    tensor = b.transpose(tensor, axes);
  if (int64_t rest = count * kSize - elements)
    tensor = b.padZeros(b.reshape(tensor, {elements}), {0}, {rest});
  return b.reshape(tensor, {count, kSize});
}

Value Blocks::join(Value rows) const {
  if (elements != count * kSize)
    rows = b.slice(b.reshape(rows, {count * kSize}), {0}, {elements});
  Value tensor = b.reshape(rows, shape);
  if (!isMoved)
    return tensor;
  SmallVector<int64_t> back(axes.size());
  for (auto [i, axis] : llvm::enumerate(axes))
    back[axis] = static_cast<int64_t>(i);
  return b.transpose(tensor, back);
}

namespace {

/// Codes of magnitudes as a piecewise linear function: by ranges from one power of four to the next, in which at most
/// one power of ten is passed. Their number is in the upper bits of an f32.
struct Tens {
  static constexpr int kRanges = 16;
  static constexpr double kLeast = 0x1p-31; ///< with the code of 0, as all that is less
  static constexpr double kWhole = 0x1p23;  ///< from here on an f32 has no fraction

  explicit Tens(bool isSigned) {
    for (int range = 0; range < kRanges; ++range) {
      // 127 stands for the exponent 0.
      const double first = std::ldexp(1.0, 2 * (range + 48) - 127);
      int ten = 0;
      while (ten + 1 < kTens && kScales[ten] <= first)
        ++ten;
      limit[range] =
          ten + 1 < kTens && kScales[ten] < 4 * first ? kScales[ten] : std::numeric_limits<float>::infinity();
      for (int above : {0, 1}) {
        // The means begin at a tenth, and what is one too small everywhere ends so at the power of ten. A start that is
        // whole is exact beside kWhole; the line is turned a little for it, which stays within half a code.
        int which = std::min(ten + above, kTens - 1), means = meansOf(which, isSigned);
        double end = codesBelow(which, isSigned) + means - 1, whole = std::floor(end - means / 0.9 + 0.25);
        slope[above * kRanges + range] = static_cast<float>((end - whole) / kScales[which]);
        start[above * kRanges + range] = static_cast<float>(whole + kWhole);
      }
    }
  }

  std::array<float, kRanges> limit;
  std::array<float, 2 * kRanges> slope, start; ///< of what is below the limit, then of what is not
};

/// Arithmetic on rows.
class Coder {
public:
  Coder(TensorBuilder &b, ArrayRef<int64_t> shape, bool isSigned)
      : b(b), shape(shape), isSigned(isSigned), numbers(RankedTensorType::get(shape, b.getF32Type())),
        words(RankedTensorType::get(shape, b.getI32Type())) {}

  Value decode(const ByteState &state) {
    std::array<float, 256> map = createDynamicMap(isSigned);
    Value index = b.cast(state.codes, b.getI32Type(), /*fromUnsigned=*/true);
    return b.mul(lookUp<float>(map, index), b.broadcast(state.largest, shape, {0}));
  }

  ByteState encode(Value rows) {
    // Of magnitudes the bits have the same order, and a NaN is the largest.
    Value largest = b.reduce(nn::ReduceKind::max, arith::BitcastOp::create(b, words, b.abs(rows)), {1});
    largest = arith::BitcastOp::create(b, RankedTensorType::get({shape[0]}, b.getF32Type()), largest);
    Value inverse = b.div(b.constantLike(largest, 1), largest);
    Value share = b.mul(rows, b.broadcast(inverse, shape, {0}));
    Value code = guess(isSigned ? b.abs(share) : share);
    // Twice the bits of the magnitude, and one more below zero.
    Value bits = arith::BitcastOp::create(b, words, share);
    Value sign = arith::ShRUIOp::create(b, bits, word(31));
    Value place = arith::OrIOp::create(b, arith::ShLIOp::create(b, bits, word(1)), sign);
    Value isNext = b.compare(arith::CmpIPredicate::sgt, place, lookUp<int32_t>(limits(), code));
    code = b.cast(code, b.getI8Type());
    code = b.add(code, b.cast(isNext, b.getI8Type(), /*fromUnsigned=*/true));
    if (isSigned) {
      Value zero = b.constantLike(code, kZero), none = b.constantLike(code, 0);
      Value negative = b.maximum(b.sub(zero, code), none); // there is no -1
      Value isNegative = b.compare(arith::CmpIPredicate::ne, sign, word(0));
      code = b.select(isNegative, negative, b.add(zero, code));
    }
    return {code, largest};
  }

private:
  static constexpr int kZero = 127; ///< the code of 0, with signs

  Value word(int64_t value) { return b.constant(words, static_cast<double>(value)); }
  template <typename T> Value lookUp(ArrayRef<T> table, Value index) {
    auto type = RankedTensorType::get({static_cast<int64_t>(table.size())},
                                      std::is_same_v<T, float> ? Type(b.getF32Type()) : b.getI32Type());
    Value values = arith::ConstantOp::create(b, DenseElementsAttr::get(type, table));
    return nn::GatherOp::create(b, RankedTensorType::get(shape, type.getElementType()), values, index, 0);
  }

  /// The code of a magnitude, counted from zero, or the one below it. In the middle of a mean's range the one becomes
  /// the other, so that rounding here decides nothing.
  Value guess(Value magnitude) {
    auto number = [&](double value) { return b.constant(numbers, value); };
    Tens tens(isSigned);
    Value least = number(Tens::kLeast);
    Value bounded = b.select(b.compare(arith::CmpFPredicate::OGT, magnitude, least), magnitude, least);
    Value bits = arith::BitcastOp::create(b, words, bounded);
    Value range =
        arith::AndIOp::create(b, arith::ShRUIOp::create(b, bits, word(24)), word(Tens::kRanges - 1));
    Value isAbove = b.compare(arith::CmpFPredicate::OGE, magnitude, lookUp<float>(tens.limit, range));
    range = b.add(range, b.select(isAbove, word(Tens::kRanges), word(0)));
    Value code = b.add(b.mul(magnitude, lookUp<float>(tens.slope, range)), lookUp<float>(tens.start, range));
    return arith::AndIOp::create(b, arith::BitcastOp::create(b, words, code), word(kMask()));
  }
  int64_t kMask() const { return isSigned ? 127 : 255; }

  /// For each code twice the bits of the magnitude in the middle between it and the next one, and one more where no f32
  /// is there.
  SmallVector<int32_t> limits() const {
    std::vector<float> values = magnitudes(isSigned);
    SmallVector<int32_t> table;
    for (int64_t code = 0; code <= kMask(); ++code) {
      if (code + 1 == static_cast<int64_t>(values.size())) {
        table.push_back(std::numeric_limits<int32_t>::max());
        continue;
      }
      double middle = (static_cast<double>(values[code]) + values[code + 1]) / 2;
      float below = static_cast<float>(middle);
      if (below > middle)
        below = std::nextafter(below, 0.0f);
      table.push_back(2 * llvm::bit_cast<int32_t>(below) + (below != middle));
    }
    return table;
  }

  TensorBuilder &b;
  ArrayRef<int64_t> shape;
  bool isSigned;
  RankedTensorType numbers, words;
};

} // namespace

Value decode(TensorBuilder &b, const ByteState &state, bool isSigned, Type element) {
  return b.cast(Coder(b, TensorBuilder::shapeOf(state.codes), isSigned).decode(state), element);
}

ByteState encode(TensorBuilder &b, Value rows, bool isSigned) {
  return Coder(b, TensorBuilder::shapeOf(rows), isSigned).encode(b.cast(rows, b.getF32Type()));
}

bool keepsBytes(const OptimizerDefinition &optimizer) {
  return llvm::any_of(optimizer.states,
                      [](const StateDefinition &state) { return state.storage != Storage::Whole; });
}

std::string nameLargest(StringRef state) { return (state + "_absmax").str(); }

LogicalResult applyFormula(const OptimizerDefinition &optimizer, const std::optional<Blocks> &blocks,
                           UpdateStep &step) {
  if (blocks) {
    step.parameter = blocks->cut(step.parameter);
    step.gradient = blocks->cut(step.gradient);
  }
  optimizer.update(step);
  if (step.isRefused)
    return failure();
  if (blocks)
    step.parameter = blocks->join(step.parameter);
  return success();
}

} // namespace ortc::train
