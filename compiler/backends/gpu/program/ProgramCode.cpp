// All kernels of a module for one GPU, and the section of the artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/program/ProgramCode.h"

#include "compiler/artifact/ArtifactReader.h"
#include "compiler/backends/KernelJobs.h"
#include "compiler/backends/gpu/CheckKernel.h"
#include "compiler/backends/gpu/KernelGenerator.h"
#include "compiler/backends/gpu/object/Cubin.h"
#include "compiler/backends/gpu/object/DeviceCode.h"
#include "compiler/backends/gpu/program/LaunchList.h"
#include "dialects/nn/NnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

using namespace mlir;

namespace ortc::gpu {

namespace {

/// One kernel on its way to code.
struct Job {
  std::string name, text; ///< without text: the guard of that name
  GeneratorOptions options;
  bool isSurvey = false; ///< it ends with `kernel`
  GpuKernel kernel;
  std::string code, error;
};

class Worker {
public:
  Worker(const Processor &processor, backends::KernelCache *cache)
      : processor(processor), cache(cache), context(MLIRContext::Threading::DISABLED) {
    backends::loadKernelDialects(context);
  }

  void run(Job &job) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && job.error.empty())
        job.error = diagnostic.str();
      return success();
    });
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    if (failed(generate(job, *module))) {
      if (job.error.empty())
        job.error = "kernel " + job.name + " cannot be generated";
      return;
    }
    if (job.isSurvey)
      return;
    if (Status status = emitDeviceCode(*module, processor, job.options.numerics, cache).moveTo(job.code);
        !status.isOk() && job.error.empty())
      job.error = status.getMessage();
  }

private:
  LogicalResult generate(Job &job, ModuleOp module) {
    if (job.text.empty()) {
      bool isDouble = job.name == KernelTable::guardName(true);
      Builder builder(&context);
      createGuard(module, job.name,
                  isDouble ? FloatType(builder.getF64Type()) : FloatType(builder.getF32Type()), processor);
      job.kernel.launches.push_back({job.name, 1, kWarp, 0});
      return success();
    }
    auto source = parseSourceString<ModuleOp>(job.text, &context);
    if (!source)
      return failure();
    auto kernel = generateKernel(module, *source->getOps<func::FuncOp>().begin(), processor, job.options);
    if (failed(kernel))
      return failure();
    job.kernel = std::move(*kernel);
    return success();
  }

  const Processor &processor;
  backends::KernelCache *const cache;
  MLIRContext context;
};

Job makeJob(func::FuncOp function, const backends::CodeOptions &options) {
  Job job;
  job.name = function.getSymName().str();
  job.text = backends::printKernel(function);
  job.options.numerics = options.numerics;
  job.options.usesTf32 = options.usesTf32;
  return job;
}

/// Runs all jobs; fails with the first error.
Status runJobs(std::vector<Job> &jobs, const Processor &processor, const backends::CodeOptions &options) {
  backends::runJobs(jobs.size(), options.threads, [&]() -> std::function<void(size_t)> {
    return
        [&, worker = std::make_shared<Worker>(processor, options.cache)](size_t i) { worker->run(jobs[i]); };
  });
  for (const Job &job : jobs)
    if (!job.error.empty())
      return Status::failure(job.error);
  return {};
}

/// Kernels that some step lets write persistent memory.
llvm::StringSet<> findGated(ModuleOp module) {
  llvm::StringSet<> gated;
  module.walk([&](plan::StepOp step) {
    for (Value output : step.getOutputs())
      if (output.getDefiningOp<plan::BufferOp>().getRegion() == plan::Region::persistent)
        gated.insert(step.getKernel());
  });
  return gated;
}

/// What the starts of a buffer are multiples of, in all iterations of the loops around it.
int64_t alignmentOf(plan::BufferOp buffer) {
  int64_t alignment = kBufferAlignment;
  for (int64_t stride : buffer.getStrides().value_or(ArrayRef<int64_t>()))
    alignment = std::gcd(alignment, stride);
  return alignment;
}

/// The least of all calls, for the buffers of each kernel.
llvm::StringMap<SmallVector<int64_t>> findAlignments(ModuleOp module) {
  llvm::StringMap<SmallVector<int64_t>> all;
  module.walk([&](plan::StepOp step) {
    SmallVector<int64_t> &alignments = all[step.getKernel()];
    SmallVector<Value> buffers(step.getInputs());
    llvm::append_range(buffers, step.getOutputs());
    alignments.resize(buffers.size(), kBufferAlignment);
    for (auto [alignment, buffer] : llvm::zip_equal(alignments, buffers))
      alignment = std::min(alignment, alignmentOf(buffer.getDefiningOp<plan::BufferOp>()));
  });
  return all;
}

} // namespace

double estimateSeconds(const kernels::KernelWork &work, bool isDouble, const Processor &processor) {
  double flops = static_cast<double>(work.flops);
  double bytes = static_cast<double>(work.bytesRead + work.bytesWritten);
  return kLaunchSeconds +
         std::max(flops / (isDouble ? processor.doubleRate : processor.flopRate), bytes / processor.byteRate);
}

double estimateSeconds(const GpuKernel &kernel, const kernels::KernelWork &work, bool isDouble,
                       const Processor &processor) {
  using Gpu = kernels::ReferenceGpu;
  // Others are so much faster or slower as their data sheets say.
  static const Processor &reference = *findProcessor("sm_90");
  double speed = Gpu::kClock * processor.flopRate / reference.flopRate;
  double byteRate = Gpu::kBytesPerCycle * Gpu::kClock * processor.byteRate / reference.byteRate;
  double bytes = static_cast<double>(work.bytesRead + work.bytesWritten);
  if (kernel.cycles > 0)
    return std::max(kernel.cycles / speed, bytes / byteRate + kLaunchSeconds);
  double flops = static_cast<double>(work.flops) / (isDouble ? processor.doubleRate : processor.flopRate);
  double threads = 0;
  for (const Launch &launch : kernel.launches)
    threads = std::max(threads, static_cast<double>(launch.blocks * launch.threads));
  threads = std::clamp<double>(threads, 1, Gpu::kProcessors * Gpu::kThreads);
  double waits = std::ceil(bytes / (threads * Gpu::kBytesOnTheWay)) * Gpu::kLoadLatency / speed;
  return static_cast<double>(kernel.launches.size()) * kLaunchSeconds +
         std::max({flops, bytes / byteRate, waits});
}

Status annotateKernels(ModuleOp module, const Processor &processor, const backends::CodeOptions &options) {
  std::vector<func::FuncOp> functions = backends::listKernels(module);
  std::vector<Job> jobs;
  for (func::FuncOp function : functions) {
    jobs.push_back(makeJob(function, options));
    jobs.back().isSurvey = true;
  }
  ORTC_TRY(runJobs(jobs, processor, options));
  for (auto [function, job] : llvm::zip_equal(functions, jobs)) {
    double seconds =
        estimateSeconds(job.kernel, kernels::workOf(function), backends::usesDoubles(function), processor);
    backends::annotateKernel(function, seconds, job.kernel.scratchBytes);
  }
  return {};
}

/// A job for each kernel, then one for each guard that there is.
static std::vector<Job> makeJobs(ModuleOp module, const SymbolTable &symbols,
                                 const kernels::ProgramKernels &kernels,
                                 const backends::CodeOptions &options) {
  llvm::StringSet<> gated = findGated(module);
  llvm::StringMap<SmallVector<int64_t>> alignments = findAlignments(module);
  std::vector<Job> jobs;
  for (const std::string &name : kernels.names) {
    auto function = symbols.lookup<func::FuncOp>(name);
    Job &job = jobs.emplace_back(makeJob(function, options));
    job.options.isGated = gated.contains(name);
    job.options.alignments = alignments.lookup(name);
    for (auto check : function.getOps<nn::CheckIndexOp>())
      job.options.checkName = static_cast<uint32_t>(llvm::find(kernels.checkNames, check.getTensor().str()) -
                                                    kernels.checkNames.begin());
  }
  bool guards[2] = {};
  module.walk([&](plan::GuardOp guard) {
    guards[cast<MemRefType>(guard.getLoss().getType()).getElementType().isF64()] = true;
  });
  for (bool isDouble : {false, true})
    if (guards[isDouble])
      jobs.emplace_back().name = KernelTable::guardName(isDouble);
  return jobs;
}

static backends::KernelInfo describe(const Job &job) {
  backends::KernelInfo info;
  info.name = job.name;
  info.chunks = 0;
  for (const Launch &launch : job.kernel.launches)
    info.chunks += launch.blocks;
  for (const Launch &launch : job.kernel.launches)
    if (launch.steps)
      info.steps[launch.symbol] = launch.steps;
  return info;
}

/// What drivers take: blocks of a launch as a signed number of 32 bits, and AMD's so many threads in all.
static Status checkLaunches(const Job &job, const Processor &processor) {
  for (const Launch &launch : job.kernel.launches) {
    int64_t most = std::numeric_limits<int32_t>::max();
    if (!processor.isNvidia())
      most = std::min(most, std::numeric_limits<uint32_t>::max() / launch.threads);
    if (launch.blocks > most)
      return Status::refusal("kernel " + job.name + " would be " + std::to_string(launch.blocks) +
                             " blocks of " + std::to_string(launch.threads) +
                             " threads, and a launch has at most " + std::to_string(most) +
                             " such blocks; make the batch smaller");
  }
  return {};
}

/// Adds the functions of a kernel. `arguments`: of each; `trace`: its number in the artifact, or ORTC_NONE.
static void addKernel(KernelTable &table, Job &job, uint32_t arguments, uint32_t trace) {
  for (const Launch &launch : job.kernel.launches) {
    table.numbers[launch.symbol] = static_cast<uint32_t>(table.rows.size());
    table.rows.push_back({0, static_cast<uint32_t>(launch.threads), static_cast<uint32_t>(launch.sharedBytes),
                          arguments, trace, 0});
  }
  table.kernels[job.name] = std::move(job.kernel);
}

static Expected<std::vector<SectionEntry>> makeEntries(ModuleOp module, const KernelTable &table) {
  std::vector<SectionEntry> entries;
  for (auto program : module.getOps<plan::ProgramOp>()) {
    Expected<LaunchList> list = makeLaunchList(program, table);
    if (!list)
      return list.getStatus();
    ortc_blob_entry head{static_cast<uint32_t>(artifact::findEntryRole(program.getRole())),
                         static_cast<uint32_t>(program.getBinding()), 0, 0};
    entries.push_back({head, std::move(*list)});
  }
  return entries;
}

Expected<backends::TargetCode> compilePrograms(ModuleOp module, const kernels::ProgramKernels &kernels,
                                               const Processor &processor,
                                               const backends::CodeOptions &options) {
  SymbolTable symbols(module);
  std::vector<Job> jobs = makeJobs(module, symbols, kernels, options);
  ORTC_TRY(runJobs(jobs, processor, options));

  backends::TargetCode code;
  KernelTable table;
  std::vector<std::string> pieces;
  for (auto [i, job] : llvm::enumerate(jobs)) {
    ORTC_TRY(checkLaunches(job, processor));
    pieces.push_back(std::move(job.code));
    auto function = symbols.lookup<func::FuncOp>(job.name);
    if (!function) { // a guard takes the loss and the status
      addKernel(table, job, 2, ORTC_NONE);
      continue;
    }
    if (job.kernel.scratchBytes > plan::scratchOf(function))
      return Status::failure("kernel " + job.name +
                             " needs more scratch than the plan has; please report this with the model");
    code.kernels.push_back(describe(job));
    code.kernels.back().seconds =
        estimateSeconds(job.kernel, kernels::workOf(function), backends::usesDoubles(function), processor);
    uint32_t arguments =
        function.getNumArguments() + function.getNumResults() + (job.kernel.scratchBytes > 0) + 1;
    addKernel(table, job, arguments, static_cast<uint32_t>(kernels.first + i));
  }
  Expected<std::vector<uint8_t>> image = linkDeviceCode(pieces, processor, options.cache);
  if (!image)
    return image.getStatus();
  Expected<std::vector<SectionEntry>> entries = makeEntries(module, table);
  if (!entries)
    return entries.getStatus();
  std::vector<SectionImage> images;
  images.push_back(
      {processor.isNvidia() ? ORTC_IMAGE_PTX : ORTC_IMAGE_HSACO, processor.number, std::move(*image)});
  if (processor.isNvidia() && !options.assembler.empty()) {
    Expected<std::vector<uint8_t>> cubin = assembleCubin(images.front().bytes, processor, options.assembler);
    if (!cubin)
      return cubin.getStatus();
    images.push_back({ORTC_IMAGE_CUBIN, processor.number, std::move(*cubin)});
  }
  code.section = {processor.name.str(), processor.architecture, uint64_t(1) << processor.feature,
                  writeSection(*entries, table, images)};
  return code;
}

} // namespace ortc::gpu
