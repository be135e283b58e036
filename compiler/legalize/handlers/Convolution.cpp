//===- Convolution.cpp - Conv, ConvTranspose ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nn's spatial operations are channels-last: transposes go around them here, and a pass sinks and cancels
// them.
#include "compiler/legalize/handlers/Window.h"

using namespace mlir;

namespace ortc::legalize {

namespace handlers {

/// y + bias over the last dimension.
static Value addBias(Node &n, Value y, unsigned operand) {
  if (!n.has(operand))
    return y;
  return n.b.add(y, n.b.broadcast(n[operand], TensorBuilder::shapeOf(y), {TensorBuilder::rankOf(y) - 1}));
}

/// Refuses an input, filter and bias that do not fit; `inputs` and `outputs` are the filter's channels.
static LogicalResult checkOperands(Node &n, int64_t groups, int64_t inputs, int64_t outputs) {
  if (n.shape(0)[1] != inputs)
    return n.refuse("an input of " + Twine(n.shape(0)[1]) + " channels, a filter of " +
                    shapeText(n.shape(1)) + " and " + Twine(groups) + " groups do not fit");
  if (elementCount(n.shape(1)) == 0 || elementCount(n.shape(0).drop_front(1)) == 0)
    return n.refuse("an input of " + shapeText(n.shape(0)) + " or a filter of " + shapeText(n.shape(1)) +
                    " without elements");
  if (n.has(2) && n.shape(2) != Ints({outputs}))
    return n.refuse("a bias of shape " + shapeText(n.shape(2)) + " for " + Twine(outputs) + " features");
  return success();
}

/// Reads `group`, which has to divide the first dimension of the filter.
static LogicalResult readGroups(Node &n, int64_t &groups) {
  int64_t rank = n.rank(0);
  groups = n.getInt("group", 1);
  if (rank < 3 || n.rank(1) != rank)
    return n.refuse("an input of " + Twine(rank) + " dimensions and a filter of " + Twine(n.rank(1)));
  if (groups < 1 || groups > std::max<int64_t>(n.shape(1)[0], 1) || n.shape(1)[0] % groups)
    return n.refuse(Twine(groups) + " groups for a filter of " + shapeText(n.shape(1)));
  return success();
}

LogicalResult conv(Node &n) {
  int64_t groups;
  if (failed(readGroups(n, groups)))
    return failure();
  Ints x = n.shape(0), w = n.shape(1);
  Window window;
  if (failed(checkOperands(n, groups, w[1] * groups, w[0])) ||
      failed(window.read(n, w.drop_front(2), x.drop_front(2), false)))
    return failure();
  TensorBuilder &b = n.b;
  int64_t rank = n.rank(0);
  Shape shape = {x[0]};
  shape.append(window.output.begin(), window.output.end());
  shape.push_back(w[0]);
  Value y = nn::ConvOp::create(b, RankedTensorType::get(shape, n.element(0)),
                               b.transpose(n[0], channelsLast(rank)), b.transpose(n[1], filterLast(rank)),
                               window.strides, window.low, window.high, window.dilations, groups);
  return n.yield(b.transpose(addBias(n, y, 2), channelsFirst(rank)));
}

/// The spatial sizes that output_shape or auto_pad SAME ask for; empty when neither is there.
static LogicalResult readOutputShape(Node &n, const Window &window, SmallVector<int64_t> &wanted) {
  Ints input = n.shape(0).drop_front(2);
  wanted = n.getInts("output_shape");
  if (wanted.size() == input.size() + 2) // exporters that count the batch and the channels
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (n.hasAttribute("output_shape") && wanted.size() != input.size())
    return n.refuse("output_shape has " + Twine(wanted.size()) + " entries instead of " + Twine(input.size()));
  for (int64_t size : wanted)
    if (size < 1 || size > kMostElements)
      return n.refuse("an output_shape of " + shapeText(wanted));
  if (wanted.empty() && window.automatic.starts_with("SAME"))
    for (size_t i = 0; i < input.size(); ++i)
      wanted.push_back(input[i] * window.strides[i]);
  return success();
}

// out = (in - 1) * stride + extent - low - high + output_padding. What reaches beyond the full result is
// zero.
LogicalResult convTranspose(Node &n) {
  int64_t groups;
  if (failed(readGroups(n, groups)))
    return failure();
  Ints x = n.shape(0), w = n.shape(1);
  int64_t rank = n.rank(0);
  size_t spatial = rank - 2;
  Window window;
  SmallVector<int64_t> extra, wanted;
  if (failed(checkOperands(n, groups, w[0], w[1] * groups)) ||
      failed(window.readAttributes(n, w.drop_front(2), spatial)) ||
      failed(readWindowList(n, "output_padding", 0, spatial, 0, extra)) ||
      failed(readOutputShape(n, window, wanted)))
    return failure();
  SmallVector<int64_t> low, high, before(rank, 0), after(rank, 0);
  Shape shape = {x[0]};
  for (size_t i = 0; i < spatial; ++i) {
    int64_t full = (x[2 + i] - 1) * window.strides[i] + window.extent(i);
    int64_t first = window.low[i], last = window.high[i];
    if (!wanted.empty()) {
      extra[i] += std::max<int64_t>(wanted[i] - full - extra[i], 0);
      int64_t total = full + extra[i] - wanted[i];
      first = window.automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      last = total - first;
    }
    last -= extra[i];
    low.push_back(std::max<int64_t>(first, 0));
    high.push_back(std::max<int64_t>(last, 0));
    before[i + 1] = std::max<int64_t>(-first, 0);
    after[i + 1] = std::max<int64_t>(-last, 0);
    shape.push_back(full - low.back() - high.back());
    if (shape.back() < 1)
      return n.refuse("its pads leave nothing of spatial dimension " + Twine(i));
  }
  shape.push_back(w[1] * groups);
  TensorBuilder &b = n.b;
  Value y = nn::ConvInputGradOp::create(
      b, RankedTensorType::get(shape, n.element(0)), b.transpose(n[0], channelsLast(rank)),
      b.transpose(n[1], filterLast(rank)), window.strides, low, high, window.dilations, groups);
  return n.yield(b.transpose(addBias(n, b.padZeros(y, before, after), 2), channelsFirst(rank)));
}

} // namespace handlers
} // namespace ortc::legalize
