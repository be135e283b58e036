// Compiles a generated kernel and times it, beside the libraries that do the same.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "benchmarks/kernels/Libraries.h"
#include "benchmarks/kernels/MachineRates.h"
#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/Target.h"
#include "compiler/kernels/KernelWork.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ortc::benchmarks {

/// The figures of a kernel, and what a call of it does.
struct EmittedKernel {
  cpu::KernelInfo info;
  kernels::KernelWork work;
};
/// Emits one kernel into the module.
using EmitKernel = std::function<EmittedKernel(mlir::OpBuilder &, mlir::ModuleOp, const cpu::Target &)>;

struct KernelCase {
  std::string name;
  std::string group; ///< of the summary
  Limit limit = Limit::Arithmetic;
  EmitKernel emit;
  /// Buffers are taken from the emitted function: f32, f64 and i8 are random, integers are zero. These share memory:
  /// a written argument and the one in whose place it is.
  std::vector<std::pair<unsigned, unsigned>> inPlace;
  /// Changes what the arguments hold at first, where random numbers in [-1, 1] will not do.
  std::function<void(const std::vector<void *> &)> fill;
  std::vector<LibraryCase> libraries;
  unsigned result = 0; ///< argument that libraries compute too
  /// Share of the lanes that can do something: below 1 where rows do not fill the last of their vectors.
  double liveLanes = 1;
};

/// What was measured.
struct KernelResult {
  std::string name, group;
  Limit limit;
  double rate = 0; ///< GFLOP/s, or GB/s of the bytes in KernelWork: of the best run
  double peak = 0; ///< of the machine, beside it
  double liveLanes = 1;
  std::map<std::string, double> libraries; ///< column to rate
  double bestLibrary() const;              ///< 0: none
};

/// Adds a benchmark. Its time is that of the best run. Counters: GF, of_peak (share of the FMA peak measured
/// beside it), or GB and of_copy or of_triad; the rates of libraries; code_bytes, compile_ms.
void addKernel(KernelCase kernel);

/// The results of the benchmarks that have run, in order.
const std::vector<KernelResult> &kernelResults();

/// The families; Main.cpp calls them all. A new source adds its own here and there.
void registerContractions();
void registerConvolutions();
void registerLoops();

/// The target of --target=NAME, "native" without.
const cpu::Target &benchmarkTarget();
void setBenchmarkTarget(const std::string &name);

} // namespace ortc::benchmarks
