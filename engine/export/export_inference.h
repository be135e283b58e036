// Models for inference, from artifacts and from files that train.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/InferenceForm.h"
#include "compiler/frontend/onnx.pb.h"
#include "engine/session/session.h"

namespace ortc::engine {

/// Makes the graph of an artifact the one that it predicts with. `session` still has the weights of the artifact: what
/// is a mask of dropout was found with them.
Status stopTraining(const Artifact &artifact, Session &session, proto::ModelProto &model,
                    frontend::InferenceReport &report);

/// The same of a file of ONNX, whose data may be in others. The result has its data.
Status readForInference(const std::string &path, proto::ModelProto &model, frontend::InferenceReport &report);

/// ", for inference without 2 batch normalisations in training mode and 1 dropout"; "" where there was nothing to do.
std::string describeInference(const frontend::InferenceReport &report);

/// The nodes that draw random numbers in the model all the same; "" where none does.
std::string warnOfDraws(const frontend::InferenceReport &report);

} // namespace ortc::engine
