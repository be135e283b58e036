// Dot, convolution and pooling on host tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/evaluator/Kernels.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace ortc::evaluator {

static HostTensor dot(nn::DotOp op, const HostTensor &lhs, const HostTensor &rhs) {
  HostTensor result(resultType(op));
  auto lhsStrides = nn::rowMajorStrides(lhs.getShape()), rhsStrides = nn::rowMajorStrides(rhs.getShape());
  SmallVector<int64_t> outLhs, outRhs, contracted, inLhs, inRhs; // strides by result and contracted dimension
  for (auto [l, r] : llvm::zip_equal(op.getLhsBatch(), op.getRhsBatch())) {
    outLhs.push_back(lhsStrides[l]);
    outRhs.push_back(rhsStrides[r]);
  }
  for (int64_t dim : nn::freeDimensions(lhs.getRank(), op.getLhsBatch(), op.getLhsContract())) {
    outLhs.push_back(lhsStrides[dim]);
    outRhs.push_back(0);
  }
  for (int64_t dim : nn::freeDimensions(rhs.getRank(), op.getRhsBatch(), op.getRhsContract())) {
    outLhs.push_back(0);
    outRhs.push_back(rhsStrides[dim]);
  }
  for (auto [l, r] : llvm::zip_equal(op.getLhsContract(), op.getRhsContract())) {
    contracted.push_back(lhs.getShape()[l]);
    inLhs.push_back(lhsStrides[l]);
    inRhs.push_back(rhsStrides[r]);
  }
  if (result.size() == 0 || nn::elementCount(contracted) == 0)
    return result;
  SmallVector<int64_t> index(result.getRank(), 0);
  int64_t at = 0;
  do {
    int64_t baseLhs = 0, baseRhs = 0;
    for (auto [d, i] : llvm::enumerate(index)) {
      baseLhs += i * outLhs[d];
      baseRhs += i * outRhs[d];
    }
    double total = 0;
    SmallVector<int64_t> k(contracted.size(), 0);
    do {
      int64_t l = baseLhs, r = baseRhs;
      for (auto [d, i] : llvm::enumerate(k)) {
        l += i * inLhs[d];
        r += i * inRhs[d];
      }
      total += lhs.getFloat(l) * rhs.getFloat(r);
    } while (nextIndex(k, contracted));
    result.setFloat(at++, total);
  } while (nextIndex(index, result.getShape()));
  return result;
}

/// Calls `visit(input position, filter position, output position)` for every product of a convolution.
template <typename OpType>
static void overConv(OpType op, RankedTensorType input, RankedTensorType filter, RankedTensorType output,
                     llvm::function_ref<void(int64_t, int64_t, int64_t)> visit) {
  if (output.getNumElements() == 0)
    return;
  int64_t spatial = input.getRank() - 2, channels = filter.getDimSize(spatial),
          features = filter.getDimSize(spatial + 1);
  int64_t perGroup = features / static_cast<int64_t>(op.getGroups());
  auto window = filter.getShape().take_front(spatial);
  auto positions = output.getShape().slice(1, spatial);
  auto inStrides = nn::rowMajorStrides(input.getShape()), outStrides = nn::rowMajorStrides(output.getShape()),
       filterStrides = nn::rowMajorStrides(filter.getShape());
  for (int64_t n = 0; n < input.getDimSize(0); ++n) {
    SmallVector<int64_t> o(spatial, 0);
    do {
      SmallVector<int64_t> f(spatial, 0);
      do {
        int64_t in = n * inStrides[0], out = n * outStrides[0], tap = 0;
        bool inside = true;
        for (int64_t d = 0; d < spatial; ++d) {
          int64_t at = o[d] * op.getStrides()[d] - op.getPaddingLow()[d] + f[d] * op.getDilations()[d];
          inside &= at >= 0 && at < input.getDimSize(d + 1);
          in += at * inStrides[d + 1];
          out += o[d] * outStrides[d + 1];
          tap += f[d] * filterStrides[d];
        }
        if (!inside)
          continue;
        for (int64_t k = 0; k < features; ++k)
          for (int64_t c = 0; c < channels; ++c)
            visit(in + k / perGroup * channels + c, tap + c * features + k, out + k);
      } while (nextIndex(f, window));
    } while (nextIndex(o, positions));
  }
}

/// One of the three products of a convolution: result[to] += a[from] * b[other].
template <typename OpType, typename Order>
static HostTensor convolve(OpType op, RankedTensorType input, RankedTensorType filter,
                           RankedTensorType output, Order order) {
  HostTensor result(resultType(op));
  overConv(op, input, filter, output, [&](int64_t i, int64_t f, int64_t o) {
    auto [to, value] = order(i, f, o);
    result.setFloat(to, result.getFloat(to) + value);
  });
  return result;
}

/// Calls `visit(output position, input position, number of the window's place)` for every element of every window.
template <typename OpType>
static void overPool(OpType op, RankedTensorType input, RankedTensorType output,
                     llvm::function_ref<void(int64_t, int64_t, int64_t)> visit) {
  if (output.getNumElements() == 0)
    return;
  int64_t spatial = input.getRank() - 2;
  auto inStrides = nn::rowMajorStrides(input.getShape());
  auto window = op.getWindow();
  SmallVector<int64_t> index(output.getRank(), 0);
  int64_t at = 0;
  do {
    SmallVector<int64_t> w(spatial, 0);
    int64_t tap = 0;
    do {
      int64_t in = index[0] * inStrides[0] + index.back();
      bool inside = true;
      for (int64_t d = 0; d < spatial; ++d) {
        int64_t position =
            index[d + 1] * op.getStrides()[d] - op.getPaddingLow()[d] + w[d] * op.getDilations()[d];
        inside &= position >= 0 && position < input.getDimSize(d + 1);
        in += position * inStrides[d + 1];
      }
      if (inside)
        visit(at, in, tap);
      ++tap;
    } while (nextIndex(w, window));
    ++at;
  } while (nextIndex(index, output.getShape()));
}

/// What each window's sum is divided by.
template <typename OpType>
static std::vector<double> windowCounts(OpType op, RankedTensorType input, RankedTensorType output) {
  std::vector<double> counts(output.getNumElements(), 0);
  if (counts.empty())
    return counts;
  if (!op.getCountIncludePad()) {
    overPool(op, input, output, [&](int64_t o, int64_t, int64_t) { counts[o] += 1; });
    return counts;
  }
  SmallVector<int64_t> index(output.getRank(), 0);
  int64_t at = 0;
  do {
    double count = 1;
    for (int64_t d = 0, spatial = input.getRank() - 2; d < spatial; ++d) {
      int64_t held = 0, limit = input.getDimSize(d + 1) + op.getPaddingHigh()[d];
      for (int64_t w = 0; w < op.getWindow()[d]; ++w)
        held += index[d + 1] * op.getStrides()[d] - op.getPaddingLow()[d] + w * op.getDilations()[d] < limit;
      count *= static_cast<double>(held);
    }
    counts[at++] = count;
  } while (nextIndex(index, output.getShape()));
  return counts;
}

static Results maxPool(nn::MaxPoolOp op, const HostTensor &input) {
  HostTensor result(resultType(op)), taps(resultType(op, 1));
  std::vector<bool> seen(result.size(), false);
  overPool(op, input.getType(), result.getType(), [&](int64_t o, int64_t i, int64_t tap) {
    double value = input.getFloat(i), best = result.getFloat(o);
    if (seen[o] && (std::isnan(best) || !(value > best || std::isnan(value))))
      return;
    seen[o] = true;
    result.setFloat(o, value);
    taps.setInt(o, tap);
  });
  return {std::move(result), std::move(taps)};
}

FamilyResult evaluateContraction(Operation *op, Operands operands) {
  const HostTensor *a = operands.size() > 0 ? operands[0] : nullptr,
                   *b = operands.size() > 1 ? operands[1] : nullptr;
  return llvm::TypeSwitch<Operation *, FamilyResult>(op)
      .Case([&](nn::DotOp op) { return single(dot(op, *a, *b)); })
      .Case([&](nn::ConvOp op) {
        return single(
            convolve(op, a->getType(), b->getType(), resultType(op), [&](int64_t i, int64_t f, int64_t o) {
              return std::pair(o, a->getFloat(i) * b->getFloat(f));
            }));
      })
      .Case([&](nn::ConvInputGradOp op) {
        return single(
            convolve(op, resultType(op), b->getType(), a->getType(), [&](int64_t i, int64_t f, int64_t o) {
              return std::pair(i, a->getFloat(o) * b->getFloat(f));
            }));
      })
      .Case([&](nn::ConvFilterGradOp op) {
        RankedTensorType filter = op.getFilterType();
        int64_t ofPart = b->size() / op.getParts(), elements = filter.getNumElements();
        return single(convolve(op, a->getType(), filter, b->getType(), [&](int64_t i, int64_t f, int64_t o) {
          return std::pair(o / ofPart * elements + f, a->getFloat(i) * b->getFloat(o));
        }));
      })
      .Case([&](nn::MaxPoolOp op) { return FamilyResult(FailureOr<Results>(maxPool(op, *a))); })
      .Case([&](nn::MaxPoolGradOp op) {
        HostTensor result(resultType(op));
        overPool(op, result.getType(), a->getType(), [&](int64_t o, int64_t i, int64_t tap) {
          if (b->getInt(o) == tap)
            result.setFloat(i, result.getFloat(i) + a->getFloat(o));
        });
        return single(std::move(result));
      })
      .Case([&](nn::AvgPoolOp op) {
        HostTensor result(resultType(op));
        auto counts = windowCounts(op, a->getType(), result.getType());
        overPool(op, a->getType(), result.getType(), [&](int64_t o, int64_t i, int64_t) {
          result.setFloat(o, result.getFloat(o) + a->getFloat(i));
        });
        for (int64_t o = 0; o < result.size(); ++o)
          result.setFloat(o, result.getFloat(o) / counts[o]);
        return single(std::move(result));
      })
      .Case([&](nn::AvgPoolGradOp op) {
        HostTensor result(resultType(op));
        auto counts = windowCounts(op, result.getType(), a->getType());
        overPool(op, result.getType(), a->getType(), [&](int64_t o, int64_t i, int64_t) {
          result.setFloat(i, result.getFloat(i) + a->getFloat(o) / counts[o]);
        });
        return single(std::move(result));
      })
      .Default([](Operation *) { return FamilyResult(); });
}

} // namespace ortc::evaluator
