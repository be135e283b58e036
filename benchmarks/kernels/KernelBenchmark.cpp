// One benchmark per kernel: compile on first use, run all chunks on one thread, keep the best time. Libraries take
// turns with it, since the clock of a core moves.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/KernelBenchmark.h"

#include "compiler/backends/cpu/object/BlobLoader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/MLIRContext.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <sys/mman.h>

using namespace ortc::cpu;

namespace ortc::benchmarks {
namespace {

/// In huge pages, as large sessions are.
struct Memory {
  static constexpr size_t kPage = 2 << 20;
  explicit Memory(size_t bytes) : data(std::aligned_alloc(kPage, (bytes / kPage + 1) * kPage)) {
    madvise(data, (bytes / kPage + 1) * kPage, MADV_HUGEPAGE);
  }
  Memory(Memory &&other) : data(std::exchange(other.data, nullptr)) {}
  ~Memory() { std::free(data); }
  void *data;
};

/// Numbers in [-1, 1], or zeros for integers wider than a byte.
Memory makeBuffer(mlir::MemRefType type) {
  size_t elements = type.getNumElements(), bytes = type.getElementTypeBitWidth() / 8;
  Memory memory(elements * bytes);
  std::memset(memory.data, 0, elements * bytes);
  std::minstd_rand random(1);
  auto number = [&] { return double(random()) / double(random.max()) * 2 - 1; };
  for (size_t i = 0; i < elements; ++i) {
    if (type.getElementType().isF32())
      static_cast<float *>(memory.data)[i] = float(number());
    else if (type.getElementType().isF64())
      static_cast<double *>(memory.data)[i] = number();
    else if (bytes == 1)
      static_cast<char *>(memory.data)[i] = random() % 2;
  }
  return memory;
}

struct Compiled {
  KernelInfo info;
  kernels::KernelWork work;
  std::vector<Memory> memory;
  std::vector<void *> arguments;
  std::optional<LoadedBlob> blob;
  std::vector<size_t> elements;
  double compileSeconds = 0;
};

Compiled compile(const KernelCase &kernel) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                      mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::memref::MemRefDialect,
                      mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  mlir::OpBuilder builder(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(builder.getUnknownLoc());
  Compiled result;
  double start = threadSeconds();
  EmittedKernel emitted = kernel.emit(builder, *module, benchmarkTarget());
  result.info = std::move(emitted.info);
  result.work = emitted.work;
  auto function = module->lookupSymbol<mlir::func::FuncOp>(result.info.name);
  for (mlir::Type type : function.getArgumentTypes().drop_back()) {
    auto buffer = mlir::cast<mlir::MemRefType>(type);
    result.memory.push_back(makeBuffer(buffer));
    result.elements.push_back(buffer.getNumElements());
  }
  for (Memory &memory : result.memory)
    result.arguments.push_back(memory.data);
  for (auto [written, read] : kernel.inPlace)
    result.arguments[written] = result.arguments[read];
  if (kernel.fill)
    kernel.fill(result.arguments);
  llvm::Expected<CodeBlob> blob = compileModule(*module, benchmarkTarget());
  if (!blob) {
    llvm::errs() << llvm::toString(blob.takeError()) << "\n";
    std::exit(1);
  }
  result.blob.emplace(llvm::cantFail(LoadedBlob::load(std::move(*blob))));
  result.compileSeconds = threadSeconds() - start;
  return result;
}

/// Something that is timed in turns with others.
struct Contender {
  std::string name;
  std::function<void()> run;
  int64_t repeats = 1; ///< at a time: reading the clock costs up to a microsecond
  double best = 1e9, spent = 0;
  int rounds = 0;

  void prepare() {
    double start = threadSeconds();
    run();
    double once = std::max(threadSeconds() - start, 5e-8);
    repeats = std::max<int64_t>(1, static_cast<int64_t>(2e-5 / once));
  }
  void measure() {
    double start = threadSeconds();
    for (int64_t i = 0; i < repeats; ++i)
      run();
    double time = threadSeconds() - start;
    if (time <= 0) // seen on a virtual machine, once in thousands
      return;
    best = std::min(best, time / double(repeats));
    spent += time;
    ++rounds;
  }
};

/// All in turns, until each had its share of the time, and the machine's peak in between. Returns the peak.
double measureInTurns(std::vector<Contender> &contenders, Limit limit) {
  constexpr double kSeconds = 0.15, kBetweenPeaks = 0.05;
  constexpr int kLeastRounds = 3;
  int lanes = int(benchmarkTarget().lanes(32));
  double peak = measureRate(limit, lanes), sincePeak = 0;
  auto wantsMore = [](const Contender &c) { return c.rounds < kLeastRounds || c.spent < kSeconds; };
  while (llvm::any_of(contenders, wantsMore))
    for (Contender &contender : contenders) {
      if (!wantsMore(contender))
        continue;
      double before = contender.spent;
      contender.measure();
      sincePeak += contender.spent - before;
      if (limit == Limit::Arithmetic && sincePeak > kBetweenPeaks) {
        peak = std::max(peak, measureRate(limit, lanes));
        sincePeak = 0;
      }
    }
  return std::max(peak, measureRate(limit, lanes));
}

/// A library that computes something else is compared with nothing.
bool agree(const float *ours, const std::vector<float> &theirs) {
  float largest = 0, distance = 0;
  for (size_t i = 0; i < theirs.size(); ++i) {
    largest = std::max(largest, std::abs(theirs[i]));
    distance = std::max(distance, std::abs(ours[i] - theirs[i]));
  }
  return distance <= 1e-3f * largest; // false for NaN
}

std::vector<KernelResult> &mutableResults() {
  static std::vector<KernelResult> results;
  return results;
}

void runKernel(benchmark::State &state, const KernelCase &kernel) {
  Compiled compiled = compile(kernel);
  ortc_task_fn entry = compiled.blob->kernel(compiled.info.name);
  std::vector<Contender> contenders;
  contenders.push_back({"", [&] {
                          for (int64_t chunk = 0; chunk < compiled.info.chunks; ++chunk)
                            entry(compiled.arguments.data(), chunk, 0);
                        }});
  contenders[0].prepare();
  std::vector<std::unique_ptr<LibraryRun>> runs;
  for (const LibraryCase &library : kernel.libraries) {
    std::unique_ptr<LibraryRun> run = library.prepare(compiled.arguments);
    if (!run)
      continue;
    contenders.push_back({library.column, [work = run.get()] { work->run(); }});
    contenders.back().prepare();
    if (!agree(static_cast<float *>(compiled.arguments[kernel.result]), run->result()))
      return state.SkipWithError((std::string(library.column) + " computes something else").c_str());
    runs.push_back(std::move(run));
  }
  double peak = 0;
  for (auto _ : state) {
    peak = measureInTurns(contenders, kernel.limit);
    state.SetIterationTime(contenders[0].best);
  }
  bool isArithmetic = kernel.limit == Limit::Arithmetic;
  auto rateOf = [&](const Contender &contender) {
    double work = isArithmetic ? double(compiled.work.flops)
                               : double(compiled.work.bytesRead + compiled.work.bytesWritten);
    return work / contender.best * 1e-9;
  };
  KernelResult result{kernel.name, kernel.group, kernel.limit, rateOf(contenders[0]), peak, kernel.liveLanes,
                      {}};
  state.counters[isArithmetic ? "GF" : "GB"] = result.rate;
  state.counters[isArithmetic                   ? "of_peak"
                 : kernel.limit == Limit::Triad ? "of_triad"
                                                : "of_copy"] = peak > 0 ? result.rate / peak : 0;
  for (const Contender &library : llvm::drop_begin(contenders)) {
    result.libraries[library.name] = rateOf(library);
    state.counters[library.name] = rateOf(library);
  }
  state.counters["chunks"] = double(compiled.info.chunks);
  state.counters["code_bytes"] = double(compiled.blob->blob().bytes.size());
  state.counters["compile_ms"] = compiled.compileSeconds * 1e3;
  mutableResults().push_back(std::move(result));
}

Target &mutableTarget() {
  static Target target = *findTarget("native");
  return target;
}

} // namespace

double KernelResult::bestLibrary() const {
  double best = 0;
  for (const auto &[name, rate] : libraries)
    best = std::max(best, rate);
  return best;
}

const std::vector<KernelResult> &kernelResults() { return mutableResults(); }

const Target &benchmarkTarget() { return mutableTarget(); }

void setBenchmarkTarget(const std::string &name) {
  std::optional<Target> target = findTarget(name);
  if (!target || !canRunHere(*target)) {
    llvm::errs() << "target '" << name << "' is unknown or does not run on this machine\n";
    std::exit(2);
  }
  mutableTarget() = *target;
}

void addKernel(KernelCase kernel) {
  std::string name = kernel.name;
  auto run = [kernel = std::move(kernel)](benchmark::State &state) { runKernel(state, kernel); };
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(1);
}

} // namespace ortc::benchmarks
