// Attention and its gradients on matrix cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"
#include "compiler/kernels/attention/AttentionForm.h"

namespace ortc::gpu {

/// Numbers of 16 bits of a row's elements that registers hold: one of a bf16 number, kWideParts of a f32 number.
inline constexpr int64_t kAttentionParts = 192;

/// Whether blocks of the processor have room for such a kernel.
bool hasAttention(const AttentionForm &form, const Processor &processor);

/// Adds the launch. A block has some rows of one head and passes over its keys, some at a time, as often as the scores
/// need: once for every sum or maximum along the keys that another one needs, and once for what is mixed. Fails with an
/// error where the function is no attention, or none that the processor has (`hasAttention`).
llvm::LogicalResult generateAttention(KernelBuilder &kernel, mlir::func::FuncOp function,
                                      const GeneratorOptions &options);

} // namespace ortc::gpu
