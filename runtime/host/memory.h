// Where programs and sessions of the tool have their memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_RUNTIME_HOST_MEMORY_H
#define ORTC_RUNTIME_HOST_MEMORY_H

#include "ortc/ortc.h"

namespace ortc::host {

/// Hooks that ask for huge pages where there is much memory. The addresses of a large session in small pages are more than a
/// processor remembers: 4 to 8 % of a step of convolutional networks.
ortc_host memoryHooks();

} // namespace ortc::host

#endif // ORTC_RUNTIME_HOST_MEMORY_H
