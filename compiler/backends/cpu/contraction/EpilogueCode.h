// The elementwise operations behind a contraction or convolution as code on vectors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/MathExpansion.h"
#include "compiler/backends/cpu/contraction/Contraction.h"
#include "compiler/kernels/contraction/FusedEpilogue.h"

#include <memory>

namespace ortc::cpu {

/// Null when nothing is computed.
Epilogue codeOf(std::shared_ptr<const FusedEpilogue> epilogue, MathOptions options);

} // namespace ortc::cpu
