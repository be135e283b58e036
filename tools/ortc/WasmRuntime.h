// Where the runtime for WebAssembly is, as objects.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Expected.h"

#include <string>

namespace ortc::tool {

/// The path of libortc_wasm.a, which is installed and built at a known place beside this program. Refuses, naming the
/// places, where it is at none.
Expected<std::string> findWasmRuntime();

} // namespace ortc::tool
