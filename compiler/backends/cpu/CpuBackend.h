// The family of CPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/Backend.h"

namespace ortc::cpu {

class CpuBackend : public backends::Backend {
public:
  llvm::StringRef getName() const override { return "cpu"; }
  llvm::ArrayRef<llvm::StringRef> targetNames() const override;
  llvm::ArrayRef<llvm::StringRef> hostTargets() const override;
  llvm::ArrayRef<llvm::StringRef> hostedTargets() const override;
  std::unique_ptr<backends::Target> findTarget(llvm::StringRef name,
                                               const backends::TargetOptions &options) const override;
  kernels::FusionLimits fusionLimits(Numerics) const override { return {}; }
};

} // namespace ortc::cpu
