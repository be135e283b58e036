// The ONNX graph that travels in an artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/artifact/Artifact.h"
#include "compiler/frontend/QuantizedBase.h"
#include "compiler/options/CompileOptions.h"
#include "support/Expected.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ortc::driver {

/// Names of the initializers of the main graph.
std::set<std::string> initializerNames(const frontend::Model &model);

/// Values of the floating-point initializers of all graphs, as the file has them.
int64_t countFloatValues(const frontend::Model &model);

/// Floating-point initializers of branches and loop bodies, with their numbers of values: constants, which
/// are never trained.
std::vector<std::pair<std::string, int64_t>> listInnerInitializers(const frontend::Model &model);

/// The list of names, one a line, that the model's metadata has under `key`.
std::optional<NamePattern> findNameList(const frontend::Model &model, const std::string &key);

/// Parameters of the exported program that initializers were computed from, as far as the file says.
std::vector<std::string> listSources(const frontend::Model &model);

/// The model with the value `name` of its graph as one more output; null when that is no value of a node, or
/// an output already.
Expected<std::shared_ptr<const frontend::Model>> exposeValue(const frontend::Model &model,
                                                             const std::string &name);

/// The model without the bytes of initializers that the tensor table has (flag IN_MODEL, or as integers of
/// `packed`); other external data is taken in, so that the result is one self-contained message. Refuses a
/// tensor that cannot be read and a result above 2 GiB.
Expected<artifact::Bytes> makeSource(const frontend::Model &model,
                                     const std::vector<artifact::Tensor> &tensors,
                                     const frontend::PackedWeights &packed);

} // namespace ortc::driver
