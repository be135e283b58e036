// Windows of convolutions and pools.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/handlers/Window.h"
#include "support/Plural.h"

using namespace mlir;

namespace ortc::legalize {

LogicalResult readWindowList(Node &n, StringRef name, int64_t orElse, size_t count, int64_t least,
                             SmallVector<int64_t> &values) {
  values = n.getInts(name);
  if (values.empty())
    values.assign(count, orElse);
  if (values.size() != count)
    return n.refuse(name + " has " + formatCount(values.size(), "entry", "entries") + " instead of " +
                    Twine(count));
  for (int64_t value : values)
    if (value < least || value > kMostWindow)
      return n.refuse(name + " holds " + Twine(value) + ", which is not from " + Twine(least) + " to " +
                      Twine(kMostWindow));
  return success();
}

LogicalResult Window::readAttributes(Node &n, Ints kernel, size_t rank) {
  if (rank < 1 || rank > 3)
    return n.refuse("an input with " + Twine(rank) + " spatial dimensions (1 to 3 are supported)");
  SmallVector<int64_t> pads;
  automatic = n.getString("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID" && automatic != "SAME_UPPER" && automatic != "SAME_LOWER")
    return n.refuse("auto_pad '" + automatic + "' is not known");
  if (kernel.empty() && !n.hasAttribute("kernel_shape"))
    return n.refuse("it has no kernel_shape");
  if (failed(readWindowList(n, "kernel_shape", 1, rank, 1, size)) ||
      failed(readWindowList(n, "strides", 1, rank, 1, strides)) ||
      failed(readWindowList(n, "dilations", 1, rank, 1, dilations)) ||
      failed(readWindowList(n, "pads", 0, 2 * rank, 0, pads)))
    return failure();
  if (!kernel.empty()) {
    if (n.hasAttribute("kernel_shape") && Ints(size) != kernel)
      return n.refuse("kernel_shape " + shapeText(size) + " for a filter of " + shapeText(kernel));
    for (int64_t each : kernel)
      if (each < 1 || each > kMostWindow)
        return n.refuse("a filter of " + shapeText(kernel));
    size.assign(kernel.begin(), kernel.end());
  }
  if (elementCount(size) > kMostPlaces)
    return n.refuse("a window of " + shapeText(size) + " has more than " + Twine(kMostPlaces) + " places");
  if (automatic == "VALID")
    pads.assign(2 * rank, 0);
  low.assign(pads.begin(), pads.begin() + rank);
  high.assign(pads.begin() + rank, pads.end());
  return success();
}

LogicalResult Window::read(Node &n, Ints kernel, Ints input, bool ceilMode) {
  if (failed(readAttributes(n, kernel, input.size())))
    return failure();
  for (size_t i = 0; i < input.size(); ++i) {
    if (automatic.starts_with("SAME")) {
      int64_t wanted = (input[i] + strides[i] - 1) / strides[i];
      int64_t total = std::max<int64_t>((wanted - 1) * strides[i] + extent(i) - input[i], 0);
      low[i] = automatic == "SAME_LOWER" ? (total + 1) / 2 : total / 2;
      high[i] = total - low[i];
    }
    int64_t padded = input[i] + low[i] + high[i], room = padded - extent(i);
    if (room < 0)
      return n.refuse("a window of " + Twine(extent(i)) + " is larger than its padded input of " +
                      Twine(padded));
    int64_t out = room / strides[i] + 1;
    if (ceilMode && room % strides[i] && out * strides[i] < input[i] + low[i])
      ++out;
    output.push_back(out);
    overhang.push_back(std::max<int64_t>((out - 1) * strides[i] + extent(i) - padded, 0));
  }
  return success();
}

} // namespace ortc::legalize
