// Matrix products and convolutions of any operands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/legalize/Node.h"

namespace ortc::legalize {

/// NumPy's matmul of `a` and `c`; null when shapes do not fit, which is refused.
Value multiply(Node &n, Value a, Value c);

/// What Gemm makes of its operands and attributes; null when they do not fit, which is refused.
Value multiplyAndAdd(Node &n);

/// Conv with the node's attributes; `bias` may be null. Channels first, like the node's operands. Null when
/// something does not fit, which is refused.
Value convolve(Node &n, Value x, Value filter, Value bias);

} // namespace ortc::legalize
