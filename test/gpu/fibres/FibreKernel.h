// A kernel that is generated for an AMD GPU, with its lanes as fibres.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelGenerator.h"
#include "test/compiler/backends/EvaluatedProgram.h"
#include "test/gpu/fibres/Fibres.h"
#include "test/gpu/fibres/HostCode.h"

#include <memory>
#include <string>
#include <vector>

namespace ortc::fibres {

/// The kernel of function @k of a program, which a form of this kind makes. Its results lie where `plan.in_place` says.
class FibreKernel {
public:
  FibreKernel(llvm::StringRef text, plan::KernelKind kind, llvm::StringRef processor, Numerics numerics);

  /// Runs all launches, with NaN in scratch and outputs, and returns the bytes of all outputs. What goes wrong is a
  /// failure of the test.
  std::vector<char> run(Order order);
  /// The same, where what goes wrong is a `failure`, "" without one.
  std::vector<char> run(Order order, std::string &failure);

  /// What can be put into its code.
  std::vector<Fault> listFaults() const;
  /// Puts a fault into the code as it was generated.
  void breakCode(const Fault &fault);

  /// Whether some launch has instructions for products of matrices.
  bool multipliesMatrices() const { return code.multipliesMatrices(); }

  const gpu::Processor &getProcessor() const { return processor; }

private:
  const gpu::Processor &processor;
  std::unique_ptr<mlir::MLIRContext> context;

public:
  backends::test::EvaluatedProgram program;

private:
  gpu::GpuKernel kernel;
  std::string bitcode;
  HostCode code;
};

/// Runs the program for wavefronts of 64 and 32 lanes, fast and portable, in all orders: every result is the
/// evaluator's, and all have the same bits where numerics are the same.
void check(const std::string &text, plan::KernelKind kind, double tolerance);

/// A processor, and how far its results may be from the evaluator's.
struct Wanted {
  llvm::StringRef processor;
  double tolerance;
};
/// Runs a program that is for matrix cores with fast numerics, in all orders, which give the same bits.
void checkProducts(const std::string &text, plan::KernelKind kind, const std::vector<Wanted> &wanted);
/// Every fault that can be put into the kernel, which multiplies matrices, is noticed: some order of lanes gives other
/// bits, or a run reports it. There must be some of each of `kinds`. Prints how many there are.
void checkFaults(FibreKernel &kernel, const std::vector<Fault::Kind> &kinds);

} // namespace ortc::fibres
