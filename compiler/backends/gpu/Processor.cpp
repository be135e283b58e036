// The GPUs that kernels are generated for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/Processor.h"

#include "llvm/ADT/STLExtras.h"

#include "ortc/device.h"

namespace ortc::gpu {

static constexpr llvm::StringLiteral kNvidia = "nvptx64-nvidia-cuda", kAmd = "amdgcn-amd-amdhsa";

// Rates (f32, f64, memory) are those of data sheets: A100, A10, L4, H200, B200, RTX 5090; MI250X (one die), MI300X,
// RX 7900 XTX.
llvm::ArrayRef<Processor> processors() {
  static constexpr Processor kProcessors[] = {
      {"sm_80", ORTC_ARCH_PTX, ORTC_PTX_SM_80, 80, kNvidia, "+ptx70", 32, 19.5e12, 9.7e12, 1.6e12, 164 << 10},
      {"sm_86", ORTC_ARCH_PTX, ORTC_PTX_SM_86, 86, kNvidia, "+ptx71", 32, 31e12, 0.49e12, 0.6e12, 100 << 10},
      {"sm_89", ORTC_ARCH_PTX, ORTC_PTX_SM_89, 89, kNvidia, "+ptx78", 32, 30e12, 0.47e12, 0.3e12, 100 << 10},
      {"sm_90", ORTC_ARCH_PTX, ORTC_PTX_SM_90, 90, kNvidia, "+ptx78", 32, 67e12, 34e12, 4.8e12, 228 << 10},
      {"sm_90a", ORTC_ARCH_PTX, ORTC_PTX_SM_90A, 90, kNvidia, "+ptx80", 32, 67e12, 34e12, 4.8e12, 228 << 10,
       true},
      {"sm_100", ORTC_ARCH_PTX, ORTC_PTX_SM_100, 100, kNvidia, "+ptx86", 32, 75e12, 37e12, 7.7e12, 228 << 10},
      {"sm_120", ORTC_ARCH_PTX, ORTC_PTX_SM_120, 120, kNvidia, "+ptx87", 32, 100e12, 1.6e12, 1.8e12,
       100 << 10},
      {"gfx90a", ORTC_ARCH_AMDGPU, ORTC_AMDGPU_GFX90A, 0, kAmd, "", 64, 24e12, 24e12, 1.6e12},
      {"gfx942", ORTC_ARCH_AMDGPU, ORTC_AMDGPU_GFX942, 0, kAmd, "", 64, 80e12, 80e12, 5.3e12},
      {"gfx1100", ORTC_ARCH_AMDGPU, ORTC_AMDGPU_GFX1100, 0, kAmd, "", 32, 30e12, 0.95e12, 0.96e12},
  };
  return kProcessors;
}

const Processor *findProcessor(llvm::StringRef name) {
  const auto *found = llvm::find_if(processors(), [&](const Processor &each) { return each.name == name; });
  return found == processors().end() ? nullptr : found;
}

} // namespace ortc::gpu
