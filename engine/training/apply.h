// The commands that apply an artifact to data, but for training.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/Status.h"

namespace ortc::engine {

/// Flags that `eval`, `predict` and `gradients` share.
struct ApplyOptions {
  std::string artifact, data, output, load, binding;
  std::string weights;          ///< averages in place of parameters, as takeAverages() has them
  std::string device = "cpu";   ///< as Device has it
  std::optional<int64_t> steps; ///< slices; absent: all (gradients: the first)
  uint32_t threads = 0;
  bool quiet = false;
  bool json = false;                ///< eval: the result as one JSON object
  std::vector<std::string> metrics; ///< eval: as --metric has them
};

/// Prints mean loss and accuracy in eval mode.
Status evaluateData(const ApplyOptions &options);
/// Writes every graph output over the data to an npz file: slices concatenated along the leading axis, what
/// stems from repeated samples cut off. Outputs without dimensions give one number a slice.
Status predictData(const ApplyOptions &options);
/// Writes the loss (as "loss", unless a parameter has that name) and the gradient of every parameter to a
/// safetensors file; over more than one slice, their means.
Status computeGradients(const ApplyOptions &options);

} // namespace ortc::engine
