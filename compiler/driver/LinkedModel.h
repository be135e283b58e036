// What programs are linked with, beside an artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/driver/Compiled.h"
#include "compiler/options/CompileOptions.h"

namespace ortc::driver {

/// Fills `compiled.linked` with model.a, model.h and model_data.c, or with model.wasm: `compiled` is complete otherwise
/// and has one code.
Status makeLinked(const CompileOptions &options, Compiled &compiled);

} // namespace ortc::driver
