// Norms written with a scale that nobody learns.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's exporters write a group norm as
//   Reshape [N, G, -1] -> InstanceNormalization (scale ones, bias zeros) -> Reshape back -> Mul weight -> Add bias
// and an instance norm without weights as InstanceNormalization alone. The ones and zeros belong to the formula.
#pragma once

#include "compiler/frontend/Model.h"

#include <memory>
#include <string>
#include <vector>

namespace ortc::frontend {

/// Marks the ones and zeros of such norms as constants of the exported program (InitializerOrigins.h), and
/// gives the norm a copy of its own where an exporter has merged them with an equal parameter. A scale or
/// bias with a name of its own that only norms read is learned and left alone. Replaces `model` by an edited
/// copy where there is one, and adds a note.
Status markUnitNorms(std::shared_ptr<const Model> &model, std::vector<std::string> &notes);

} // namespace ortc::frontend
