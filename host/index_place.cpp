// Where an index that is out of range comes from.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/index_place.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>

#include "host/data/convert.h"

namespace ortc::host {

/// Of the labels of sequences, how many of a row count: those behind are never looked at.
static const InputSpec *findLengths(const Entry &entry, const InputSpec &labels) {
  constexpr std::string_view kLabel = "label";
  if (!labels.name.starts_with(kLabel) || labels.shape.size() != 2)
    return nullptr;
  std::string name = "target_lengths" + labels.name.substr(kLabel.size());
  auto found = std::find_if(entry.inputs.begin(), entry.inputs.end(),
                            [&](const InputSpec &input) { return input.name == name; });
  return found == entry.inputs.end() || found->type != DataType::Int64 ? nullptr : &*found;
}

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
  int64_t low = 0, limit = 0;
  bool isInRange =
      std::sscanf(message.c_str() + end, "' is out of range [%" SCNd64 ", %" SCNd64 ")", &low, &limit) == 2 &&
      index >= low && index < limit;
  for (size_t input = 0; input < entry.inputs.size(); ++input) {
    const InputSpec &spec = entry.inputs[input];
    if (spec.name != message.substr(name, end - name) || isFloat(spec.type))
      continue;
    TensorView view = session.view(entry, spec.name);
    int64_t count = 0;
    size_t bytes = getElementBytes(spec.type);
    if (!view.data || !countElements(view.shape, count))
      return "";
    const InputSpec *lengths = findLengths(entry, spec);
    TensorView counts = lengths ? session.view(entry, lengths->name) : TensorView();
    for (int64_t i = 0; i < count; ++i) {
      if (counts.data &&
          i % view.shape[1] >= loadAsInteger(lengths->type, counts.data + i / view.shape[1] * 8))
        continue;
      if (loadAsInteger(spec.type, view.data + size_t(i) * bytes) == index)
        return (lengths && isInRange ? "; it is the blank, which no label may be" : "") +
               ("; it is from " + batches.describeElement(input, slice, i, view.shape, order));
    }
  }
  return "";
}

} // namespace ortc::host
