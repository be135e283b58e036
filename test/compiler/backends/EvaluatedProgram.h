// A tensor program given as text, its inputs, and what the evaluator makes of them: for kernels of any family.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/evaluator/Evaluator.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace ortc::backends::test {

/// A program with function @k and, where its inputs are not just any numbers, @inputs that computes them from random
/// ones in [-1, 1].
class EvaluatedProgram {
public:
  EvaluatedProgram(mlir::MLIRContext &context, llvm::StringRef text) : text(text) {
    context.loadDialect<nn::NnDialect, plan::PlanDialect>();
    source = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!source) {
      ADD_FAILURE() << "does not parse: " << text.str();
      std::abort();
    }
    function = source->lookupSymbol<mlir::func::FuncOp>("k");
    makeInputs();
  }

  /// The evaluator's results in double precision.
  mlir::FailureOr<llvm::SmallVector<evaluator::HostTensor>> evaluate() {
    return evaluator::Evaluator(evaluator::Precision::f64).evaluate(function.getBody().front(), inputs);
  }

  /// Compares the bytes of all results, one behind the other, with results of `evaluate`, also of the same program for
  /// another target: integers and infinities are equal, NaN is NaN.
  void compare(const std::vector<char> &outputs, llvm::ArrayRef<evaluator::HostTensor> want, double tolerance,
               const std::string &target) const {
    size_t at = 0;
    for (const evaluator::HostTensor &tensor : want) {
      size_t width = elementBytes(tensor.getType());
      for (int64_t i = 0; i < tensor.size(); ++i, at += width) {
        std::string where = target + " element " + std::to_string(i) + " of " + text;
        if (!tensor.isFloat()) {
          ASSERT_EQ(readInteger(outputs, at, width), tensor.getInt(i)) << where;
          continue;
        }
        double got =
                   width == 2
                       ? readNarrow(outputs, at,
                                    mlir::cast<mlir::FloatType>(mlir::getElementTypeOrSelf(tensor.getType())))
                   : width == 4 ? double(read<float>(outputs, at))
                                : read<double>(outputs, at),
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

  static double readNarrow(const std::vector<char> &bytes, size_t at, mlir::FloatType type) {
    return llvm::APFloat(type.getFloatSemantics(), llvm::APInt(16, read<uint16_t>(bytes, at)))
        .convertToDouble();
  }

  static size_t sizeOf(mlir::Type type) {
    auto tensor = mlir::cast<mlir::RankedTensorType>(type);
    return tensor.getNumElements() * elementBytes(tensor);
  }
  static size_t elementBytes(mlir::RankedTensorType type) { return (type.getElementTypeBitWidth() + 7) / 8; }
  /// The elements as kernels read them.
  static std::vector<char> bytesOf(const evaluator::HostTensor &tensor) {
    std::vector<char> bytes(sizeOf(tensor.getType()));
    size_t width = elementBytes(tensor.getType());
    for (int64_t i = 0; i < tensor.size(); ++i) {
      float single = tensor.isFloat() ? float(tensor.getFloat(i)) : 0;
      double wide = tensor.isFloat() ? tensor.getFloat(i) : 0;
      int64_t integer = tensor.isFloat() ? 0 : tensor.getInt(i);
      if (tensor.isFloat() && width == 2)
        integer = static_cast<int64_t>(
            inTypeOf(tensor.getType(), tensor.getFloat(i)).bitcastToAPInt().getZExtValue());
      const void *from = !tensor.isFloat() || width == 2 ? static_cast<const void *>(&integer)
                         : width == 4                    ? static_cast<void *>(&single)
                                                         : &wide;
      std::memcpy(bytes.data() + i * width, from, width);
    }
    return bytes;
  }

  std::string text;
  mlir::func::FuncOp function;
  std::vector<evaluator::HostTensor> inputs;

private:
  /// The number nearest to `value` that the elements of a tensor may be.
  static llvm::APFloat inTypeOf(mlir::RankedTensorType tensor, double value) {
    llvm::APFloat number(value);
    bool isInexact;
    number.convert(mlir::cast<mlir::FloatType>(tensor.getElementType()).getFloatSemantics(),
                   llvm::APFloat::rmNearestTiesToEven, &isInexact);
    return number;
  }
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
  static std::vector<evaluator::HostTensor> randomTensors(mlir::TypeRange types) {
    std::vector<evaluator::HostTensor> tensors;
    for (auto [seed, type] : llvm::enumerate(types)) {
      std::mt19937 random(seed + 1);
      std::uniform_real_distribution<float> uniform(-1, 1);
      tensors.emplace_back(mlir::cast<mlir::RankedTensorType>(type));
      EXPECT_TRUE(tensors.back().isFloat()) << "integers come from @inputs";
      for (int64_t i = 0; i < tensors.back().size(); ++i)
        tensors.back().setFloat(i, inTypeOf(tensors.back().getType(), uniform(random)).convertToDouble());
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

  mlir::OwningOpRef<mlir::ModuleOp> source;
};

} // namespace ortc::backends::test
