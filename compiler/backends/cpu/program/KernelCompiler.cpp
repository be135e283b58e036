// Kernels and steps to a code blob.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/program/KernelCompiler.h"

#include "compiler/artifact/ArtifactReader.h"
#include "compiler/backends/KernelJobs.h"
#include "compiler/backends/cpu/KernelGenerator.h"
#include "compiler/backends/cpu/isa/Architecture.h"
#include "compiler/backends/cpu/object/Archive.h"
#include "compiler/backends/cpu/object/BlobLoader.h"
#include "compiler/backends/cpu/object/Lowering.h"
#include "compiler/backends/cpu/object/WholeModule.h"
#include "compiler/backends/cpu/step/StepFunction.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"

#include "ortc/call.h"

#include <memory>

using namespace mlir;

namespace ortc::cpu {

using namespace kernels;

/// Whether a kernel is worth more than one thread: its step hands it to the pool.
static bool isParallel(const KernelWork &work, int64_t chunks, const Target &target) {
  const ParallelModel &model = target.machine.parallel;
  double seconds = std::max(static_cast<double>(std::max(work.flops, work.cost)) / model.flopRate,
                            static_cast<double>(work.bytesRead + work.bytesWritten) / model.byteRate);
  return chunks > 1 && seconds > model.serialSeconds;
}

namespace {

/// One kernel on its way to an object.
struct Job {
  std::string text;
  std::string name; ///< empty: its own
  const KernelChoices *choices = nullptr;
  bool isSurvey = false; ///< it ends with `info`
  KernelInfo info;
  Object object;
  std::string error;
};

/// Runs jobs in a context of its own.
class Worker {
public:
  Worker(const Target &target, const GeneratorOptions &options, backends::KernelCache *cache)
      : target(target), options(options), cache(cache), context(MLIRContext::Threading::DISABLED) {
    backends::loadKernelDialects(context);
  }

  void run(Job &job) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && job.error.empty())
        job.error = diagnostic.str();
      return success();
    });
    auto source = parseSourceString<ModuleOp>(job.text, &context);
    if (!source)
      return;
    auto function = *source->getOps<func::FuncOp>().begin();
    if (!job.name.empty())
      function.setSymName(job.name);
    options.choices = job.choices;
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    auto info = generateKernel(*module, function, target, options);
    if (succeeded(info)) {
      info->isParallel = isParallel(kernels::workOf(function), info->chunks, target);
      job.info = *info;
    }
    if (succeeded(info) && job.isSurvey)
      return;
    if (failed(info) || failed(lowerToLLVM(*module, target))) {
      if (job.error.empty())
        job.error = "kernel " + function.getSymName().str() + " cannot be generated";
      return;
    }
    auto object = emitObject(*module, target, {target.isa.forSize, cache, {}});
    if (object)
      job.object = std::move(*object);
    else
      job.error = llvm::toString(object.takeError());
  }

private:
  const Target &target;
  GeneratorOptions options;
  backends::KernelCache *const cache;
  MLIRContext context;
};

} // namespace

int64_t scratchBytes(const KernelInfo &info, const Target &target) {
  return info.workspaceBytesPerWorker * (info.isParallel ? target.workers : 1);
}

static artifact::Code makeSection(const Target &target, const CodeBlob &blob) {
  return {target.name, target.isa.architecture->format(), target.isa.requiredFeatures, blob.bytes};
}

static StackUse findStack(const StackFrames &frames, const PointerCalls &pointers, const std::string &step) {
  StackUse use;
  use.caller = findStackUse(frames, pointers, step);
  std::string task = kTaskFunction.str();
  use.worker = pointers.count(task) ? findStackUse(frames, pointers, task) : 0;
  return use;
}

static bool isCheck(Operation *kernel) {
  return kernel->getAttrOfType<plan::KernelKindAttr>(plan::kKind).getValue() == plan::KernelKind::check;
}

/// Whether pointers of the target reach all memory of the programs.
static Status checkReach(ModuleOp module, const Target &target) {
  if (target.isa.pointerBytes == sizeof(uint64_t))
    return {};
  constexpr int64_t kMost = int64_t(2) << 30;
  Status status;
  module.walk([&](plan::BufferOp buffer) {
    int64_t bytes = plan::storedBytes(cast<MemRefType>(buffer.getType()));
    int64_t end = buffer.getRegion() == plan::Region::external ? bytes : buffer.getOffset() + bytes;
    if (end > kMost && status.isOk())
      status =
          Status::refusal("its pointers have 32 bits, and '" + buffer.getName().str() + "' ends at byte " +
                          std::to_string(end) + " of a region, beyond 2 GiB; leave this target out");
  });
  return status;
}

/// Lets a module of WebAssembly have the step function under its number.
static void exportStep(ModuleOp module, StringRef symbol, size_t number) {
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol);
  Builder builder(module.getContext());
  SmallVector<Attribute> attributes(function.getPassthroughAttr().getAsRange<Attribute>());
  attributes.push_back(builder.getStrArrayAttr({"wasm-export-name", std::to_string(number)}));
  function.setPassthroughAttr(builder.getArrayAttr(attributes));
}

/// Adds the step functions, and links all.
static Status emitSteps(ModuleOp module, const SymbolTable &symbols, const kernels::ProgramKernels &kernels,
                        const Target &target, const CodeOptions &options, ProgramCode &code,
                        std::vector<Object> &objects) {
  llvm::StringMap<StepKernel> steps;
  for (auto [i, name] : llvm::enumerate(kernels.names)) {
    const KernelInfo &info = code.kernels[i];
    steps[name] = {kernelEntryName(info.name),
                   info.chunks,
                   info.isParallel,
                   info.workspaceBytesPerWorker > 0,
                   isCheck(symbols.lookup(name)),
                   static_cast<uint32_t>(kernels.first + i)};
  }
  OwningOpRef<ModuleOp> stepModule = ModuleOp::create(UnknownLoc::get(module.getContext()));
  std::vector<BlobEntry> entries;
  std::vector<PointerCalls> pointerCalls;
  for (auto program : module.getOps<plan::ProgramOp>()) {
    std::string symbol = "step_" + program.getSymName().str();
    pointerCalls.push_back(
        createStepFunction(*stepModule, program, symbol, steps, target.isa, options.numerics));
    if (target.isa.architecture->isModule())
      exportStep(*stepModule, symbol, entries.size());
    entries.push_back(
        {artifact::findEntryRole(program.getRole()), static_cast<uint32_t>(program.getBinding()), 0, symbol});
  }
  auto object = emitObject(*stepModule, target, {false, options.cache, {}});
  if (!object)
    return Status::failure(llvm::toString(object.takeError()));
  objects.push_back(std::move(*object));
  auto blob = linkBlob(objects, entries);
  if (!blob)
    return Status::failure(llvm::toString(blob.takeError()));
  code.blob = std::move(*blob);
  code.section = makeSection(target, code.blob);
  code.isa = target.isa;
  for (auto [entry, pointers] : llvm::zip_equal(entries, pointerCalls))
    code.stack.push_back(findStack(code.blob.frames, pointers, entry.symbol));
  if (target.isa.architecture->isModule()) {
    code.objects = std::move(objects);
    for (const BlobEntry &entry : entries)
      code.steps.push_back(entry.symbol);
  }
  return {};
}

Expected<artifact::Bytes> ProgramCode::makeArchive(const std::vector<std::string> &symbols,
                                                   ObjectFormat format) const {
  return cpu::makeArchive(blob.bytes, symbols, isa, format);
}

Expected<artifact::Bytes> ProgramCode::makeModule(const artifact::Bytes &image,
                                                  llvm::StringRef runtime) const {
  return objects.empty() ? TargetCode::makeModule(image, runtime)
                         : linkWholeModule(objects, steps, isa, image, runtime);
}

/// A job for each kernel; `options` must outlive them.
static std::vector<Job> makeJobs(const SymbolTable &symbols, const std::vector<std::string> &names,
                                 const CodeOptions &options) {
  std::vector<Job> jobs(names.size());
  for (auto [job, name] : llvm::zip_equal(jobs, names)) {
    job.text = backends::printKernel(symbols.lookup(name));
    job.choices = options.choices ? &*options.choices : nullptr;
  }
  return jobs;
}

/// Runs all jobs; fails with the first error.
static Status runJobs(std::vector<Job> &jobs, const Target &target, const GeneratorOptions &generator,
                      const CodeOptions &options) {
  backends::runJobs(jobs.size(), options.threads, [&]() -> std::function<void(size_t)> {
    return [&, worker = std::make_shared<Worker>(target, generator, options.cache)](size_t i) {
      worker->run(jobs[i]);
    };
  });
  for (const Job &job : jobs)
    if (!job.error.empty())
      return Status::failure(job.error);
  return {};
}

/// The names that index checks use, numbered.
static GeneratorOptions makeGeneratorOptions(const CodeOptions &options,
                                             const std::vector<std::string> &checkNames) {
  GeneratorOptions generator;
  generator.numerics = options.numerics;
  for (auto [i, name] : llvm::enumerate(checkNames))
    generator.checkNames[name] = i;
  return generator;
}

/// Runs the jobs of `names`, and adds what comes of them.
static Status makeAll(std::vector<Job> &jobs, const std::vector<std::string> &names, const Target &target,
                      const GeneratorOptions &generator, const CodeOptions &options, MadeKernels &made) {
  ORTC_TRY(runJobs(jobs, target, generator, options));
  for (auto [job, name] : llvm::zip_equal(jobs, names)) {
    MadeKernel &kernel = made[name];
    kernel.info = std::move(job.info);
    if (!job.isSurvey)
      kernel.object = std::move(job.object);
  }
  return {};
}

Status makeKernels(ModuleOp module, const std::vector<std::string> &names, const Target &target,
                   const CodeOptions &options, bool compiles, MadeKernels &made) {
  SymbolTable symbols(module);
  std::vector<Job> jobs = makeJobs(symbols, names, options);
  for (auto [job, name] : llvm::zip_equal(jobs, names))
    job.isSurvey = !compiles || isCheck(symbols.lookup(name));
  return makeAll(jobs, names, target, makeGeneratorOptions(options, /*checkNames=*/{}), options, made);
}

/// Whether the scratch of every kernel has the room that was planned for it.
static Status checkScratch(const SymbolTable &symbols, const kernels::ProgramKernels &kernels,
                           ArrayRef<KernelInfo> infos, const Target &target) {
  for (auto [name, info] : llvm::zip_equal(kernels.names, infos)) {
    int64_t bytes = scratchBytes(info, target), planned = plan::scratchOf(symbols.lookup(name));
    if (bytes > planned)
      return Status::failure("kernel " + name + " needs " + std::to_string(bytes) +
                             " bytes of scratch, and the plan has " + std::to_string(planned) +
                             "; please report this with the model");
  }
  return {};
}

Expected<ProgramCode> compileKernels(ModuleOp module, const kernels::ProgramKernels &kernels,
                                     const Target &target, const CodeOptions &options, MadeKernels &made) {
  std::vector<std::string> missing;
  for (const std::string &name : kernels.names)
    if (!made[name].object)
      missing.push_back(name);
  ORTC_TRY(checkReach(module, target));
  SymbolTable symbols(module);
  std::vector<Job> jobs = makeJobs(symbols, missing, options);
  ORTC_TRY(makeAll(jobs, missing, target, makeGeneratorOptions(options, kernels.checkNames), options, made));
  ProgramCode code;
  std::vector<Object> objects;
  for (const std::string &name : kernels.names) {
    code.kernels.push_back(made[name].info);
    objects.push_back(std::move(*made[name].object));
    made[name].object.reset();
  }
  ORTC_TRY(checkScratch(symbols, kernels, code.kernels, target));
  ORTC_TRY(emitSteps(module, symbols, kernels, target, options, code, objects));
  return code;
}

Expected<ProgramCode> compileVariants(ModuleOp module, const std::vector<KernelVariant> &variants,
                                      const Target &target, const CodeOptions &options) {
  GeneratorOptions generator;
  generator.numerics = options.numerics;
  SymbolTable symbols(module);
  std::vector<Job> jobs(variants.size());
  for (auto [job, variant] : llvm::zip_equal(jobs, variants)) {
    job.text = backends::printKernel(symbols.lookup(variant.kernel));
    job.name = variant.name;
    job.choices = &variant.choices;
  }
  ORTC_TRY(runJobs(jobs, target, generator, options));
  ProgramCode code;
  std::vector<Object> objects;
  for (Job &job : jobs) {
    code.kernels.push_back(std::move(job.info));
    objects.push_back(std::move(job.object));
  }
  auto linked = linkBlob(objects);
  if (!linked)
    return Status::failure(llvm::toString(linked.takeError()));
  code.blob = std::move(*linked);
  return code;
}

} // namespace ortc::cpu
