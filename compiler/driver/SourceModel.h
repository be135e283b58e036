//===- SourceModel.h - the ONNX graph that travels in an artifact ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/codegen/artifact/Artifact.h"
#include "compiler/frontend/Model.h"

#include <memory>
#include <set>
#include <string>

namespace ortc::driver {

/// Names of the initializers of the main graph.
std::set<std::string> initializerNames(const frontend::Model &model);

/// The model with the value `name` of its graph as one more output; null when that is no value of a node, or an output already.
std::shared_ptr<const frontend::Model> exposeValue(const frontend::Model &model, const std::string &name,
                                                   frontend::Status &outcome);

/// The model without the bytes of initializers that the tensor table has (flag IN_MODEL); other external data is taken in,
/// so that the result is one self-contained message. False when a tensor cannot be read or the result passes 2 GiB.
bool makeSource(const frontend::Model &model, const std::vector<artifact::Tensor> &tensors,
                artifact::Bytes &source, std::string &error);

} // namespace ortc::driver
