// Adapters in files of their own, and merged into weights.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/onnx.pb.h"
#include "engine/session/session.h"

namespace ortc::engine {

/// Adds to every weight of the graph what its adapter adds, `scale B A`, computed in float64.
Status mergeAdapters(const Artifact &artifact, Session &session, proto::GraphProto &graph);

/// Writes PEFT's two files into `folder`, which is made where it is not there.
Status writePeftFolder(const Artifact &artifact, Session &session, const std::string &folder);

} // namespace ortc::engine
