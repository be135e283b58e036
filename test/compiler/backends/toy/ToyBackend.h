// A family of one target that makes no code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/Backend.h"

namespace ortc::test {

/// Counts kernels. Its limits keep loops of more than one operation apart, so that its programs have other kernels,
/// another order and another plan than those of CPUs. Its code is a head without functions, for no machine.
class ToyBackend : public backends::Backend {
public:
  llvm::StringRef getName() const override { return "toys"; }
  llvm::ArrayRef<llvm::StringRef> targetNames() const override;
  std::unique_ptr<backends::Target> findTarget(llvm::StringRef name,
                                               const backends::TargetOptions &options) const override;
  kernels::FusionLimits fusionLimits(Numerics numerics) const override;
  kernels::TrainingLimits trainingLimits(bool) const override { return training; }

  kernels::TrainingLimits training; ///< those of CPUs, for tests to change
};

} // namespace ortc::test
