// Gradients against central differences.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gradients/GradientCheck.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

using namespace mlir;

namespace ortc::gradients {

using evaluator::Evaluator;
using evaluator::HostTensor;

static bool isFloat(Type type) { return isa<FloatType>(cast<RankedTensorType>(type).getElementType()); }

static double numberOr(func::FuncOp function, unsigned i, StringRef name, double fallback) {
  auto attribute = function.getArgAttrOfType<FloatAttr>(i, name);
  return attribute ? attribute.getValueAsDouble() : fallback;
}

SmallVector<HostTensor> makeArguments(func::FuncOp function, unsigned seed) {
  std::mt19937 random(seed);
  SmallVector<HostTensor> arguments;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (auto value = function.getArgAttrOfType<ElementsAttr>(i, "test.value")) {
      arguments.push_back(*HostTensor::fromAttribute(value));
      continue;
    }
    HostTensor tensor(cast<RankedTensorType>(type));
    if (isFloat(type)) {
      std::uniform_real_distribution<double> draw(numberOr(function, i, "test.low", -2),
                                                  numberOr(function, i, "test.high", 2));
      for (int64_t j = 0; j < tensor.size(); ++j)
        tensor.setFloat(j, draw(random));
    } else {
      auto below = function.getArgAttrOfType<IntegerAttr>(i, "test.below");
      int64_t limit = below ? below.getInt() : 2, row = tensor.getRank() ? tensor.getShape().back() : 1;
      std::vector<int64_t> order(limit);
      for (int64_t j = 0; j < tensor.size(); ++j) {
        if (j % row == 0) {
          std::iota(order.begin(), order.end(), 0);
          std::shuffle(order.begin(), order.end(), random);
        }
        bool distinct = static_cast<bool>(function.getArgAttr(i, "test.distinct"));
        tensor.setInt(j, distinct ? order[j % row] : static_cast<int64_t>(random() % limit));
      }
    }
    arguments.push_back(tensor);
  }
  return arguments;
}

SmallVector<HostTensor> makeCotangents(func::FuncOp function, unsigned seed, bool ones) {
  std::mt19937 random(seed + 1000);
  std::uniform_real_distribution<double> draw(-1, 1);
  SmallVector<HostTensor> cotangents;
  for (Type type : function.getResultTypes()) {
    HostTensor tensor(cast<RankedTensorType>(type));
    for (int64_t j = 0; isFloat(type) && j < tensor.size(); ++j)
      tensor.setFloat(j, ones ? 1 : draw(random));
    cotangents.push_back(tensor);
  }
  return cotangents;
}

FailureOr<SmallVector<HostTensor>> engineGradients(func::FuncOp function, ArrayRef<HostTensor> arguments,
                                                   ArrayRef<HostTensor> cotangents,
                                                   const autodiff::DifferentiateOptions &options) {
  func::FuncOp copy = function.clone();
  Block &block = copy.front();
  Operation *terminator = block.getTerminator();
  SmallVector<Value> outputs, seeds, withRespectTo;
  for (BlockArgument argument : block.getArguments())
    if (isFloat(argument.getType()))
      withRespectTo.push_back(argument);
  SmallVector<HostTensor> inputs(arguments);
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    if (!isFloat(value.getType()))
      continue;
    outputs.push_back(value);
    seeds.push_back(block.addArgument(value.getType(), value.getLoc()));
    inputs.push_back(cotangents[i]);
  }
  nn::TensorBuilder builder(copy.getLoc(), terminator);
  auto built = autodiff::differentiate(builder, outputs, seeds, withRespectTo, options);
  if (failed(built)) {
    copy.erase();
    return failure();
  }
  SmallVector<Value> &gradients = built->gradients;
  for (auto [i, value] : llvm::enumerate(gradients))
    if (!value)
      gradients[i] = builder.zerosLike(withRespectTo[i]);
  terminator->setOperands(gradients);
  auto values = Evaluator(evaluator::Precision::f64).evaluate(block, inputs);
  copy.erase();
  if (failed(values))
    return failure();
  SmallVector<HostTensor> result(arguments.size());
  for (unsigned i = 0, next = 0; i < arguments.size(); ++i)
    if (arguments[i].isFloat())
      result[i] = (*values)[next++];
  return result;
}

static double weightedSum(func::FuncOp function, ArrayRef<HostTensor> arguments,
                          ArrayRef<HostTensor> cotangents) {
  auto values = Evaluator(evaluator::Precision::f64).evaluate(function.front(), arguments);
  if (failed(values))
    return NAN;
  double sum = 0;
  for (auto [value, cotangent] : llvm::zip_equal(*values, cotangents))
    for (int64_t j = 0; value.isFloat() && j < value.size(); ++j)
      sum += value.getFloat(j) * cotangent.getFloat(j);
  return sum;
}

SmallVector<HostTensor> numericGradients(func::FuncOp function, ArrayRef<HostTensor> arguments,
                                         ArrayRef<HostTensor> cotangents) {
  SmallVector<HostTensor> inputs(arguments), gradients(arguments.size());
  for (unsigned i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].isFloat())
      continue;
    gradients[i] = HostTensor(inputs[i].getType());
    for (int64_t j = 0; j < inputs[i].size(); ++j) {
      double x = inputs[i].getFloat(j), step = 1e-5;
      inputs[i].setFloat(j, x + step);
      double above = weightedSum(function, inputs, cotangents);
      inputs[i].setFloat(j, x - step);
      double below = weightedSum(function, inputs, cotangents);
      inputs[i].setFloat(j, x);
      gradients[i].setFloat(j, (above - below) / (2 * step));
    }
  }
  return gradients;
}

double distance(ArrayRef<HostTensor> engine, ArrayRef<HostTensor> numeric) {
  double worst = 0;
  for (auto [a, b] : llvm::zip_equal(engine, numeric)) {
    if (!b.getType() || !b.isFloat())
      continue;
    if (a.getType() != b.getType())
      return INFINITY;
    double span = 1e-3, off = 0;
    for (int64_t j = 0; j < b.size(); ++j) {
      span = std::max(span, std::fabs(b.getFloat(j)));
      double difference = std::fabs(a.getFloat(j) - b.getFloat(j));
      off = std::isnan(difference) ? INFINITY : std::max(off, difference);
    }
    worst = std::max(worst, off / span);
  }
  return worst;
}

} // namespace ortc::gradients
