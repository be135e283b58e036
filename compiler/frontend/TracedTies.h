// What PyTorch's exporter notes about bounds and extremes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// clamp(x, 0, 1), clamp(x, a, b) and maximum(x, a) are all Max and Min (or Clip, once optimised), max(x, dim) and
// amax(x) are both ReduceMax. Their gradients differ where elements are equal; the note on the node has the operation.
#pragma once

namespace ortc::proto {
class NodeProto;
} // namespace ortc::proto

namespace ortc::frontend {

/// Who gets the gradient of equal elements.
enum class TracedTies {
  unknown, ///< nothing is noted, or what the operator of ONNX stands for
  bound,   ///< a bound that is a number: x gets none
  shared,  ///< a bound that is a tensor: each side half
  first,   ///< along one axis: the first one all
};

/// The content of the note on a Max, Min, Clip, ReduceMax or ReduceMin.
TracedTies findTracedTies(const proto::NodeProto &node);

} // namespace ortc::frontend
