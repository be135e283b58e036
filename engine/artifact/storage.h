// Holds the tensors of artifacts that this machine cannot run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ortc/device.h>

namespace ortc::engine {

/// A device that takes code of an architecture (ORTC_ARCH_PTX or ORTC_ARCH_AMDGPU) for any GPU and keeps memory of
/// sessions on the host: tensors can be read and written, checkpoints loaded and saved; steps fail. It lives as long as
/// the program.
const ortc_device *getStorage(uint32_t architecture);

} // namespace ortc::engine
