// All kernels of a module for one GPU, and the section of the artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A context of MLIR belongs to one thread while passes run, so every worker has its own and reads kernels as text.
#include "compiler/backends/gpu/program/ProgramCode.h"

#include "compiler/artifact/ArtifactReader.h"
#include "compiler/backends/gpu/CheckKernel.h"
#include "compiler/backends/gpu/KernelGenerator.h"
#include "compiler/backends/gpu/object/DeviceCode.h"
#include "compiler/backends/gpu/program/LaunchList.h"
#include "dialects/nn/NnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"

#include <atomic>
#include <system_error>
#include <thread>

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
  explicit Worker(const Processor &processor)
      : processor(processor), context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect, memref::MemRefDialect,
                        nn::NnDialect, plan::PlanDialect, scf::SCFDialect, vector::VectorDialect,
                        LLVM::LLVMDialect>();
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
    if (Status status = emitDeviceCode(*module, processor).moveTo(job.code);
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
      job.kernel.launches.push_back({job.name, 1, kWarp});
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
  MLIRContext context;
};

std::string printKernel(func::FuncOp function) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  function->print(stream, OpPrintingFlags().useLocalScope());
  return text;
}

/// Runs all jobs; fails with the first error.
Status runJobs(std::vector<Job> &jobs, const Processor &processor, unsigned threads) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    Worker worker(processor);
    for (size_t i = next++; i < jobs.size(); i = next++)
      worker.run(jobs[i]);
  };
  std::vector<std::thread> pool;
  try {
    for (unsigned i = 1; i < std::min<size_t>(threads, jobs.size()); ++i)
      pool.emplace_back(work);
  } catch (const std::system_error &) { // those that could be started do all the work
  }
  work();
  for (std::thread &thread : pool)
    thread.join();
  for (const Job &job : jobs)
    if (!job.error.empty())
      return Status::failure(job.error);
  return {};
}

bool usesDoubles(func::FuncOp function) {
  auto isDouble = [](Type type) { return cast<ShapedType>(type).getElementType().isF64(); };
  return llvm::any_of(function.getResultTypes(), isDouble);
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

} // namespace

double estimateSeconds(const kernels::KernelWork &work, bool isDouble, const Processor &processor) {
  constexpr double kLaunchSeconds = 3e-6;
  double flops = static_cast<double>(work.flops) * (isDouble ? 2 : 1);
  double bytes = static_cast<double>(work.bytesRead + work.bytesWritten);
  return kLaunchSeconds + std::max(flops / processor.flopRate, bytes / processor.byteRate);
}

Status annotateKernels(ModuleOp module, const Processor &processor, const backends::CodeOptions &options) {
  std::vector<func::FuncOp> functions;
  std::vector<Job> jobs;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(plan::kKind)) {
      functions.push_back(function);
      Job &job = jobs.emplace_back();
      job.name = function.getSymName().str();
      job.text = printKernel(function);
      job.options.numerics = options.numerics;
      job.isSurvey = true;
    }
  ORTC_TRY(runJobs(jobs, processor, options.threads));
  Builder builder(module.getContext());
  for (auto [function, job] : llvm::zip_equal(functions, jobs)) {
    double seconds = estimateSeconds(kernels::workOf(function), usesDoubles(function), processor);
    function->setAttr(plan::kTime, builder.getI64IntegerAttr(static_cast<int64_t>(seconds * 1e12)));
    int64_t bytes = std::max(job.kernel.scratchBytes, plan::scratchOf(function));
    function->setAttr(plan::kScratch, builder.getI64IntegerAttr(bytes));
  }
  return {};
}

Expected<backends::TargetCode> compilePrograms(ModuleOp module, const kernels::ProgramKernels &kernels,
                                               const Processor &processor,
                                               const backends::CodeOptions &options) {
  SymbolTable symbols(module);
  llvm::StringSet<> gated = findGated(module);
  std::vector<Job> jobs;
  for (const std::string &name : kernels.names) {
    auto function = symbols.lookup<func::FuncOp>(name);
    Job &job = jobs.emplace_back();
    job.name = name;
    job.text = printKernel(function);
    job.options.numerics = options.numerics;
    job.options.isGated = gated.contains(name);
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
  ORTC_TRY(runJobs(jobs, processor, options.threads));

  backends::TargetCode code;
  KernelTable table;
  std::vector<std::string> pieces;
  for (size_t i = 0; i < jobs.size(); ++i) {
    Job &job = jobs[i];
    bool isKernel = i < kernels.names.size();
    if (isKernel) {
      auto function = symbols.lookup<func::FuncOp>(job.name);
      if (job.kernel.scratchBytes > plan::scratchOf(function))
        return Status::failure("kernel " + job.name +
                               " needs more scratch than the plan has; please report this with the model");
      backends::KernelInfo &info = code.kernels.emplace_back();
      info.name = job.name;
      info.chunks = 0;
      for (const Launch &launch : job.kernel.launches)
        info.chunks += launch.blocks;
    }
    for (const Launch &launch : job.kernel.launches) {
      uint32_t arguments = 2; // of a guard
      if (isKernel) {
        auto function = symbols.lookup<func::FuncOp>(job.name);
        arguments = function.getNumArguments() + function.getNumResults() + (job.kernel.scratchBytes > 0) + 1;
      }
      table.numbers[launch.symbol] = static_cast<uint32_t>(table.rows.size());
      table.rows.push_back({0, static_cast<uint32_t>(launch.threads), 0, arguments,
                            isKernel ? static_cast<uint32_t>(kernels.first + i) : ORTC_NONE, 0});
    }
    pieces.push_back(std::move(job.code));
    table.kernels[job.name] = std::move(job.kernel);
  }
  Expected<std::vector<uint8_t>> image = linkDeviceCode(pieces, processor);
  if (!image)
    return image.getStatus();
  std::vector<SectionEntry> entries;
  for (auto program : module.getOps<plan::ProgramOp>()) {
    Expected<LaunchList> list = makeLaunchList(program, table);
    if (!list)
      return list.getStatus();
    ortc_blob_entry head{static_cast<uint32_t>(artifact::findEntryRole(program.getRole())),
                         static_cast<uint32_t>(program.getBinding()), 0, 0};
    entries.push_back({head, std::move(*list)});
  }
  std::vector<SectionImage> images;
  images.push_back(
      {processor.isNvidia() ? ORTC_IMAGE_PTX : ORTC_IMAGE_HSACO, processor.number, std::move(*image)});
  code.section = {processor.name.str(), processor.architecture, uint64_t(1) << processor.feature,
                  writeSection(entries, table, images)};
  return code;
}

} // namespace ortc::gpu
