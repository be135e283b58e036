// Programs of references, and the memory that their entries work on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/autodiff/Differentiate.h"
#include "compiler/evaluator/Evaluator.h"
#include "compiler/passes/train/ProgramParts.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

namespace ortc::train {

using evaluator::Evaluator;
using evaluator::HostTensor;

class TrainingProgramTest : public ::testing::Test {
protected:
  TrainingProgramTest() {
    mlir::DialectRegistry registry;
    registry.insert<mlir::func::FuncDialect, mlir::arith::ArithDialect, mlir::math::MathDialect,
                    nn::NnDialect, TrainDialect>();
    autodiff::registerGradientRules(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.allowUnregisteredDialects();
  }
  mlir::OwningOpRef<mlir::ModuleOp> load(llvm::StringRef file) {
    return mlir::parseSourceFile<mlir::ModuleOp>(
        (ORTC_TEST_DATA "/compiler/passes/train/Inputs/" + file).str(), &context);
  }
  /// The functions of Inputs/NAME.mlir and of every file in Inputs/NAME.
  std::vector<mlir::func::FuncOp> loadCases(const std::string &name) {
    std::set<std::string> files;
    for (const auto &file :
         std::filesystem::directory_iterator(ORTC_TEST_DATA "/compiler/passes/train/Inputs/" + name))
      files.insert(name + "/" + file.path().filename().string());
    files.insert(name + ".mlir");
    std::vector<mlir::func::FuncOp> cases;
    for (const std::string &file : files) {
      modules.push_back(load(file));
      EXPECT_TRUE(modules.back()) << file;
      if (modules.back())
        llvm::append_range(cases, modules.back()->getOps<mlir::func::FuncOp>());
    }
    return cases;
  }
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
};

inline HostTensor attributeOf(mlir::func::FuncOp function, unsigned i, llvm::StringRef name) {
  return *HostTensor::fromAttribute(function.getArgAttrOfType<mlir::ElementsAttr>(i, name));
}

/// The largest distance relative to the largest expected magnitude (at least `floor`).
inline double distance(const HostTensor &got, const HostTensor &expected, double floor = 1e-3) {
  EXPECT_EQ(got.getType(), expected.getType());
  if (got.getType() != expected.getType())
    return INFINITY;
  double span = floor, off = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    span = std::max(span, std::fabs(expected.getFloat(i)));
    double difference = std::fabs(got.getFloat(i) - expected.getFloat(i));
    off = std::isnan(difference) ? INFINITY : std::max(off, difference);
  }
  return off / span;
}

/// Float64 against float64: only the order of operations differs.
inline constexpr double kTolerance = 1e-12;
/// Fifty steps of float64 in another order of operations: rounding of 1e-16 that averages and roots carry on.
inline constexpr double kOptimizerTolerance = 1e-11;

/// The gradient of parameter `i` of a reference in step `t`: the file's numbers, or those of make_torch_references.py.
inline HostTensor gradientOf(mlir::func::FuncOp reference, unsigned i, int64_t t) {
  HostTensor one(attributeOf(reference, i, "test.value").getType());
  if (reference.getArgAttr(i, "test.gradients")) {
    HostTensor all = attributeOf(reference, i, "test.gradients");
    for (int64_t j = 0; j < one.size(); ++j)
      one.copy(j, all, t * one.size() + j);
    return one;
  }
  for (int64_t j = 0; j < one.size(); ++j)
    one.setFloat(j, static_cast<double>((7 * t * t + 13 * j + 5 * t * j + 3 * i) % 23 - 11) / 8);
  return one;
}

/// Tensors of a program between steps, by symbol.
using Memory = std::map<std::string, HostTensor>;

inline std::string symbolOf(mlir::Attribute attribute) {
  return llvm::cast<mlir::FlatSymbolRefAttr>(attribute).getValue().str();
}

/// Memory as declared: initial values, or zeros, in stored layout (tests use no permutation with initial
/// values).
inline Memory initialMemory(mlir::ModuleOp module) {
  Memory memory;
  for (auto tensor : module.getOps<TensorOp>())
    memory[tensor.getSymName().str()] = tensor.getInitialAttr()
                                            ? *HostTensor::fromAttribute(tensor.getInitialAttr())
                                            : HostTensor(tensor.getStoredType());
  return memory;
}

/// Runs `function`: arguments come from memory, `gradients` and `inputs`; updates go to memory, gradients to
/// `gradients`, outputs, which are numbers, to `outputs`. Returns the loss, if there is one.
inline double step(mlir::func::FuncOp function, Memory &memory, Memory &gradients, const Memory &inputs,
                   evaluator::Precision precision, std::map<std::string, double> *outputs = nullptr) {
  llvm::SmallVector<HostTensor> arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (mlir::Attribute tensor = function.getArgAttr(i, kTensor))
      arguments.push_back(memory.at(symbolOf(tensor)));
    else if (mlir::Attribute gradient = function.getArgAttr(i, kGradient))
      arguments.push_back(gradients.at(symbolOf(gradient)));
    else
      arguments.push_back(inputs.at(function.getArgAttrOfType<mlir::StringAttr>(i, kInput).str()));
  }
  auto values = Evaluator(precision).evaluate(function.front(), arguments);
  EXPECT_TRUE(mlir::succeeded(values));
  double loss = NAN;
  for (auto [i, value] : llvm::enumerate(*values)) {
    if (mlir::Attribute update = function.getResultAttr(i, kUpdate))
      memory[symbolOf(update)] = value;
    else if (mlir::Attribute gradient = function.getResultAttr(i, kGradient))
      gradients[symbolOf(gradient)] = value;
    else if (function.getResultAttr(i, kLoss))
      loss = value.getFloat(0);
    else if (auto name = function.getResultAttrOfType<mlir::StringAttr>(i, kOutput); name && outputs)
      (*outputs)[name.str()] = value.getFloat(0);
  }
  return loss;
}

} // namespace ortc::train
