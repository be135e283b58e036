// The family of GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/GpuBackend.h"

#include "compiler/backends/gpu/Processor.h"
#include "compiler/backends/gpu/attention/AttentionKernel.h"
#include "compiler/backends/gpu/program/ProgramCode.h"
#include "compiler/kernels/SumOrder.h"

using namespace mlir;

namespace ortc::gpu {

namespace {

class GpuTarget : public backends::Target {
public:
  explicit GpuTarget(const Processor &processor) : processor(processor), name(processor.name.str()) {}

  const std::string &getName() const override { return name; }
  std::string describe(Numerics numerics) const override {
    return name + (numerics == Numerics::Fast ? ", fma" : ", no fma");
  }
  bool canRunHere() const override { return false; } // nothing is measured on devices

  bool usesAssembler() const override { return processor.isNvidia(); }
  int64_t attentionParts(Numerics numerics) const override {
    return numerics == Numerics::Fast ? kAttentionParts : 0;
  }
  bool hasAttention(const AttentionForm &form) const override { return gpu::hasAttention(form, processor); }
  bool hasTf32() const override { return processor.isNvidia(); }

  Status survey(ModuleOp module, const backends::CodeOptions &options, bool) override {
    return annotateKernels(module, processor, options);
  }
  Expected<std::unique_ptr<backends::TargetCode>> link(ModuleOp module,
                                                       const kernels::ProgramKernels &kernels,
                                                       const backends::CodeOptions &options) override {
    Expected<backends::TargetCode> code = compilePrograms(module, kernels, processor, options);
    if (!code)
      return code.getStatus();
    return std::make_unique<backends::TargetCode>(std::move(*code));
  }
  backends::KernelEstimates estimate(const std::vector<kernels::KernelWork> &works,
                                     bool isDouble) const override {
    backends::KernelEstimates result;
    result.machine.flopRate = processor.flopRate;
    result.machine.rates = {{0, processor.byteRate}};
    result.callSeconds = kLaunchSeconds;
    for (const kernels::KernelWork &work : works)
      result.seconds.push_back(estimateSeconds(work, isDouble, processor));
    return result;
  }

  Expected<std::vector<double>> measure(ModuleOp, const kernels::ProgramKernels &,
                                        const backends::TargetCode &) const override {
    return notHere();
  }
  Expected<std::unique_ptr<backends::TargetCode>>
  compileVariants(ModuleOp, const std::vector<backends::KernelVariant> &,
                  const backends::CodeOptions &) const override {
    return notHere();
  }
  Expected<std::vector<double>> timeInTurns(plan::StepOp, const backends::TargetCode &,
                                            const std::vector<size_t> &) const override {
    return notHere();
  }

private:
  Status notHere() const { return Status::failure("kernels for " + name + " are not measured"); }

  const Processor &processor;
  const std::string name;
};

} // namespace

ArrayRef<StringRef> GpuBackend::targetNames() const {
  static const std::vector<StringRef> names = [] {
    std::vector<StringRef> all;
    for (const Processor &each : processors())
      all.push_back(each.name);
    return all;
  }();
  return names;
}

kernels::FusionLimits GpuBackend::fusionLimits(Numerics numerics) const {
  kernels::FusionLimits limits;
  limits.largeBytes = 32 << 20; // what leaves the cache that all cores share
  limits.parallelPieces = 2048; // rows, or 64 points: fewer leave cores idle
  limits.longRow = 2048;        // a block has it, of so many warps; others are a warp's
  limits.longRowPieces = 8;
  limits.joinedBuffers = 480; // a launch takes 512 arguments
  limits.joinedBytes = 24 << 20;
  if (numerics == Numerics::Fast) { // loop/ColumnSums.h
    limits.columnRows = kernels::kBlockRows;
    limits.wholeColumnBytes = 512 << 10;
    limits.columnGroups = kernels::kBusyColumnGroups;
  }
  limits.fewKernels = true;
  return limits;
}

/// Every iteration is launches of its own, and a launch wants work for all cores: loops have few iterations, but
/// where memory is limited.
kernels::TrainingLimits GpuBackend::trainingLimits(bool hasBudget) const {
  kernels::TrainingLimits limits;
  limits.tileBytes = 8 << 20;
  limits.iterationBytes = hasBudget ? limits.tileBytes : int64_t(64) << 20;
  limits.tileRows = 512;
  return limits;
}

std::unique_ptr<backends::Target> GpuBackend::findTarget(StringRef name,
                                                         const backends::TargetOptions &) const {
  const Processor *processor = findProcessor(name);
  return processor ? std::make_unique<GpuTarget>(*processor) : nullptr;
}

} // namespace ortc::gpu
