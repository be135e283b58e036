// The phases `place` and `code`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/MakeCode.h"

#include "compiler/backends/cpu/program/KernelSurvey.h"
#include "compiler/driver/FindTargets.h"
#include "compiler/pipeline/Phases.h"
#include "compiler/pipeline/Pipelines.h"
#include "compiler/tuning/TuneKernels.h"
#include "host/data/atomic_file.h"

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

Status CodeMaker::prepare() {
  std::string why;
  if (!findTargets(options, extras.tuning.measures, targets, why))
    return Status::refusal(why);
  if (std::string path = extras.tuning.path();
      !path.empty() && !tuned.read(path, /*mayBeMissing=*/extras.tuning.measures, why))
    return Status::refusal(why);
  return Status();
}

Status CodeMaker::refuse(const cpu::Target &target, const std::string &why) const {
  return diagnostics.refuse("code for " + target.name + ": " + why);
}

Status CodeMaker::place() {
  ORTC_TRY(diagnostics.run(*compiled.program, pipeline::buildOutline));
  if (extras.tuning.measures)
    outlined = cast<ModuleOp>((*compiled.program)->clone());
  return placeOutlined();
}

Status CodeMaker::placeOutlined() {
  ORTC_TRY(survey());
  extras.progress(pipeline::getPhases()[pipeline::findPhase("place")].work);
  pipeline::PlaceOptions how{options.memoryBudget.value_or(UINT64_MAX), extras.budgetCurve};
  ORTC_TRY(
      diagnostics.run(*compiled.program, [&](OpPassManager &passes) { pipeline::buildPlace(passes, how); }));
  compiled.kernels = kernels::findKernels(*compiled.program);
  return Status();
}

/// Notes on every kernel what it takes: time on the last target, scratch on the target that needs most. Kernels are
/// compiled at once where code is wanted, so that they are generated once.
Status CodeMaker::survey() {
  const bool compiles = options.compileTo.empty() || options.compileTo == "code";
  made.assign(targets.size(), {});
  for (auto [number, target] : llvm::enumerate(targets)) {
    if (compiles)
      extras.progress("making code for " + target.name +
                      (targets.size() > 1
                           ? ", " + std::to_string(number + 1) + " of " + std::to_string(targets.size()) +
                                 "; --target native makes it for this machine only"
                           : ""));
    std::string why;
    if (!cpu::annotateKernels(*compiled.program, target, kernelOptions(target), compiles, made[number], why))
      return refuse(target, why);
  }
  return Status();
}

Status CodeMaker::code() {
  ORTC_TRY(linkAll());
  if (!extras.tuning.measures)
    return Status();
  bool isFaster = false;
  for (const cpu::TargetCode &code : compiled.codes)
    ORTC_TRY(tuneFor(code, isFaster));
  ORTC_TRY(saveTuned()); // now: what was measured is kept, whatever comes of it
  if (!isFaster)
    return Status();
  // Other kernels take other scratch.
  compiled.program = std::move(outlined);
  ORTC_TRY(placeOutlined());
  ORTC_TRY(extras.afterPhase("place", *compiled.program));
  return linkAll();
}

Status CodeMaker::linkAll() {
  compiled.codes.clear();
  for (auto [target, kernels] : llvm::zip_equal(targets, made)) {
    std::string why;
    if (!cpu::compileKernels(*compiled.program, compiled.kernels, target, kernelOptions(target), kernels,
                             compiled.codes.emplace_back(), why))
      return refuse(target, why);
  }
  made.clear();
  return Status();
}

cpu::KernelOptions CodeMaker::kernelOptions(const cpu::Target &target) const {
  cpu::KernelOptions how;
  how.numerics = options.numerics == Numerics::Fast ? cpu::Numerics::Fast : cpu::Numerics::Portable;
  how.threads = countProcessors();
  if (!extras.tuning.path().empty())
    how.choices = tuned.choices(tuning::describePlace(target, how.numerics));
  return how;
}

/// Another run may have written there since it was read.
Status CodeMaker::saveTuned() {
  const std::string path = extras.tuning.path();
  std::string why;
  return tuned.read(path, /*mayBeMissing=*/true, why) ? host::writeFile(path, tuned.write())
                                                      : Status::failure(why);
}

/// Measures what the cache does not know yet.
Status CodeMaker::tuneFor(const cpu::TargetCode &code, bool &isFaster) {
  extras.progress("measuring kernels for " + code.target.name);
  tuning::TuneResult result;
  std::string why;
  if (!tuning::tuneKernels(*compiled.program, compiled.kernels, code, kernelOptions(code.target), tuned,
                           result, why))
    return refuse(code.target, why);
  compiled.facts.tuned.push_back(
      code.target.name + ": " + std::to_string(result.faster) + " of " + std::to_string(result.kernels) +
      " measured kernels are faster cut otherwise (" + std::to_string(result.variants) + " variants)");
  isFaster |= result.faster > 0;
  return Status();
}

} // namespace ortc::driver
