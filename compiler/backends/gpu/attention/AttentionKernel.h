// Attention and its gradients on tensor cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"

namespace ortc::gpu {

/// Numbers of 16 bits of a row's elements that registers hold: one of a bf16 number, kWideParts of a f32 number.
inline constexpr int64_t kAttentionParts = 192;

/// Adds the launch. A block has kAttentionRows rows of one head and passes over its keys, some at a time, as
/// often as the scores need: once for every sum or maximum along the keys that another one needs, and once for what is
/// mixed. Fails with an error where the function is no attention.
llvm::LogicalResult generateAttention(KernelBuilder &kernel, mlir::func::FuncOp function,
                                      const GeneratorOptions &options);

} // namespace ortc::gpu
