// Operators that choose gradients, as the standard has them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/onnx.pb.h"

namespace ortc::engine {

/// Makes Identity of every Detach and StraightThrough (compiler/frontend/OwnOperators.h) and Gather of every Embedding.
/// The metadata says what they were, as in GradientMarks.h, so that the model can be trained again.
void writeChosenGradients(proto::ModelProto &model);

} // namespace ortc::engine
