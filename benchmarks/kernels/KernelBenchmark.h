// Compiles a generated kernel and times it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_BENCHMARKS_KERNELS_KERNELBENCHMARK_H
#define ORTC_BENCHMARKS_KERNELS_KERNELBENCHMARK_H

#include "compiler/codegen/KernelFunction.h"
#include "compiler/codegen/Target.h"

#include <functional>
#include <string>

namespace ortc::benchmarks {

/// What limits a kernel, and so what its speed is compared with.
enum class Limit { Arithmetic, Memory };

/// Emits one kernel into the module and tells its figures.
using EmitKernel =
    std::function<codegen::KernelInfo(mlir::OpBuilder &, mlir::ModuleOp, const codegen::Target &)>;

/// Adds a benchmark. Buffers are taken from the emitted function: f32, f64 and i8 are random, integers are zero.
/// Counters: GF (best of all runs), of_peak (share of the FMA peak measured beside it), GB (bytes of KernelInfo per
/// second of the best run), of_copy, code_bytes, compile_ms.
void addKernel(const std::string &name, Limit limit, EmitKernel emit);

/// GFLOP/s of arithmetic on the target's vectors, or GB/s of copies that no cache holds: of one core, now.
double measurePeak(Limit limit);

/// The families; Main.cpp calls them all. A new source adds its own here and there.
void registerContractions();
void registerConvolutions();
void registerLoops();

/// The target of --target=NAME, "native" without.
const codegen::Target &benchmarkTarget();
void setBenchmarkTarget(const std::string &name);

} // namespace ortc::benchmarks

#endif // ORTC_BENCHMARKS_KERNELS_KERNELBENCHMARK_H
