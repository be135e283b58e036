// A model as C source, for programs that it is linked into (ortc/static.h). No MLIR.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/artifact/Artifact.h"
#include "support/Expected.h"

#include <optional>
#include <string>
#include <vector>

namespace ortc::artifact {

/// What the sources are made from.
struct StaticModel {
  std::string name;                           ///< all names of C begin with it
  const Artifact &artifact;                   ///< with one code
  std::vector<std::string> steps;             ///< symbols, by entry (nameSteps)
  std::vector<std::optional<uint64_t>> stack; ///< bytes, by entry, where known
};

/// Symbols of the steps, by entry. They have the code's hash in them: code and sources of different compilations do not
/// link.
std::vector<std::string> nameSteps(const std::string &name, const Artifact &artifact);

/// The artifact as a program has it that its code is linked into: without code, names of kernels, manifest and graph.
/// The head of its code section counts the entries. Fails as writeArtifact does.
Expected<Bytes> makeStaticImage(const Artifact &artifact);

/// model.h: sizes, places of tensors, order of values, and the function that gives an ortc_static.
std::string makeStaticHeader(const StaticModel &model);

/// model_data.c: makeStaticImage() as a constant array, whose weights can be compiled alone. Fails as that does.
Expected<std::string> makeStaticData(const StaticModel &model);

} // namespace ortc::artifact
