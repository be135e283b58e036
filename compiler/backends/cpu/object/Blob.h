// Links objects into one position-independent code blob.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/object/Object.h"

#include "llvm/ADT/ArrayRef.h"

#include <map>
#include <string>

namespace ortc::cpu {

/// A step function of the blob: key in the head (ortc/call.h) and the symbol that implements it.
struct BlobEntry {
  uint32_t role = 0;
  uint32_t binding = 0;
  uint32_t segment = 0;
  std::string symbol;
};

struct CodeBlob {
  Bytes bytes;
  /// Offset of every function that is visible between objects, kernel entries included.
  std::map<std::string, uint32_t> symbols;
  uint64_t textBytes = 0;
  uint64_t constantBytes = 0;
  /// Of all functions. Those of one name in several objects, which only local ones can have, have no bytes.
  StackFrames frames;
};

/// Appends a blob's head, padded to a multiple of 64 bytes; `offsets`: of the entries.
void appendHead(llvm::ArrayRef<BlobEntry> entries, llvm::ArrayRef<uint32_t> offsets, Bytes &bytes);
/// What the functions of the objects take of the stack.
void addFrames(llvm::ArrayRef<Object> objects, CodeBlob &blob);

/// Lays out head, code and constants of `objects` (in this order, by the sections' alignment, at most 64) and resolves
/// all references. Refuses, naming it: an undefined symbol, one defined twice, writable data, and a relocation that is
/// not relative to its own place (so the result runs at any 64-byte aligned address without a loader's help). For
/// WebAssembly: linkWasmModule.
llvm::Expected<CodeBlob> linkBlob(llvm::ArrayRef<Object> objects, llvm::ArrayRef<BlobEntry> entries = {});

} // namespace ortc::cpu
