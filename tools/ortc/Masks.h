// Files of masks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/options/UpdateSpecs.h"

namespace ortc::tool {

/// Reads an npz or safetensors file of zeros and ones, of any type.
Expected<std::shared_ptr<const Masks>> readMasks(std::string_view path);

} // namespace ortc::tool
