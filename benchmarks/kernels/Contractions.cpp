// Matrix products of training steps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/KernelBenchmark.h"

#include "compiler/backends/cpu/contraction/Contraction.h"

using namespace ortc::cpu;

namespace ortc::benchmarks {
namespace {

/// The nineteen that kernels are judged by.
const Product kMainProducts[] = {
    // fully connected layers, forward
    {64, 784, 512, false, false, 1},
    {128, 768, 768, false, false, 1},
    {512, 768, 3072, false, false, 1},
    {512, 3072, 768, false, false, 1},
    {1024, 1024, 1024, false, false, 1},
    {2048, 2048, 2048, false, false, 1},
    {128, 50257, 768, false, false, 1},
    // gradients of the input
    {128, 50257, 768, false, true, 1},
    {512, 768, 3072, false, true, 1},
    // gradients of the weight
    {768, 3072, 512, true, false, 1},
    {3072, 768, 512, true, false, 1},
    {784, 512, 64, true, false, 1},
    {768, 50257, 128, true, false, 1},
    // attention
    {128, 128, 64, false, true, 96},
    {128, 64, 128, false, false, 96},
    {128, 64, 128, true, false, 96},
    // small
    {16, 16, 16, false, false, 1},
    {32, 10, 128, false, false, 1},
    {10, 128, 32, true, false, 1},
};

const Product kMoreProducts[] = {
    {512, 512, 512, false, false, 1},  {512, 512, 512, false, true, 1},   {512, 512, 512, true, false, 1},
    {1024, 256, 2048, true, false, 1}, {256, 1024, 2048, true, false, 1}, {768, 192, 1576, true, false, 1},
    {192, 768, 1576, true, false, 1},  {197, 197, 64, false, true, 24},   {197, 64, 197, false, false, 24},
    {197, 64, 197, true, false, 24},   {32, 128, 10, false, true, 1},     {1, 512, 512, false, false, 1},
    {1, 512, 512, false, true, 1},     {4, 1024, 1024, false, false, 1},  {4, 1024, 1024, false, true, 1},
    {512, 1, 512, false, false, 1},    {512, 1, 512, true, false, 1},     {100, 300, 257, false, false, 1},
    {33, 77, 129, false, false, 1},    {129, 513, 1025, false, false, 1}, {8, 512, 512, false, false, 1},
    {8, 512, 512, false, true, 1},
};

EmittedKernel emit(const Product &p, mlir::OpBuilder &builder, mlir::ModuleOp module, const Target &target) {
  ContractionSpec spec;
  spec.name = "product";
  mlir::Type f32 = builder.getF32Type();
  spec.accumulatorType = f32;
  spec.buffers = {{f32, p.batch * p.m * p.k, false, true},
                  {f32, p.batch * p.k * p.n, false, true},
                  {f32, p.batch * p.m * p.n, true, true}};
  spec.operands = {{0, 0}, {1, 0}, {2, 0}};
  spec.batch = {{p.batch, {p.m * p.k, p.k * p.n, p.m * p.n}}};
  spec.m = {{p.m, {p.transposeA ? 1 : p.k, 0, p.n}}};
  spec.n = {{p.n, {0, p.transposeB ? p.k : 1, 1}}};
  spec.k = {{p.k, {p.transposeA ? p.m : 1, p.transposeB ? 1 : p.n, 0}}};
  spec.partialOperand = 2;
  kernels::KernelWork work;
  work.flops = spec.flops();
  for (const KernelBuffer &buffer : spec.buffers)
    (buffer.written ? work.bytesWritten : work.bytesRead) += buffer.elements * int64_t(sizeof(float));
  return {*emitContraction(builder, module, spec, target), work};
}

/// Columns lie along the lanes; fewer than a vector has are left to other ways.
double liveLanesOf(const Product &p) {
  int64_t lanes = benchmarkTarget().lanes(32);
  return p.n < lanes ? 1 : double(p.n) / double((p.n + lanes - 1) / lanes * lanes);
}

void addProduct(const Product &p, const char *group) {
  std::string name = "contraction/";
  if (p.batch > 1)
    name += std::to_string(p.batch) + "x";
  name += std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) + "/" +
          (p.transposeA ? "T" : "N") + (p.transposeB ? "T" : "N");
  KernelCase kernel;
  kernel.name = name;
  kernel.group = group;
  kernel.emit = [p](mlir::OpBuilder &builder, mlir::ModuleOp module, const Target &target) {
    return emit(p, builder, module, target);
  };
  kernel.libraries = librariesFor(p);
  kernel.result = 2;
  kernel.liveLanes = liveLanesOf(p);
  addKernel(std::move(kernel));
}

} // namespace

void registerContractions() {
  for (const Product &p : kMainProducts)
    addProduct(p, "the 19 products");
  for (const Product &p : kMoreProducts)
    addProduct(p, "other products");
}

} // namespace ortc::benchmarks
