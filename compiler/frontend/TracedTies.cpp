// What PyTorch's exporter notes about bounds and extremes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/TracedTies.h"

#include "compiler/frontend/InitializerOrigins.h"
#include "compiler/frontend/onnx.pb.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace ortc::frontend {

static bool startsWith(std::string_view text, std::string_view begin) {
  return text.substr(0, begin.size()) == begin;
}

/// clamp.default has numbers. clamp.Tensor has tensors, and numbers that the exporter has made tensors of, by
/// aten.scalar_tensor.
static TracedTies tiesOfClamp(const TracedOperation &operation) {
  std::string_view target = operation.target;
  if (target.size() < 7 || target.substr(target.size() - 7) != ".Tensor")
    return TracedTies::bound;
  bool hasNumbers = operation.arguments.size() > 1 &&
                    std::all_of(std::next(operation.arguments.begin()), operation.arguments.end(),
                                [](std::string_view bound) { return startsWith(bound, "scalar_tensor"); });
  return hasNumbers ? TracedTies::bound : TracedTies::shared;
}

TracedTies findTracedTies(const proto::NodeProto &node) {
  std::string_view type = node.op_type();
  bool isBound = type == "Max" || type == "Min" || type == "Clip";
  bool isExtreme = type == "ReduceMax" || type == "ReduceMin";
  if (!node.domain().empty() || !(isBound || isExtreme))
    return TracedTies::unknown;
  TracedOperation operation = findOperation(node);
  std::string_view target = operation.target;
  if (isExtreme)
    return target == "torch.ops.aten.max.dim" || target == "torch.ops.aten.min.dim" ? TracedTies::first
                                                                                    : TracedTies::unknown;
  for (std::string_view name : {"clamp.", "clamp_min.", "clamp_max."})
    if (startsWith(target, "torch.ops.aten." + std::string(name)))
      return tiesOfClamp(operation);
  return TracedTies::unknown;
}

} // namespace ortc::frontend
