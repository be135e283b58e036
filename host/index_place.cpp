// Where an index that is out of range comes from.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/index_place.h"

#include <charconv>

#include "host/data/convert.h"

namespace ortc::host {

std::string describeIndex(const std::string &message, Session &session, const Entry &entry,
                          const Batches &batches, int64_t slice, const Order *order) {
  constexpr std::string_view kIndex = "index ", kIn = " in '"; // runtime/src/errors.h
  size_t begin = message.find(kIndex), end = message.rfind("' is out of range [");
  if (begin == std::string::npos || end == std::string::npos)
    return "";
  int64_t index = 0;
  auto parsed = std::from_chars(message.data() + begin + kIndex.size(), message.data() + end, index);
  size_t name = size_t(parsed.ptr - message.data());
  if (parsed.ec != std::errc() || message.compare(name, kIn.size(), kIn) != 0)
    return "";
  name += kIn.size();
  for (size_t input = 0; input < entry.inputs.size(); ++input) {
    const InputSpec &spec = entry.inputs[input];
    if (spec.name != message.substr(name, end - name) || isFloat(spec.type))
      continue;
    TensorView view = session.view(entry, spec.name);
    int64_t count = 0;
    size_t bytes = getElementBytes(spec.type);
    if (!view.data || !countElements(view.shape, count))
      return "";
    for (int64_t i = 0; i < count; ++i)
      if (loadAsInteger(spec.type, view.data + size_t(i) * bytes) == index)
        return "; it is from " + batches.describeElement(input, slice, i, view.shape, order);
  }
  return "";
}

} // namespace ortc::host
