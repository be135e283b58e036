// The elementwise operations behind a contraction or convolution as code on vectors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/codegen/MathExpansion.h"
#include "compiler/codegen/contraction/Contraction.h"
#include "compiler/kernels/contraction/FusedEpilogue.h"

#include <memory>

namespace ortc::codegen {

/// Null when nothing is computed.
Epilogue codeOf(std::shared_ptr<const FusedEpilogue> epilogue, MathOptions options);

} // namespace ortc::codegen
