// One module of WebAssembly with a model and the runtime.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/isa/Isa.h"
#include "compiler/backends/cpu/object/Object.h"
#include "support/Expected.h"

#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace ortc::cpu {

/// A module with the objects of a model's code, the runtime (`runtime`: libortc_wasm.a) and the model's `image`, which
/// bindings/js/linked.cpp finds as `ortc_model`. `steps`: symbols, in the order in which the image counts them. It
/// imports nothing, exports the C interface and its memory, and has one stack for all of it. Same input, same bytes.
/// Fails with what the linker says.
Expected<Bytes> linkWholeModule(llvm::ArrayRef<Object> objects, const std::vector<std::string> &steps,
                                const Isa &isa, const Bytes &image, llvm::StringRef runtime);

} // namespace ortc::cpu
