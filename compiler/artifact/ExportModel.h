// The original graph with trained weights.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "support/Status.h"

namespace ortc::artifact {

struct ExportOptions {
  std::string artifact, output;
  std::string load;    ///< a checkpoint; empty: the weights as they were compiled in
  std::string weights; ///< averages in place of parameters: "ema", "swa"; empty: the parameters
  std::string adapter; ///< a folder for the adapters alone; empty: none. Then `output` may be empty
  bool quiet = false;
};

/// Writes the ONNX graph that an artifact was made from, with the weights of a checkpoint in their place: the
/// same nodes, names and dtypes as the file that was compiled. Adapters are merged into their weights.
Status exportModel(const ExportOptions &options);

} // namespace ortc::artifact
