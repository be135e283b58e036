// One benchmark per kernel: compile on first use, run all chunks on one thread, keep the best time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/KernelBenchmark.h"

#include "compiler/codegen/backend/BlobLoader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/host/machine.h"

#include <benchmark/benchmark.h>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <random>
#include <sys/mman.h>

using namespace ortc::codegen;

namespace ortc::benchmarks {
namespace {

/// Time of this thread on a CPU: what other programs take away meanwhile does not count.
double threadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

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
  std::vector<Memory> memory;
  std::vector<void *> arguments;
  std::optional<LoadedBlob> blob;
  double compileSeconds = 0;
};

Compiled compile(const EmitKernel &emit) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                      mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::memref::MemRefDialect,
                      mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  mlir::OpBuilder builder(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(builder.getUnknownLoc());
  Compiled result;
  double start = threadSeconds();
  result.info = emit(builder, *module, benchmarkTarget());
  auto function = module->lookupSymbol<mlir::func::FuncOp>(result.info.name);
  for (mlir::Type type : function.getArgumentTypes().drop_back())
    result.memory.push_back(makeBuffer(mlir::cast<mlir::MemRefType>(type)));
  for (Memory &memory : result.memory)
    result.arguments.push_back(memory.data);
  llvm::Expected<CodeBlob> blob = compileModule(*module, benchmarkTarget());
  if (!blob) {
    llvm::errs() << llvm::toString(blob.takeError()) << "\n";
    std::exit(1);
  }
  result.blob.emplace(llvm::cantFail(LoadedBlob::load(std::move(*blob))));
  result.compileSeconds = threadSeconds() - start;
  return result;
}

void runKernel(benchmark::State &state, const EmitKernel &emit, Limit limit) {
  Compiled compiled = compile(emit);
  ortc_task_fn kernel = compiled.blob->kernel(compiled.info.name);
  auto once = [&] {
    for (int64_t chunk = 0; chunk < compiled.info.chunks; ++chunk)
      kernel(compiled.arguments.data(), chunk, 0);
  };
  // Measure at least 20 microseconds at a time: reading the clock costs up to one.
  double start = threadSeconds();
  once();
  int64_t repeats =
      std::max<int64_t>(1, static_cast<int64_t>(2e-5 / std::max(threadSeconds() - start, 5e-8)));
  double peak = measurePeak(limit);
  double best = 1e9;
  for (auto _ : state) {
    start = threadSeconds();
    for (int64_t i = 0; i < repeats; ++i)
      once();
    double time = (threadSeconds() - start) / double(repeats);
    best = std::min(best, time);
    state.SetIterationTime(time);
  }
  // The clock of a core moves: the peak is the better of two, before and after.
  peak = std::max(peak, measurePeak(limit));
  double gigaflops = compiled.info.flops / best * 1e-9;
  double gigabytes = (compiled.info.bytesRead + compiled.info.bytesWritten) / best * 1e-9;
  if (limit == Limit::Arithmetic) {
    state.counters["GF"] = gigaflops;
    state.counters["of_peak"] = peak > 0 ? gigaflops / peak : 0;
  } else {
    state.counters["GB"] = gigabytes;
    state.counters["of_copy"] = gigabytes / peak;
  }
  state.counters["best_us"] = best * 1e6;
  state.counters["chunks"] = double(compiled.info.chunks);
  state.counters["code_bytes"] = double(compiled.blob->blob().bytes.size());
  state.counters["compile_ms"] = compiled.compileSeconds * 1e3;
}

Target &mutableTarget() {
  static Target target = *findTarget("native");
  return target;
}

} // namespace

const Target &benchmarkTarget() { return mutableTarget(); }

double measurePeak(Limit limit) {
  constexpr size_t kBytes = size_t(512) << 20;
  static std::optional<host::CopyTimer> timer; // its memory is touched once
  if (limit == Limit::Arithmetic)
    return host::measureFlopRate(int(benchmarkTarget().vectorLanes)) * 1e-9;
  if (!timer)
    timer.emplace(kBytes);
  return timer->measure(kBytes) * 1e-9;
}

void setBenchmarkTarget(const std::string &name) {
  std::optional<Target> target = findTarget(name);
  if (!target || !canRunHere(*target)) {
    llvm::errs() << "target '" << name << "' is unknown or does not run on this machine\n";
    std::exit(2);
  }
  mutableTarget() = *target;
}

void addKernel(const std::string &name, Limit limit, EmitKernel emit) {
  auto run = [emit = std::move(emit), limit](benchmark::State &state) { runKernel(state, emit, limit); };
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->MinTime(0.3);
}

} // namespace ortc::benchmarks
