// Objects as a cache of kernels keeps them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/object/Object.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace ortc::cpu {

/// The object without its architecture, as CBOR.
std::string writeObject(const Object &object);
/// The object that was written; nothing where `text` is none.
std::optional<Object> readObject(llvm::StringRef text, const Architecture &architecture);

} // namespace ortc::cpu
