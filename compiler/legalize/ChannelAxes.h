// Where the output channels of a weight lie.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/onnx/OnnxDialect.h"
#include "support/Expected.h"

namespace ortc::legalize {

/// The axis of an initializer along which the output channels of all layers that read it lie: the first of a Conv or of
/// a transposed Gemm, the last of a MatMul, the only one of a vector. Refuses, with a phrase for the reason, what has
/// none (tables, recurrent layers) or several.
Expected<int64_t> findChannelAxis(onnx::InitializerOp initializer);

} // namespace ortc::legalize
