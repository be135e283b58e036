// Machine code for NVIDIA GPUs, made by NVIDIA's assembler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/Processor.h"
#include "support/Expected.h"

#include <string>
#include <vector>

namespace ortc::gpu {

/// Runs `ptxas`, the path of a program, on PTX text that ends with a NUL. Fails with the first lines of what it says.
Expected<std::vector<uint8_t>> assembleCubin(const std::vector<uint8_t> &text, const Processor &processor,
                                             const std::string &ptxas);

} // namespace ortc::gpu
