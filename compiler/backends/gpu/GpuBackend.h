// The family of GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/Backend.h"

namespace ortc::gpu {

class GpuBackend : public backends::Backend {
public:
  llvm::StringRef getName() const override { return "gpu"; }
  llvm::ArrayRef<llvm::StringRef> targetNames() const override;
  std::unique_ptr<backends::Target> findTarget(llvm::StringRef name,
                                               const backends::TargetOptions &options) const override;
  kernels::FusionLimits fusionLimits(Numerics numerics) const override;
  kernels::TrainingLimits trainingLimits(bool hasBudget) const override;
};

} // namespace ortc::gpu
