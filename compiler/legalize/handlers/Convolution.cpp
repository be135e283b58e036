// Conv, ConvTranspose.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nn's spatial operations are channels-last: transposes go around them here, and a pass sinks and cancels
// them.
#include "compiler/legalize/handlers/Products.h"
#include "compiler/legalize/handlers/Window.h"
#include "support/Plural.h"

using namespace mlir;

namespace ortc::legalize {

/// y + bias over the last dimension.
static Value addBias(Node &n, Value y, Value bias) {
  if (!bias)
    return y;
  return n.b.add(y, n.b.broadcast(bias, TensorBuilder::shapeOf(y), {TensorBuilder::rankOf(y) - 1}));
}

/// Refuses an input, filter and bias that do not fit; `inputs` and `outputs` are the filter's channels.
static LogicalResult checkOperands(Node &n, Ints x, Ints w, Value bias, int64_t groups, int64_t inputs,
                                   int64_t outputs) {
  if (x[1] != inputs)
    return n.refuse("an input of " + Twine(x[1]) + " channels, a filter of " + shapeText(w) + " and " +
                    Twine(groups) + " groups do not fit");
  if (elementCount(w) == 0 || elementCount(x.drop_front(1)) == 0)
    return n.refuse("an input of " + shapeText(x) + " or a filter of " + shapeText(w) + " without elements");
  if (bias && TensorBuilder::shapeOf(bias) != Ints({outputs})) {
    const HostTensor *known = n.walk.constantValue(bias);
    bool isTorch = known && TensorBuilder::shapeOf(bias) == Ints({outputs, 2}) &&
                   llvm::all_of(llvm::seq<int64_t>(0, known->size()),
                                [&](int64_t i) { return known->getFloat(i) == 0; });
    return n.refuse(
        "a bias of shape " + shapeText(TensorBuilder::shapeOf(bias)) + " for " + Twine(outputs) +
        " features" +
        (isTorch ? "; PyTorch's exporter writes that for conv3d without a bias: export with optimize=True, "
                   "with dynamo=False, or give the layer a bias"
                 : ""));
  }
  return success();
}

/// Reads `group`, which has to divide the first dimension of the filter.
static LogicalResult readGroups(Node &n, Ints x, Ints w, int64_t &groups) {
  groups = n.getInt("group", 1);
  if (x.size() < 3 || w.size() != x.size())
    return n.refuse("an input of " + formatCount(x.size(), "dimension") + " and a filter of " +
                    Twine(w.size()));
  if (groups < 1 || groups > std::max<int64_t>(w[0], 1) || w[0] % groups)
    return n.refuse(Twine(groups) + " groups for a filter of " + shapeText(w));
  return success();
}

Value convolve(Node &n, Value input, Value filter, Value bias) {
  int64_t groups;
  Ints x = TensorBuilder::shapeOf(input), w = TensorBuilder::shapeOf(filter);
  Window window;
  if (failed(readGroups(n, x, w, groups)) ||
      failed(checkOperands(n, x, w, bias, groups, w[1] * groups, w[0])) ||
      failed(window.read(n, w.drop_front(2), x.drop_front(2), false)))
    return {};
  // A stride beyond the room of the window moves nothing, but its gradient has a loop for each of its places.
  for (auto [i, stride] : llvm::enumerate(window.strides))
    stride = std::min(stride, x[2 + i] + window.low[i] + window.high[i] - window.extent(i) + 1);
  TensorBuilder &b = n.b;
  int64_t rank = static_cast<int64_t>(x.size());
  Shape shape = {x[0]};
  shape.append(window.output.begin(), window.output.end());
  shape.push_back(w[0]);
  Value y = nn::ConvOp::create(b, RankedTensorType::get(shape, TensorBuilder::elementOf(input)),
                               b.transpose(input, channelsLast(rank)), b.transpose(filter, filterLast(rank)),
                               window.strides, window.low, window.high, window.dilations, groups);
  return b.transpose(addBias(n, y, bias), channelsFirst(rank));
}

namespace handlers {

LogicalResult conv(Node &n) {
  Value y = convolve(n, n[0], n[1], n[2]);
  return y ? n.yield(y) : failure();
}

/// The spatial sizes that output_shape or auto_pad SAME ask for; empty when neither is there.
static LogicalResult readOutputShape(Node &n, const Window &window, SmallVector<int64_t> &wanted) {
  Ints input = n.shape(0).drop_front(2);
  wanted = n.getInts("output_shape");
  if (wanted.size() == input.size() + 2) // exporters that count the batch and the channels
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (n.hasAttribute("output_shape") && wanted.size() != input.size())
    return n.refuse("output_shape has " + formatCount(wanted.size(), "entry", "entries") + " instead of " +
                    Twine(input.size()));
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
  Ints x = n.shape(0), w = n.shape(1);
  if (failed(readGroups(n, x, w, groups)))
    return failure();
  int64_t rank = n.rank(0);
  size_t spatial = rank - 2;
  Window window;
  SmallVector<int64_t> extra, wanted;
  if (failed(checkOperands(n, x, w, n[2], groups, w[0], w[1] * groups)) ||
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
    if (x[2 + i] == 1)
      window.strides[i] = 1; // one window
    if (shape.back() < 1)
      return n.refuse("its pads leave nothing of spatial dimension " + Twine(i));
  }
  shape.push_back(w[1] * groups);
  TensorBuilder &b = n.b;
  Value y = nn::ConvInputGradOp::create(
      b, RankedTensorType::get(shape, n.element(0)), b.transpose(n[0], channelsLast(rank)),
      b.transpose(n[1], filterLast(rank)), window.strides, low, high, window.dilations, groups);
  return n.yield(b.transpose(addBias(n, b.padZeros(y, before, after), n[2]), channelsFirst(rank)));
}

} // namespace handlers
} // namespace ortc::legalize
