// The GPUs that kernels are generated for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include "ortc/format.h"

#include <cstdint>

namespace ortc::kernels {}
namespace ortc::emit {}

namespace ortc::gpu {

using namespace kernels; // the forms that kernels are generated for
using namespace emit;    // what their code is written with

/// Lanes that work together in reductions, on every processor: what AMD calls a wavefront may hold two such groups.
inline constexpr int64_t kWarp = 32;

/// A GPU, by the name of its code. Plain data.
struct Processor {
  llvm::StringRef name; ///< on the command line, and LLVM's
  ortc_architecture architecture = ORTC_ARCH_PTX;
  unsigned feature = 0;     ///< bit among the features of the architecture (ortc/device.h)
  unsigned number = 0;      ///< NVIDIA: 80, 90, ...
  llvm::StringRef triple;   ///< of LLVM
  llvm::StringRef features; ///< of LLVM: the least version of PTX that knows the processor
  int64_t subgroup = 32;    ///< lanes that run in lockstep
  // What a kernel of it takes, for estimates: servers of its generation.
  double flopRate = 0, doubleRate = 0, byteRate = 0; ///< f32, f64, memory
  int64_t sharedBytes = 0;       ///< of a multiprocessor of NVIDIA's, for all of its blocks
  bool hasGroupProducts = false; ///< wgmma: four warps multiply tiles of shared memory

  bool isNvidia() const { return architecture == ORTC_ARCH_PTX; }
};

/// All of them; those of one architecture in the order in which the loader prefers them, most capable last.
llvm::ArrayRef<Processor> processors();
/// Null when there is none of that name.
const Processor *findProcessor(llvm::StringRef name);

} // namespace ortc::gpu
