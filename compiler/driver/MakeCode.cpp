// The phases `fuse`, `place` and `code`, for one family of targets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/MakeCode.h"

#include "compiler/driver/Phases.h"
#include "compiler/passes/train/Channels.h"
#include "compiler/passes/train/ProgramParts.h"
#include "compiler/pipeline/Pipelines.h"
#include "compiler/tuning/TuneKernels.h"
#include "support/AtomicFile.h"
#include "support/Plural.h"

#include <sched.h>
#include <thread>

using namespace mlir;

namespace ortc::driver {

/// How many processors this process may run on: fewer than the machine has under taskset or in a container.
static unsigned countProcessors() {
  cpu_set_t allowed;
  int count = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
  return count > 0 ? static_cast<unsigned>(count) : std::max(1u, std::thread::hardware_concurrency());
}

Status CodeMaker::withTarget(const backends::Target &target, const Status &status) const {
  return status.isOk() ? status
                       : diagnostics.refuse("code for " + target.getName() + ": " + status.getMessage());
}

Status CodeMaker::fuse() {
  return diagnostics.run(*program.ir, [&](OpPassManager &passes) {
    kernels::FusionLimits limits = program.family.backend->fusionLimits(options.numerics);
    limits.attentionParts = program.family.attentionParts(options);
    limits.hasAttention = [&](const kernels::AttentionForm &form) {
      return program.family.hasAttention(form);
    };
    pipeline::buildFuse(passes, limits, narrowType(options));
  });
}

Status CodeMaker::place() {
  kernels::FusionLimits limits = program.family.backend->fusionLimits(options.numerics);
  if (options
          .memoryBudget) // gradients that wait for each other take more: what a refusal names must be enough
    limits.joinedBytes = 0;
  ORTC_TRY(
      diagnostics.run(*program.ir, [&](OpPassManager &passes) { pipeline::buildOutline(passes, limits); }));
  if (extras.tuning.measures)
    outlined = cast<ModuleOp>((*program.ir)->clone());
  return placeOutlined();
}

/// What a budget has to hold for a flag that looks at every gradient before the first update; empty without one.
static std::string describeKeptGradients(ModuleOp module, const CompileOptions &options) {
  std::string flag = options.clipNorm ? "--clip-norm" : "";
  if (options.lossScale)
    flag += flag.empty() ? "--loss-scale" : " and --loss-scale";
  if (flag.empty())
    return "";
  SmallVector<train::TensorOp> parameters = train::findParameters(module);
  int64_t bytes = 0;
  for (train::TensorOp parameter : parameters) {
    RankedTensorType type = train::gradientType(parameter);
    bytes += type.getNumElements() * type.getElementTypeBitWidth() / 8;
  }
  return "; with " + flag + " the gradients of all " + std::to_string(parameters.size()) +
         " trained tensors" + (options.sparse.empty() ? ", " + std::to_string(bytes) + " bytes," : "") +
         " are kept until the last one is there, or some computed again; without, each is gone when its "
         "tensor is updated";
}

Status CodeMaker::placeOutlined() {
  ORTC_TRY(survey());
  extras.progress(describePhase("place"));
  pipeline::PlaceOptions how{options.memoryBudget.value_or(UINT64_MAX), extras.budgetCurve,
                             describeKeptGradients(*program.ir, options), extras.memoryUnit};
  ORTC_TRY(diagnostics.run(*program.ir, [&](OpPassManager &passes) { pipeline::buildPlace(passes, how); }));
  program.kernels = kernels::findKernels(*program.ir, before);
  return Status();
}

/// Whether kernels are compiled while they are surveyed, so that they are generated once. A budget may be refused,
/// which should not take the time of code.
bool CodeMaker::compilesAtOnce() const {
  return (options.compileTo.empty() || options.compileTo == "code") && !options.memoryBudget;
}

void CodeMaker::tellProgress(size_t number) const {
  const size_t count = program.family.targets.size();
  extras.progress("making code for " + program.family.targets[number]->getName() +
                  (count > 1 ? ", " + std::to_string(number + 1) + " of " + std::to_string(count) +
                                   "; --target native makes it for this machine only"
                             : ""));
}

/// Notes on every kernel what it takes.
Status CodeMaker::survey() {
  for (auto [number, target] : llvm::enumerate(program.family.targets)) {
    if (compilesAtOnce())
      tellProgress(number);
    ORTC_TRY(withTarget(*target, target->survey(*program.ir, codeOptions(*target), compilesAtOnce())));
  }
  return Status();
}

Status CodeMaker::code() {
  ORTC_TRY(linkAll());
  if (!extras.tuning.measures)
    return Status();
  bool isFaster = false;
  for (auto [target, code] : llvm::zip_equal(program.family.targets, program.codes))
    ORTC_TRY(tuneFor(*target, *code, isFaster));
  ORTC_TRY(saveTuned()); // now: what was measured is kept, whatever comes of it
  if (!isFaster)
    return Status();
  // Other kernels take other scratch.
  program.ir = std::move(outlined);
  ORTC_TRY(placeOutlined());
  ORTC_TRY(extras.afterPhase("place", program.name, *program.ir));
  return linkAll();
}

Status CodeMaker::linkAll() {
  program.codes.clear();
  program.kernels = kernels::findKernels(*program.ir, before); // again: kernels before it may have changed
  for (auto [number, target] : llvm::enumerate(program.family.targets)) {
    if (!compilesAtOnce())
      tellProgress(number);
    auto code = target->link(*program.ir, program.kernels, codeOptions(*target));
    if (!code)
      return withTarget(*target, code.getStatus());
    program.codes.push_back(std::move(*code));
  }
  return Status();
}

backends::CodeOptions CodeMaker::codeOptions(const backends::Target &target) const {
  backends::CodeOptions how;
  how.numerics = options.numerics;
  how.usesTf32 = options.precision == Precision::TF32;
  how.threads = countProcessors();
  how.cache = cache;
  how.assembler = options.ptxas;
  if (!extras.tuning.path().empty())
    how.choices = tuned.choices(target.describe(how.numerics));
  return how;
}

/// Another run may have written there since it was read.
Status CodeMaker::saveTuned() {
  const std::string path = extras.tuning.path();
  Status read = tuned.read(path, /*mayBeMissing=*/true);
  return read.isOk() ? writeFile(path, tuned.write()) : Status::failure(read.getMessage());
}

/// Measures what the cache does not know yet.
Status CodeMaker::tuneFor(const backends::Target &target, const backends::TargetCode &code, bool &isFaster) {
  extras.progress("measuring kernels for " + target.getName());
  tuning::TuneResult result;
  ORTC_TRY(withTarget(target, tuning::tuneKernels(*program.ir, program.kernels, target, code,
                                                  codeOptions(target), tuned, result)));
  facts.tuned.push_back(target.getName() + ": " + std::to_string(result.faster) + " of " +
                        std::to_string(result.kernels) + " measured kernels are faster cut otherwise (" +
                        formatCount(result.variants, "variant") + ")");
  isFaster |= result.faster > 0;
  return Status();
}

} // namespace ortc::driver
