//===- InitializerOrigin.h - the attribute that names an origin -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"

namespace ortc::onnx {

/// Attribute of an initializer: "parameter", "buffer" or "constant", where the exporter says so.
inline constexpr llvm::StringLiteral kOrigin = "onnx.origin";

} // namespace ortc::onnx
