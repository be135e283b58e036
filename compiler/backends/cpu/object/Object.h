// From the LLVM dialect to a relocatable object.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/cpu/object/StackUse.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <vector>

namespace llvm {
class Module;
}

namespace ortc::backends {
class KernelCache;
}

namespace ortc::cpu {

using Bytes = std::vector<uint8_t>;

/// A relocatable object, and what its functions take of the stack.
struct Object {
  Bytes bytes;
  StackFrames frames;
  const Architecture *architecture = nullptr; ///< whose code it is
};

struct ObjectOptions {
  /// Small code instead of fast code: two to six times slower, a third of the size.
  bool optimizeForSize = false;
  backends::KernelCache *cache = nullptr; ///< of code that LLVM has made before; null: none
  /// Called with the optimised LLVM module before code is emitted, for dumps. May be empty; nothing is taken
  /// from a cache otherwise.
  std::function<void(const llvm::Module &)> onOptimized;
};

/// Makes an ELF object of a module of llvm ops. Functions are hidden, may not unwind, have no red zone (code may run on
/// operating systems that use the stack below the pointer) and are "no-builtins": LLVM must not turn loops into calls
/// of memset or memcpy, which an artifact cannot import. Same input, same bytes. Thread safe for distinct contexts.
llvm::Expected<Object> emitObject(mlir::ModuleOp module, const Target &target,
                                  const ObjectOptions &options = {});

} // namespace ortc::cpu
