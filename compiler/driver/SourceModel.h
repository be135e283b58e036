//===- SourceModel.h - the ONNX graph that travels in an artifact ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/codegen/artifact/Artifact.h"
#include "compiler/frontend/Model.h"

#include <set>
#include <string>

namespace ortc::driver {

/// Names of the initializers of the main graph.
std::set<std::string> initializerNames(const frontend::Model &model);

/// The model without the bytes of initializers that the tensor table has (flag IN_MODEL); other external data is taken in,
/// so that the result is one self-contained message. False when a tensor cannot be read or the result passes 2 GiB.
bool makeSource(const frontend::Model &model, const std::vector<artifact::Tensor> &tensors,
                artifact::Bytes &source, std::string &error);

} // namespace ortc::driver
