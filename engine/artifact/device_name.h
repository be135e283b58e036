// The values of `--device`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "support/Status.h"

namespace ortc::engine {

enum class DeviceKind { Cpu, Cuda, Hip };

/// Takes "cpu", "cuda" and "hip" (the first GPU of NVIDIA, of AMD) or "cuda:N" and "hip:N" apart; refuses everything
/// else.
Status parseDevice(const std::string &name, DeviceKind &kind, uint32_t &ordinal);

} // namespace ortc::engine
