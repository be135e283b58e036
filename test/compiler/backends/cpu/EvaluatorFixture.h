// Compiles kernels of tensor programs given as text, runs them, and compares their results with the evaluator's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/compiler/backends/cpu/KernelFixture.h"

#include "compiler/evaluator/Evaluator.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>

namespace ortc::cpu::test {

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
                                                           llvm::ArrayRef<KernelBuffer> buffers,
                                                           const Target &target, Numerics numerics)>;

/// A program with function @k and, where its inputs are not just any numbers, @inputs that computes them from random
/// ones in [-1, 1].
class EvaluatedKernel {
public:
  /// Results lie where the arguments of `pairs`, argument and result in turns, do.
  EvaluatedKernel(llvm::StringRef text, const Generate &generate, const Target &target, Numerics numerics,
                  llvm::ArrayRef<int64_t> pairs = {})
      : text(text), target(target), pairs(pairs) {
    m.context.loadDialect<nn::NnDialect, plan::PlanDialect>();
    source = mlir::parseSourceString<mlir::ModuleOp>(text, &m.context);
    if (!source) {
      ADD_FAILURE() << "does not parse: " << text.str();
      std::abort();
    }
    function = source->lookupSymbol<mlir::func::FuncOp>("k");
    llvm::SmallVector<KernelBuffer> buffers;
    auto add = [&](mlir::Type type, bool written) {
      auto tensor = mlir::cast<mlir::RankedTensorType>(type);
      mlir::Type element =
          tensor.getElementType().isInteger(1) ? m.builder.getI8Type() : tensor.getElementType();
      buffers.push_back({element, tensor.getNumElements(), written, true});
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
    blob.emplace(m.load(target));
    makeInputs();
  }

  /// Runs all chunks, last one first, with stale workspaces, and returns the bytes of all outputs.
  std::vector<char> run() {
    std::vector<AlignedArray<char>> memory;
    for (const evaluator::HostTensor &input : inputs)
      memory.push_back(bytesOf(input));
    for (mlir::Type type : function.getResultTypes()) {
      memory.emplace_back(sizeOf(type) + kGuard);
      std::memset(memory.back().begin(), 0x5a, memory.back().size);
    }
    AlignedArray<char> workspace(info.workspaceBytesPerWorker + 64);
    std::memset(workspace.begin(), 0x7f, workspace.size);
    std::vector<void *> args;
    for (auto &array : memory)
      args.push_back(array.begin());
    for (size_t i = 0; i < pairs.size(); i += 2)
      args[inputs.size() + pairs[i + 1]] = args[pairs[i]];
    args.push_back(workspace.begin());
    for (int64_t chunk = info.chunks; chunk-- > 0;)
      blob->kernel(info.name)(args.data(), chunk, 0);
    std::vector<char> outputs;
    for (auto [number, type] : llvm::enumerate(function.getResultTypes())) {
      auto *from = static_cast<char *>(args[inputs.size() + number]);
      outputs.insert(outputs.end(), from, from + sizeOf(type));
      auto &array = memory[inputs.size() + number];
      for (size_t i = 0; i < kGuard; ++i)
        EXPECT_EQ(array[sizeOf(type) + i], 0x5a) << "wrote beyond the end of an output: " << text;
    }
    return outputs;
  }

  /// The evaluator's results in double precision.
  mlir::FailureOr<llvm::SmallVector<evaluator::HostTensor>> evaluate() {
    return evaluator::Evaluator(evaluator::Precision::f64).evaluate(function.getBody().front(), inputs);
  }

  /// Compares with results of `evaluate`, also of the same program for another target: integers and
  /// infinities are equal, NaN is NaN.
  void compare(const std::vector<char> &outputs, llvm::ArrayRef<evaluator::HostTensor> want,
               double tolerance) const {
    size_t at = 0;
    for (const evaluator::HostTensor &tensor : want) {
      size_t width = sizeOf(tensor.getType()) / tensor.size();
      for (int64_t i = 0; i < tensor.size(); ++i, at += width) {
        std::string where = target.name + " element " + std::to_string(i) + " of " + text;
        if (!tensor.isFloat()) {
          ASSERT_EQ(readInteger(outputs, at, width), tensor.getInt(i)) << where;
          continue;
        }
        double got = width == 4 ? double(read<float>(outputs, at)) : read<double>(outputs, at),
               value = tensor.getFloat(i);
        if (std::isfinite(value))
          ASSERT_NEAR(got, value, tolerance) << where;
        else if (std::isnan(value))
          ASSERT_TRUE(std::isnan(got)) << where;
        else
          ASSERT_EQ(got, value) << where;
      }
    }
    ASSERT_EQ(at, outputs.size()) << "not all outputs were compared: " << text;
  }

  KernelInfo info;
  std::vector<evaluator::HostTensor> inputs;

private:
  static constexpr size_t kGuard = 64;

  template <typename T> static T read(const std::vector<char> &bytes, size_t at) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    return value;
  }
  /// All bits of an integer of so many bytes, with its sign.
  static int64_t readInteger(const std::vector<char> &bytes, size_t at, size_t width) {
    switch (width) {
    case 1:
      return read<int8_t>(bytes, at);
    case 2:
      return read<int16_t>(bytes, at);
    case 4:
      return read<int32_t>(bytes, at);
    default:
      return read<int64_t>(bytes, at);
    }
  }
  static size_t sizeOf(mlir::Type type) {
    auto tensor = mlir::cast<mlir::RankedTensorType>(type);
    return tensor.getNumElements() * ((tensor.getElementTypeBitWidth() + 7) / 8);
  }
  static AlignedArray<char> bytesOf(const evaluator::HostTensor &tensor) {
    AlignedArray<char> memory(sizeOf(tensor.getType()));
    size_t width = memory.size / tensor.size();
    for (int64_t i = 0; i < tensor.size(); ++i) {
      float single = tensor.isFloat() ? float(tensor.getFloat(i)) : 0;
      double wide = tensor.isFloat() ? tensor.getFloat(i) : 0;
      int64_t integer = tensor.isFloat() ? 0 : tensor.getInt(i);
      const void *from = !tensor.isFloat() ? static_cast<const void *>(&integer)
                         : width == 4      ? static_cast<void *>(&single)
                                           : &wide;
      std::memcpy(memory.begin() + i * width, from, width);
    }
    return memory;
  }
  static std::vector<evaluator::HostTensor> randomTensors(mlir::TypeRange types) {
    std::vector<evaluator::HostTensor> tensors;
    for (auto [seed, type] : llvm::enumerate(types)) {
      std::mt19937 random(seed + 1);
      std::uniform_real_distribution<float> uniform(-1, 1);
      tensors.emplace_back(mlir::cast<mlir::RankedTensorType>(type));
      EXPECT_TRUE(tensors.back().isFloat()) << "integers come from @inputs";
      for (int64_t i = 0; i < tensors.back().size(); ++i)
        tensors.back().setFloat(i, uniform(random));
    }
    return tensors;
  }
  void makeInputs() {
    auto maker = source->lookupSymbol<mlir::func::FuncOp>("inputs");
    inputs = randomTensors(maker ? maker.getArgumentTypes() : function.getArgumentTypes());
    if (!maker)
      return;
    auto made =
        evaluator::Evaluator(evaluator::Precision::declared).evaluate(maker.getBody().front(), inputs);
    ASSERT_TRUE(succeeded(made)) << text;
    inputs.assign(made->begin(), made->end());
  }

  std::string text;
  Target target;
  llvm::SmallVector<int64_t> pairs;
  KernelModule m;
  mlir::OwningOpRef<mlir::ModuleOp> source;
  mlir::func::FuncOp function;
  std::optional<LoadedBlob> blob;
};

enum class Coverage {
  Widest,  ///< the last target of this machine
  Targets, ///< the last one and one of the others, which depends on the program: equal bits on those with fma
  All,     ///< all targets of this machine, portable numerics, too: equal bits on all
};

/// The targets of this machine that `text` is compiled for.
inline std::vector<Target> targetsFor(llvm::StringRef text, Coverage coverage) {
  std::vector<Target> targets = runnableTargets();
  if (coverage == Coverage::All)
    return targets;
  std::vector<Target> chosen{targets.back()};
  targets.pop_back();
  if (coverage == Coverage::Targets && !targets.empty())
    chosen.push_back(targets[std::accumulate(text.begin(), text.end(), size_t(0)) % targets.size()]);
  return chosen;
}

/// Runs the program on targets of this machine and compares every result with the evaluator's, and the bits of all.
/// `pairs`: of EvaluatedKernel.
inline void compareWithEvaluator(llvm::StringRef text, const Generate &generate, double tolerance,
                                 Coverage coverage = Coverage::All, llvm::ArrayRef<int64_t> pairs = {}) {
  // Results belong to the context of the kernel that they were evaluated for.
  std::unique_ptr<EvaluatedKernel> evaluated;
  llvm::SmallVector<evaluator::HostTensor> want;
  for (Numerics numerics : {Numerics::Fast, Numerics::Portable}) {
    std::vector<char> first;
    for (const Target &target : targetsFor(text, coverage)) {
      auto kernel = std::make_unique<EvaluatedKernel>(text, generate, target, numerics, pairs);
      std::vector<char> outputs = kernel->run();
      if (!evaluated) {
        auto results = kernel->evaluate();
        ASSERT_TRUE(succeeded(results)) << text.str();
        want = std::move(*results);
      }
      kernel->compare(outputs, want, tolerance);
      if (!evaluated)
        evaluated = std::move(kernel);
      if (::testing::Test::HasFatalFailure())
        return;
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
