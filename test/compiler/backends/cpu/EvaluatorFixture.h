// Compiles kernels of tensor programs given as text, runs them, and compares their results with the evaluator's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/ElementEmitter.h"
#include "test/compiler/backends/EvaluatedProgram.h"
#include "test/compiler/backends/cpu/KernelFixture.h"

#include <functional>
#include <map>
#include <numeric>

namespace ortc::cpu::test {

using backends::test::EvaluatedProgram;
using Sizes = std::vector<int64_t>;

/// Like "[1, 2]", as attributes are written.
inline std::string list(const Sizes &sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

/// Makes the kernel of function @k in `module`.
using Generate = std::function<mlir::FailureOr<KernelInfo>(mlir::ModuleOp module, mlir::func::FuncOp function,
                                                           llvm::ArrayRef<emit::KernelBuffer> buffers,
                                                           const Target &target, Numerics numerics)>;

/// The kernel of an evaluated program, compiled when it runs first.
class EvaluatedKernel {
public:
  /// Results lie where the arguments of `pairs`, argument and result in turns, do.
  EvaluatedKernel(llvm::StringRef text, const Generate &generate, const Target &target, Numerics numerics,
                  llvm::ArrayRef<int64_t> pairs = {})
      : target(target), pairs(pairs), program(m.context, text) {
    mlir::func::FuncOp function = program.function;
    llvm::SmallVector<emit::KernelBuffer> buffers;
    auto add = [&](mlir::Type type, bool written) {
      auto tensor = mlir::cast<mlir::RankedTensorType>(type);
      buffers.push_back({emit::bufferType(tensor.getElementType()), tensor.getNumElements(), written, true});
    };
    for (mlir::Type type : function.getArgumentTypes())
      add(type, false);
    for (mlir::Type type : function.getResultTypes())
      add(type, true);
    for (size_t i = 0; i < pairs.size(); i += 2)
      buffers[pairs[i]].distinct = buffers[function.getNumArguments() + pairs[i + 1]].distinct = false;
    auto result = generate(*m.module, function, buffers, target, numerics);
    if (failed(result)) {
      ADD_FAILURE() << "no kernel: " << text.str();
      std::abort();
    }
    info = *result;
  }

  /// The generated code, until the kernel runs.
  std::string code() const { return m.print(); }

  /// Runs all chunks, last one first, with stale workspaces, and returns the bytes of all outputs.
  std::vector<char> run() {
    if (!blob)
      blob.emplace(m.load(target));
    std::vector<AlignedArray<char>> memory;
    for (const evaluator::HostTensor &input : program.inputs) {
      std::vector<char> bytes = EvaluatedProgram::bytesOf(input);
      memory.emplace_back(bytes.size());
      std::copy(bytes.begin(), bytes.end(), memory.back().begin());
    }
    mlir::TypeRange results = program.function.getResultTypes();
    for (mlir::Type type : results) {
      memory.emplace_back(EvaluatedProgram::sizeOf(type) + kGuard);
      std::memset(memory.back().begin(), 0x5a, memory.back().size);
    }
    AlignedArray<char> workspace(info.workspaceBytesPerWorker + 64);
    std::memset(workspace.begin(), 0x7f, workspace.size);
    std::vector<void *> args;
    for (auto &array : memory)
      args.push_back(array.begin());
    size_t inputs = program.inputs.size();
    for (size_t i = 0; i < pairs.size(); i += 2)
      args[inputs + pairs[i + 1]] = args[pairs[i]];
    args.push_back(workspace.begin());
    for (int64_t chunk = info.chunks; chunk-- > 0;)
      blob->kernel(info.name)(args.data(), chunk, 0);
    std::vector<char> outputs;
    for (auto [number, type] : llvm::enumerate(results)) {
      auto *from = static_cast<char *>(args[inputs + number]);
      size_t bytes = EvaluatedProgram::sizeOf(type);
      outputs.insert(outputs.end(), from, from + bytes);
      auto &array = memory[inputs + number];
      for (size_t i = 0; i < kGuard; ++i)
        EXPECT_EQ(array[bytes + i], 0x5a) << "wrote beyond the end of an output: " << program.text;
    }
    return outputs;
  }

  mlir::FailureOr<llvm::SmallVector<evaluator::HostTensor>> evaluate() { return program.evaluate(); }
  void compare(const std::vector<char> &outputs, llvm::ArrayRef<evaluator::HostTensor> want,
               double tolerance) const {
    program.compare(outputs, want, tolerance, target.name);
  }

  KernelInfo info;

private:
  static constexpr size_t kGuard = 64;

  Target target;
  llvm::SmallVector<int64_t> pairs;
  KernelModule m;
  EvaluatedProgram program;
  std::optional<LoadedBlob> blob;
};

enum class Coverage {
  Widest,  ///< the last target of this machine
  Targets, ///< the last one and one of the others, which depends on the program: equal bits on those with fma
  All,     ///< all targets of this machine, portable numerics, too: equal bits on all
};

/// A choice in [0, count) that depends on the program.
inline size_t turnOf(llvm::StringRef text, size_t count) {
  return std::accumulate(text.begin(), text.end(), size_t(0)) % count;
}

/// The targets of this machine that `text` is compiled for.
inline std::vector<Target> targetsFor(llvm::StringRef text, Coverage coverage) {
  std::vector<Target> targets = runnableTargets();
  if (coverage == Coverage::All)
    return targets;
  std::vector<Target> chosen{targets.back()};
  targets.pop_back();
  if (coverage == Coverage::Targets && !targets.empty())
    chosen.push_back(targets[turnOf(text, targets.size())]);
  return chosen;
}

/// Runs the program on targets of this machine and compares every result with the evaluator's, and the bits of all.
/// `pairs`: of EvaluatedKernel.
inline void compareWithEvaluator(llvm::StringRef text, const Generate &generate, double tolerance,
                                 Coverage coverage = Coverage::All, llvm::ArrayRef<int64_t> pairs = {}) {
  // Results belong to the context of the kernel that they were evaluated for.
  std::unique_ptr<EvaluatedKernel> evaluated;
  llvm::SmallVector<evaluator::HostTensor> want;
  std::map<std::string, std::pair<std::string, std::vector<char>>> fast; // per target: code and outputs
  for (Numerics numerics : {Numerics::Fast, Numerics::Portable}) {
    std::vector<char> first;
    for (const Target &target : targetsFor(text, coverage)) {
      auto kernel = std::make_unique<EvaluatedKernel>(text, generate, target, numerics, pairs);
      std::string code = coverage == Coverage::All ? kernel->code() : std::string();
      std::vector<char> outputs;
      if (numerics == Numerics::Portable && fast[target.name].first == code) {
        outputs = fast[target.name].second; // the same kernel: nothing is multiplied and added in one
      } else {
        outputs = kernel->run();
        if (!evaluated) {
          auto results = kernel->evaluate();
          ASSERT_TRUE(succeeded(results)) << text.str();
          want = std::move(*results);
        }
        kernel->compare(outputs, want, tolerance);
        if (::testing::Test::HasFatalFailure())
          return;
        if (numerics == Numerics::Fast)
          fast[target.name] = {code, outputs};
      }
      if (!evaluated)
        evaluated = std::move(kernel);
      if (numerics == Numerics::Fast && !target.has(Instruction::FusedMultiplyAdd))
        continue;
      if (first.empty())
        first = outputs;
      EXPECT_TRUE(first == outputs) << "other bits on " << target.name << ": " << text.str();
    }
    if (coverage != Coverage::All)
      return;
  }
}

} // namespace ortc::cpu::test
