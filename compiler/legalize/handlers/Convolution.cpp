//===- Convolution.cpp - Conv, ConvTranspose ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nn's spatial operations are channels-last: transposes go around them here, and a pass sinks and cancels
// them.
#include "compiler/legalize/handlers/Window.h"

#include <numeric>

using namespace mlir;

namespace ortc::legalize {

LogicalResult Window::read(Node &n, Ints kernel, Ints input, bool ceilMode) {
  size_t rank = input.size();
  auto list = [&](StringRef name, int64_t orElse, size_t count,
                  SmallVector<int64_t> &values) -> LogicalResult {
    values = n.getInts(name);
    if (values.empty())
      values.assign(count, orElse);
    if (values.size() != count)
      return n.refuse(name + " has " + Twine(values.size()) + " entries instead of " + Twine(count));
    return success();
  };
  SmallVector<int64_t> pads;
  if (rank < 1 || rank > 3)
    return n.refuse("an input with " + Twine(rank) + " spatial dimensions (1 to 3 are supported)");
  size = n.hasAttribute("kernel_shape") ? n.getInts("kernel_shape") : SmallVector<int64_t>(kernel);
  if (size.size() != rank || (!kernel.empty() && Ints(size) != kernel))
    return n.refuse("kernel_shape " + shapeText(size) + " does not fit");
  if (failed(list("strides", 1, rank, strides)) || failed(list("dilations", 1, rank, dilations)) ||
      failed(list("pads", 0, 2 * rank, pads)))
    return failure();
  StringRef automatic = n.getString("auto_pad", "NOTSET");
  for (size_t i = 0; i < rank; ++i) {
    if (size[i] < 1 || strides[i] < 1 || dilations[i] < 1)
      return n.refuse("a window, stride or dilation below 1");
    int64_t before = pads[i], after = pads[i + rank];
    if (automatic == "VALID")
      before = after = 0;
    if (automatic.starts_with("SAME")) {
      int64_t wanted = (input[i] + strides[i] - 1) / strides[i];
      int64_t total = std::max<int64_t>((wanted - 1) * strides[i] + extent(i) - input[i], 0);
      before = automatic == "SAME_LOWER" ? (total + 1) / 2 : total / 2;
      after = total - before;
    }
    if (before < 0 || after < 0)
      return n.refuse("negative pads are not supported");
    low.push_back(before);
    high.push_back(after);
    int64_t room = input[i] + before + after - extent(i);
    if (room < 0)
      return n.refuse("a window of " + Twine(extent(i)) + " is larger than its padded input of " +
                      Twine(input[i] + before + after));
    int64_t out = room / strides[i] + 1;
    if (ceilMode && room % strides[i] && out * strides[i] < input[i] + before)
      ++out;
    if (out > (int64_t(1) << 31))
      return n.refuse("a result of " + Twine(out) + " elements along spatial dimension " + Twine(i));
    output.push_back(out);
    overhang.push_back(std::max<int64_t>((out - 1) * strides[i] + extent(i) - input[i] - before - after, 0));
  }
  return success();
}

namespace handlers {

/// y + bias over the last dimension.
static Value addBias(Node &n, Value y, unsigned operand) {
  if (!n.has(operand))
    return y;
  return n.b.add(y, n.b.broadcast(n[operand], TensorBuilder::shapeOf(y), {TensorBuilder::rankOf(y) - 1}));
}

LogicalResult conv(Node &n) {
  int64_t rank = n.rank(0), groups = n.getInt("group", 1);
  if (rank < 3 || n.rank(1) != rank)
    return n.refuse("an input of " + Twine(rank) + " dimensions and a filter of " + Twine(n.rank(1)));
  Ints x = n.shape(0), w = n.shape(1);
  if (groups < 1 || x[1] != w[1] * groups || w[0] % groups)
    return n.refuse("an input of " + Twine(x[1]) + " channels, a filter of " + shapeText(w) + " and " +
                    Twine(groups) + " groups do not fit");
  if (n.has(2) && n.shape(2) != Ints({w[0]}))
    return n.refuse("a bias of shape " + shapeText(n.shape(2)) + " for " + Twine(w[0]) + " features");
  Window window;
  if (failed(window.read(n, w.drop_front(2), x.drop_front(2), false)))
    return failure();
  TensorBuilder &b = n.b;
  Shape shape = {x[0]};
  shape.append(window.output.begin(), window.output.end());
  shape.push_back(w[0]);
  Value y = nn::ConvOp::create(b, RankedTensorType::get(shape, n.element(0)),
                               b.transpose(n[0], channelsLast(rank)), b.transpose(n[1], filterLast(rank)),
                               window.strides, window.low, window.high, window.dilations, groups);
  return n.yield(b.transpose(addBias(n, y, 2), channelsFirst(rank)));
}

// out = (in - 1) * stride + extent - low - high + output_padding. What reaches beyond the full result is
// zero.
LogicalResult convTranspose(Node &n) {
  int64_t rank = n.rank(0), groups = n.getInt("group", 1);
  if (rank < 3 || rank > 5 || n.rank(1) != rank)
    return n.refuse("an input of " + Twine(rank) + " dimensions and a filter of " + Twine(n.rank(1)));
  Ints x = n.shape(0), w = n.shape(1);
  size_t spatial = rank - 2;
  if (groups < 1 || x[1] != w[0] || w[0] % groups)
    return n.refuse("an input of " + Twine(x[1]) + " channels, a filter of " + shapeText(w) + " and " +
                    Twine(groups) + " groups do not fit");
  auto list = [&](StringRef name, int64_t orElse, size_t count) {
    SmallVector<int64_t> values = n.getInts(name);
    return values.size() == count ? values : SmallVector<int64_t>(count, orElse);
  };
  SmallVector<int64_t> strides = list("strides", 1, spatial), dilations = list("dilations", 1, spatial);
  SmallVector<int64_t> pads = list("pads", 0, 2 * spatial), extra = list("output_padding", 0, spatial);
  SmallVector<int64_t> wanted = n.getInts("output_shape");
  if (wanted.size() == spatial + 2)
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  StringRef automatic = n.getString("auto_pad", "NOTSET");
  if (wanted.empty() && automatic.starts_with("SAME"))
    for (size_t i = 0; i < spatial; ++i)
      wanted.push_back(x[2 + i] * strides[i]);
  SmallVector<int64_t> low, high, before(rank, 0), after(rank, 0);
  Shape shape = {x[0]};
  for (size_t i = 0; i < spatial; ++i) {
    int64_t full = (x[2 + i] - 1) * strides[i] + dilations[i] * (w[2 + i] - 1) + 1;
    int64_t first = automatic == "VALID" ? 0 : pads[i], last = automatic == "VALID" ? 0 : pads[i + spatial];
    if (!wanted.empty()) {
      int64_t total = full + extra[i] - wanted[i];
      first = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
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
      b.transpose(n[1], filterLast(rank)), strides, low, high, dilations, groups);
  return n.yield(b.transpose(addBias(n, b.padZeros(y, before, after), 2), channelsFirst(rank)));
}

} // namespace handlers
} // namespace ortc::legalize
