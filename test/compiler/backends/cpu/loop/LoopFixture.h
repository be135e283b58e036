// Compiles tensor programs given as text into loop kernels and runs them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/compiler/backends/cpu/KernelFixture.h"

#include "compiler/backends/cpu/loop/LoopKernel.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Parser/Parser.h"

#include <cstring>
#include <functional>
#include <random>

namespace ortc::cpu::test {

/// The bytes of a kernel's arguments, inputs and outputs, as buffers see them.
using Buffer = std::vector<char>;

template <typename T> Buffer bufferOf(const std::vector<T> &values) {
  Buffer buffer(values.size() * sizeof(T));
  std::memcpy(buffer.data(), values.data(), buffer.size());
  return buffer;
}
template <typename T> std::vector<T> valuesOf(const Buffer &buffer) {
  std::vector<T> values(buffer.size() / sizeof(T));
  std::memcpy(values.data(), buffer.data(), values.size() * sizeof(T));
  return values;
}
inline std::vector<float> randomFloats(size_t count, unsigned seed, float low = -2, float high = 2) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(count);
  for (float &v : values)
    v = uniform(random);
  return values;
}
inline std::vector<int64_t> randomIndices(size_t count, unsigned seed, int64_t limit) {
  std::mt19937 random(seed);
  std::vector<int64_t> values(count);
  for (int64_t &v : values)
    v = random() % limit;
  return values;
}

/// "2x3x", for the middle of a type.
inline std::string dims(std::initializer_list<int64_t> sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += std::to_string(size) + "x";
  return text;
}
inline std::string tensorOf(const std::vector<int64_t> &shape, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

/// A program of one function, compiled for a target when it runs first.
class CompiledLoop {
public:
  CompiledLoop(llvm::StringRef text, const Target &target, Numerics numerics = Numerics::Fast)
      : target(target) {
    m.context.loadDialect<nn::NnDialect, plan::PlanDialect>();
    source = mlir::parseSourceString<mlir::ModuleOp>(text, &m.context);
    if (!source) {
      ADD_FAILURE() << "does not parse: " << text.str();
      std::abort();
    }
    function = *source->getOps<mlir::func::FuncOp>().begin();
    auto result = generateLoopKernel(*m.module, function, target, numerics);
    if (failed(result)) {
      ADD_FAILURE() << "no kernel: " << text.str();
      std::abort();
    }
    info = *result;
  }

  static size_t bytesOf(mlir::Type type) {
    auto tensor = mlir::cast<mlir::RankedTensorType>(type);
    return tensor.getNumElements() * ((tensor.getElementTypeBitWidth() + 7) / 8);
  }

  /// Runs all chunks, last one first, and returns the outputs. Guards bytes beyond the ends.
  std::vector<Buffer> run(const std::vector<Buffer> &inputs) {
    if (!blob)
      blob.emplace(m.load(target));
    std::vector<AlignedArray<char>> memory;
    std::vector<void *> args;
    size_t number = 0;
    for (mlir::Type type : function.getArgumentTypes()) {
      EXPECT_EQ(inputs[number].size(), bytesOf(type));
      memory.emplace_back(bytesOf(type));
      std::memcpy(memory.back().begin(), inputs[number++].data(), bytesOf(type));
    }
    for (mlir::Type type : function.getResultTypes()) {
      memory.emplace_back(bytesOf(type) + kGuard);
      std::memset(memory.back().begin(), 0x5a, bytesOf(type) + kGuard);
    }
    AlignedArray<char> workspace(info.workspaceBytesPerWorker + 64);
    std::memset(workspace.begin(), 0x7f, workspace.size);
    for (auto &array : memory)
      args.push_back(array.begin());
    args.push_back(workspace.begin());
    for (int64_t chunk = info.chunks; chunk-- > 0;)
      blob->kernel(info.name)(args.data(), chunk, 0);
    std::vector<Buffer> outputs;
    for (mlir::Type type : function.getResultTypes()) {
      auto &array = memory[number++];
      outputs.emplace_back(array.begin(), array.begin() + bytesOf(type));
      for (size_t i = 0; i < kGuard; ++i)
        EXPECT_EQ(array[bytesOf(type) + i], 0x5a) << "wrote beyond the end of an output";
    }
    return outputs;
  }

  KernelInfo info;
  KernelModule m;
  mlir::OwningOpRef<mlir::ModuleOp> source;
  mlir::func::FuncOp function;
  Target target;
  std::optional<LoadedBlob> blob;

private:
  static constexpr size_t kGuard = 64;
};

/// Compiles `text` on every target of this machine, runs it with each of the inputs, and expects equal bits
/// under portable numerics. Returns the outputs of the last target with fast numerics.
inline std::vector<std::vector<Buffer>> runEverywhere(llvm::StringRef text,
                                                      const std::vector<std::vector<Buffer>> &inputs) {
  std::vector<std::vector<Buffer>> first, last;
  auto runAll = [&](CompiledLoop &loop) {
    std::vector<std::vector<Buffer>> outputs;
    for (const std::vector<Buffer> &each : inputs)
      outputs.push_back(loop.run(each));
    return outputs;
  };
  for (const Target &target : runnableTargets()) {
    CompiledLoop portable(text, target, Numerics::Portable), fast(text, target);
    bool isSame = portable.m.print() == fast.m.print(); // where nothing is multiplied and added
    last = runAll(portable);
    if (first.empty())
      first = last;
    EXPECT_EQ(first, last) << "other bits on " << target.name << ": " << text.str();
    if (!isSame)
      last = runAll(fast);
  }
  return last;
}
inline std::vector<Buffer> runEverywhere(llvm::StringRef text, const std::vector<Buffer> &inputs) {
  return runEverywhere(text, std::vector<std::vector<Buffer>>{inputs})[0];
}

/// Compares floats with a reference in double precision, `tolerance` relative to the larger of one and the value.
inline void expectClose(const Buffer &got, const std::vector<double> &want, double tolerance,
                        const std::string &what) {
  auto values = valuesOf<float>(got);
  ASSERT_EQ(values.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(values[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << what << " element " << i;
}

} // namespace ortc::cpu::test
