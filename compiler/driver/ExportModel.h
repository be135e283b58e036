//===- ExportModel.h - the original graph with trained weights -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_COMPILER_DRIVER_EXPORTMODEL_H
#define ORTC_COMPILER_DRIVER_EXPORTMODEL_H

#include <string>

#include "runtime/host/status.h"

namespace ortc::driver {

struct ExportOptions {
  std::string artifact, output;
  std::string load; ///< a checkpoint; empty: the weights as they were compiled in
  bool quiet = false;
};

/// Writes the ONNX graph that an artifact was made from, with the weights of a checkpoint in their place: the
/// same nodes, names and dtypes as the file that was compiled.
host::Status exportModel(const ExportOptions &options);

} // namespace ortc::driver

#endif // ORTC_COMPILER_DRIVER_EXPORTMODEL_H
