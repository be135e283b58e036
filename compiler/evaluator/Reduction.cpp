// Reductions on host tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/evaluator/Kernels.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;

namespace ortc::evaluator {

/// Calls `visit(output position, input position)` for every element of `shape` in row-major order.
static void overReduction(ArrayRef<int64_t> shape, ArrayRef<int64_t> axes,
                          llvm::function_ref<void(int64_t, int64_t)> visit) {
  if (nn::elementCount(shape) == 0)
    return;
  auto kept = nn::rowMajorStrides(nn::dropAxes(shape, axes));
  SmallVector<int64_t> index(shape.size(), 0), strides;
  int64_t next = 0;
  for (int64_t d = 0, rank = shape.size(); d < rank; ++d)
    strides.push_back(llvm::is_contained(axes, d) ? 0 : kept[next++]);
  int64_t at = 0;
  do {
    int64_t out = 0;
    for (auto [d, i] : llvm::enumerate(index))
      out += i * strides[d];
    visit(out, at++);
  } while (nextIndex(index, shape));
}

static HostTensor reduce(nn::ReduceOp op, const HostTensor &input) {
  HostTensor result(resultType(op));
  nn::ReduceKind kind = op.getKind();
  unsigned width = result.getType().getElementType().getIntOrFloatBitWidth();
  bool boolean = width == 1;
  for (int64_t i = 0; i < result.size(); ++i) {
    double start = kind == nn::ReduceKind::sum    ? 0
                   : kind == nn::ReduceKind::prod ? 1
                   : kind == nn::ReduceKind::max  ? -INFINITY
                                                  : INFINITY;
    if (result.isFloat())
      result.setFloat(i, start);
    else if (kind == nn::ReduceKind::max)
      result.setInt(i, boolean ? 0 : llvm::minIntN(width));
    else if (kind == nn::ReduceKind::min)
      result.setInt(i, boolean ? 1 : llvm::maxIntN(width));
    else
      result.setInt(i, kind == nn::ReduceKind::prod);
  }
  overReduction(input.getShape(), op.getAxes(), [&](int64_t out, int64_t in) {
    if (result.isFloat()) {
      double a = result.getFloat(out), b = input.getFloat(in);
      bool take = kind == nn::ReduceKind::max ? b > a : b < a;
      result.setFloat(out, kind == nn::ReduceKind::sum    ? a + b
                           : kind == nn::ReduceKind::prod ? a * b
                           : std::isnan(a)                ? a
                           : std::isnan(b) || take        ? b
                                                          : a);
    } else {
      int64_t a = result.getInt(out), b = input.getInt(in);
      result.setInt(out, kind == nn::ReduceKind::sum    ? static_cast<int64_t>(uint64_t(a) + uint64_t(b))
                         : kind == nn::ReduceKind::prod ? static_cast<int64_t>(uint64_t(a) * uint64_t(b))
                         : kind == nn::ReduceKind::max  ? std::max(a, b)
                                                        : std::min(a, b));
    }
  });
  return result;
}

static Results moments(nn::MomentsOp op, const HostTensor &input) {
  HostTensor mean(resultType(op)), variance(resultType(op));
  double count = static_cast<double>(input.size()) / static_cast<double>(std::max<int64_t>(mean.size(), 1));
  auto scale = [&](HostTensor &tensor) {
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.setFloat(i, tensor.getFloat(i) / count);
  };
  overReduction(input.getShape(), op.getAxes(), [&](int64_t out, int64_t in) {
    mean.setFloat(out, mean.getFloat(out) + input.getFloat(in));
  });
  scale(mean);
  overReduction(input.getShape(), op.getAxes(), [&](int64_t out, int64_t in) {
    double off = input.getFloat(in) - mean.getFloat(out);
    variance.setFloat(out, variance.getFloat(out) + off * off);
  });
  scale(variance);
  return {std::move(mean), std::move(variance)};
}

static HostTensor argReduce(nn::ArgReduceOp op, const HostTensor &input) {
  HostTensor result(resultType(op));
  int64_t axis = op.getAxis(), stride = nn::rowMajorStrides(input.getShape())[axis],
          size = input.getShape()[axis];
  std::vector<int64_t> best(result.size(), -1);
  auto better = [&](int64_t candidate, int64_t current) {
    bool wantMax = op.getKind() == nn::ReduceKind::max;
    if (!input.isFloat()) {
      int64_t a = input.getInt(candidate), b = input.getInt(current);
      return a == b ? op.getLast() : wantMax ? a > b : a < b;
    }
    double a = input.getFloat(candidate), b = input.getFloat(current);
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) && (!std::isnan(b) || op.getLast());
    return a == b ? op.getLast() : wantMax ? a > b : a < b;
  };
  overReduction(input.getShape(), axis, [&](int64_t out, int64_t in) {
    if (best[out] < 0 || better(in, best[out])) {
      best[out] = in;
      result.setInt(out, in / stride % size);
    }
  });
  return result;
}

static HostTensor argSort(nn::ArgSortOp op, const HostTensor &input) {
  HostTensor result(resultType(op));
  int64_t axis = op.getAxis(), stride = nn::rowMajorStrides(input.getShape())[axis],
          size = input.getShape()[axis];
  int64_t taken = result.getShape()[axis], groups = input.size() / std::max<int64_t>(size, 1);
  bool descending = op.getDescending();
  std::vector<int64_t> order(size);
  for (int64_t group = 0; group < groups && taken > 0; ++group) {
    int64_t outer = group / stride, inner = group % stride, base = outer * stride * size + inner;
    std::iota(order.begin(), order.end(), 0);
    auto less = [&](int64_t i, int64_t j) {
      if (!input.isFloat())
        return input.getInt(base + i * stride) < input.getInt(base + j * stride);
      double a = input.getFloat(base + i * stride), b = input.getFloat(base + j * stride);
      return std::isnan(b) ? !std::isnan(a) : a < b;
    };
    llvm::sort(order, [&](int64_t i, int64_t j) {
      bool before = descending ? less(j, i) : less(i, j), after = descending ? less(i, j) : less(j, i);
      return before || (!after && i < j);
    });
    for (int64_t i = 0; i < taken; ++i)
      result.setInt((outer * taken + i) * stride + inner, order[i]);
  }
  return result;
}

static HostTensor softmax(Operation *op, const HostTensor &input, int64_t axis, bool logarithm) {
  HostTensor result(resultType(op));
  int64_t groups = input.size() / std::max<int64_t>(input.getShape()[axis], 1);
  std::vector<double> largest(groups, -INFINITY), total(groups, 0);
  overReduction(input.getShape(), axis, [&](int64_t out, int64_t in) {
    double value = input.getFloat(in);
    if (std::isnan(value) || value > largest[out])
      largest[out] = value;
  });
  overReduction(input.getShape(), axis,
                [&](int64_t out, int64_t in) { total[out] += std::exp(input.getFloat(in) - largest[out]); });
  overReduction(input.getShape(), axis, [&](int64_t out, int64_t in) {
    double shifted = input.getFloat(in) - largest[out];
    result.setFloat(in, logarithm ? shifted - std::log(total[out]) : std::exp(shifted) / total[out]);
  });
  return result;
}

static HostTensor cumulativeSum(nn::CumSumOp op, const HostTensor &input) {
  HostTensor result(resultType(op));
  int64_t axis = op.getAxis(), stride = nn::rowMajorStrides(input.getShape())[axis],
          size = input.getShape()[axis];
  if (input.size() == 0)
    return result;
  int64_t groups = input.size() / size;
  for (int64_t group = 0; group < groups; ++group) {
    int64_t base = group / stride * stride * size + group % stride;
    double total = 0;
    uint64_t count = 0;
    for (int64_t step = 0; step < size; ++step) {
      int64_t at = base + (op.getReverse() ? size - 1 - step : step) * stride;
      if (op.getExclusive())
        input.isFloat() ? result.setFloat(at, total) : result.setInt(at, static_cast<int64_t>(count));
      input.isFloat() ? void(total += input.getFloat(at))
                      : void(count += static_cast<uint64_t>(input.getInt(at)));
      if (!op.getExclusive())
        input.isFloat() ? result.setFloat(at, total) : result.setInt(at, static_cast<int64_t>(count));
    }
  }
  return result;
}

FamilyResult evaluateReduction(Operation *op, Operands operands) {
  return llvm::TypeSwitch<Operation *, FamilyResult>(op)
      .Case([&](nn::ReduceOp op) { return single(reduce(op, *operands[0])); })
      .Case([&](nn::MomentsOp op) { return FamilyResult(FailureOr<Results>(moments(op, *operands[0]))); })
      .Case([&](nn::ArgReduceOp op) { return single(argReduce(op, *operands[0])); })
      .Case([&](nn::ArgSortOp op) { return single(argSort(op, *operands[0])); })
      .Case([&](nn::SoftmaxOp op) { return single(softmax(op, *operands[0], op.getAxis(), false)); })
      .Case([&](nn::LogSoftmaxOp op) { return single(softmax(op, *operands[0], op.getAxis(), true)); })
      .Case([&](nn::CumSumOp op) { return single(cumulativeSum(op, *operands[0])); })
      .Default([](Operation *) { return FamilyResult(); });
}

} // namespace ortc::evaluator
