// Where a batch normalisation has its mean and variance from.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/onnx/OnnxDialect.h"

namespace ortc::legalize {

enum class NormStatistics {
  running, ///< initializers, which training steps may move: --batch-norm decides
  batch,   ///< always of the batch: there are none of an earlier one
  given,   ///< computed by the graph, or constants
};

/// Weight standardisation and instance norms are written as batch normalisations whose statistics are moments of their
/// own input, or constants that training mode does not read. No flag is about those.
NormStatistics statisticsOf(onnx::NodeOp norm);

/// The initializer behind a mean or variance: the value itself, or repeated for each sample, as instance norms with
/// running statistics are written. `name` becomes the name that an Identity on the way has, if there is one.
onnx::InitializerOp findStatistic(mlir::Value value, std::string *name = nullptr);

/// Whether batch normalisations alone read the value, as a mean or variance.
bool isOnlyStatistic(mlir::Value value);

} // namespace ortc::legalize
