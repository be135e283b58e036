// Well-formedness of a parsed model.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/Model.h"

namespace ortc::frontend {

/// Checks `proto`, whose tensors belong to `model`, and sorts the nodes of graphs that are not in topological
/// order.
Status checkModel(const Model &model, proto::ModelProto &proto, const Limits &limits);

} // namespace ortc::frontend
