// What PyTorch's exporter notes about batch normalisations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// It writes every one as if for inference. The note on the node has the operation of the exported program, which says
// whether it was in training mode, and whether its running statistics are buffers of the module or made on the spot.
#pragma once

namespace ortc::proto {
class GraphProto;
class NodeProto;
} // namespace ortc::proto

namespace ortc::frontend {

enum class TracedNorm {
  unknown,   ///< nothing is noted, or it was in evaluation mode
  batch,     ///< in training mode
  batchOnly, ///< in training mode, without running statistics
};

/// The content of the note on a BatchNormalization; `graph` is the main one, which has the signature of the program.
TracedNorm findTracedNorm(const proto::NodeProto &node, const proto::GraphProto &graph);

} // namespace ortc::frontend
