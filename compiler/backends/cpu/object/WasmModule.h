// Links objects into a module of WebAssembly.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/object/Blob.h"

namespace ortc::cpu {

/// Of the memory that the module shares with the runtime, the bytes from 0 on that are its own: stack, then constants.
/// The runtime's begin behind them.
inline constexpr uint64_t kWasmOwnBytes = 1 << 20, kWasmStackBytes = 256 << 10;

/// A blob's head, whose entries' offsets count them, and behind it the module, which imports memory alone and exports
/// the entries by these numbers. No symbol has a place. Fails where constants do not fit, or something is not defined.
llvm::Expected<CodeBlob> linkWasmModule(llvm::ArrayRef<Object> objects, llvm::ArrayRef<BlobEntry> entries);

} // namespace ortc::cpu
