// The family of CPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/CpuBackend.h"

#include "compiler/backends/cpu/measure/MeasureKernels.h"
#include "compiler/backends/cpu/program/KernelSurvey.h"

using namespace mlir;

namespace ortc::cpu {

using namespace kernels;

namespace {

class CpuTarget : public backends::Target {
public:
  explicit CpuTarget(cpu::Target target) : target(std::move(target)) {}

  const std::string &getName() const override { return target.name; }
  std::string describe(Numerics numerics) const override { return describeMachine(target, numerics); }
  bool canRunHere() const override { return cpu::canRunHere(target); }

  Status survey(ModuleOp module, const CodeOptions &options, bool compiles) override {
    made.clear();
    return annotateKernels(module, target, options, compiles, made);
  }

  Expected<std::unique_ptr<backends::TargetCode>>
  link(ModuleOp module, const kernels::ProgramKernels &kernels, const CodeOptions &options) override {
    auto code = compileKernels(module, kernels, target, options, made);
    made.clear();
    if (!code)
      return code.getStatus();
    return std::unique_ptr<backends::TargetCode>(std::make_unique<ProgramCode>(std::move(*code)));
  }

  backends::KernelEstimates estimate(const std::vector<KernelWork> &works, bool isDouble) const override {
    CostModel model = target.name == "native" ? measureCostModel(static_cast<int>(target.lanes(32)))
                                              : getCostTable(target.machine);
    backends::KernelEstimates result{model.machine, model.isMeasured, model.callSeconds, {}};
    for (const KernelWork &work : works)
      result.seconds.push_back(estimateSeconds(work, isDouble, model));
    return result;
  }

  Expected<std::vector<double>> measure(ModuleOp module, const kernels::ProgramKernels &kernels,
                                        const backends::TargetCode &code) const override {
    return measureKernels(module, kernels, static_cast<const ProgramCode &>(code));
  }

  Expected<std::unique_ptr<backends::TargetCode>>
  compileVariants(ModuleOp module, const std::vector<backends::KernelVariant> &variants,
                  const CodeOptions &options) const override {
    auto code = cpu::compileVariants(module, variants, target, options);
    if (!code)
      return code.getStatus();
    auto loaded = loadVariants(std::move(*code));
    if (!loaded)
      return loaded.getStatus();
    return std::unique_ptr<backends::TargetCode>(std::move(*loaded));
  }

  Expected<std::vector<double>> timeInTurns(plan::StepOp step, const backends::TargetCode &variants,
                                            const std::vector<size_t> &numbers) const override {
    return timeVariants(step, static_cast<const LoadedVariants &>(variants), numbers);
  }

private:
  const cpu::Target target;
  MadeKernels made; ///< from the survey, until they are linked
};

} // namespace

ArrayRef<StringRef> CpuBackend::targetNames() const { return cpu::targetNames(); }

ArrayRef<StringRef> CpuBackend::hostTargets() const { return cpu::hostTargetNames(); }

ArrayRef<StringRef> CpuBackend::hostedTargets() const { return cpu::hostedTargetNames(); }

std::unique_ptr<backends::Target> CpuBackend::findTarget(StringRef name,
                                                         const backends::TargetOptions &options) const {
  std::optional<Target> target = cpu::findTarget(name, options.numerics);
  if (!target)
    return nullptr;
  target->workers = options.workers;
  if (options.forSize.value_or(target->prefersSize))
    preferSize(*target);
  return std::make_unique<CpuTarget>(std::move(*target));
}

} // namespace ortc::cpu
