// The original graph with trained weights.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "support/Status.h"

namespace ortc::engine {

/// `ortc export`.
struct ExportOptions {
  std::string artifact; ///< or a file of ONNX, which has no checkpoint and no adapters
  std::string output;
  std::string load;    ///< a checkpoint; empty: the weights as they were compiled in
  std::string weights; ///< averages in place of parameters: "ema", "swa"; empty: the parameters
  std::string adapter; ///< a folder for the adapters alone; empty: none. Then `output` may be empty
  bool quiet = false;
  bool isForTraining = false; ///< the graph as it was compiled
};

/// Writes the ONNX graph that an artifact was made from, with the weights of a checkpoint in their place: the
/// same names and dtypes as the file that was compiled, and, but for what trains only, the same nodes. Adapters are
/// merged into their weights. A file of ONNX is written as it predicts.
Status exportModel(const ExportOptions &options);

} // namespace ortc::engine
