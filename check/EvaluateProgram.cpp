// A program's functions by the evaluator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "check/EvaluateProgram.h"

#include "compiler/evaluator/Evaluator.h"
#include "dialects/nn/NnShapes.h"
#include "dialects/train/TrainDialect.h"

#include <cmath>

using namespace mlir;

namespace ortc::check {

using evaluator::Evaluator;
using evaluator::HostTensor;

Expected<ProgramValues> evaluateFunction(func::FuncOp function, const ValueSource &source,
                                         llvm::StringMap<HostTensor> &outputs) {
  ProgramValues values;
  for (BlockArgument argument : function.getArguments()) {
    if (argument.use_empty())
      continue; // an input whose shape alone matters is none of the artifact
    auto output = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), train::kOutput);
    if (output && outputs.contains(output)) {
      values[argument] = outputs[output];
      continue;
    }
    FailureOr<HostTensor> value = source(function, argument.getArgNumber());
    if (failed(value))
      return Status::failure("argument " + std::to_string(argument.getArgNumber()) + " of @" +
                             function.getName().str() + " has no value");
    values[argument] = std::move(*value);
  }
  Evaluator evaluator(evaluator::Precision::declared);
  for (Operation &op : function.front().without_terminator()) {
    SmallVector<const HostTensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&values[operand]);
    auto results = evaluator.evaluate(&op, operands);
    if (failed(results))
      return Status::failure("the evaluator cannot run '" + op.getName().getStringRef().str() + "'");
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), *results))
      values[value] = std::move(tensor);
  }
  for (auto [i, value] : llvm::enumerate(function.front().getTerminator()->getOperands()))
    if (auto name = function.getResultAttrOfType<StringAttr>(i, train::kOutput))
      outputs[name] = values[value];
  return values;
}

/// Calls `visit` with the place of every element in the program's layout and in the file's.
static void forEachPlace(train::TensorOp tensor,
                         llvm::function_ref<void(int64_t program, int64_t file)> visit) {
  auto type = cast<RankedTensorType>(tensor.getType()), stored = tensor.getStoredType();
  auto permutation = tensor.getPermutation();
  nn::Shape strides = nn::rowMajorStrides(type.getShape()), index(stored.getRank());
  if (stored.getNumElements() == 0)
    return;
  int64_t place = 0;
  do {
    int64_t file = 0;
    for (int64_t i = 0; i < stored.getRank(); ++i)
      file += index[i] * strides[permutation ? (*permutation)[i] : i];
    visit(place++, file);
  } while (evaluator::nextIndex(index, stored.getShape()));
}

HostTensor toProgramLayout(const std::vector<double> &values, Operation *op) {
  auto tensor = cast<train::TensorOp>(op);
  HostTensor result(tensor.getStoredType());
  forEachPlace(tensor, [&](int64_t program, int64_t file) {
    if (result.isFloat())
      result.setFloat(program, values[file]);
    else
      result.setInt(program, static_cast<int64_t>(values[file]));
  });
  return result;
}

static std::vector<double> dense(const HostTensor &tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.size(); ++i)
    values.push_back(tensor.isFloat() ? tensor.getFloat(i) : static_cast<double>(tensor.getInt(i)));
  return values;
}

/// Result `i` of `function` with its name; "" when nobody outside sees it.
static std::string nameResult(func::FuncOp function, unsigned i, const HostTensor &value,
                              std::vector<double> &values) {
  values = dense(value);
  if (function.getResultAttr(i, train::kLoss))
    return "loss";
  if (auto name = function.getResultAttrOfType<StringAttr>(i, train::kOutput))
    return "output '" + name.str() + "'";
  auto symbol = function.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradient);
  if (!symbol)
    return "";
  auto tensor = cast<train::TensorOp>(SymbolTable::lookupNearestSymbolFrom(function, symbol));
  std::vector<double> stored = values;
  forEachPlace(tensor, [&](int64_t program, int64_t file) { values[file] = stored[program]; });
  return "gradient of '" + tensor.getName().str() + "'";
}

static double largestMagnitude(const std::vector<double> &values) {
  double largest = 0;
  for (double value : values)
    if (std::isfinite(value))
      largest = std::max(largest, std::fabs(value));
  return largest;
}

static double distance(const std::vector<double> &a, const std::vector<double> &b, double scale) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
      continue;
    double difference = std::fabs(a[i] - b[i]) / scale;
    largest = std::max(largest, std::isnan(difference) ? INFINITY : difference);
  }
  return largest;
}

Expected<std::vector<CodeComparison>> compareWithEvaluator(func::FuncOp function, const ValueSource &source,
                                                           const NamedValues &compiled, double tolerance) {
  llvm::StringMap<HostTensor> outputs;
  Expected<ProgramValues> values = evaluateFunction(function, source, outputs);
  if (!values)
    return values.getStatus();
  NamedValues evaluated;
  double largestGradient = 0;
  for (auto [i, value] : llvm::enumerate(function.front().getTerminator()->getOperands())) {
    std::vector<double> numbers;
    std::string name = nameResult(function, i, (*values)[value], numbers);
    if (compiled.find(name) == compiled.end())
      continue;
    if (function.getResultAttr(i, train::kGradient))
      largestGradient = std::max(largestGradient, largestMagnitude(numbers));
    evaluated[name] = std::move(numbers);
  }
  std::vector<CodeComparison> comparisons;
  for (const auto &[name, numbers] : evaluated) {
    double scale = std::max({largestMagnitude(numbers), 1e-4 * largestGradient, 1e-300});
    double off = distance(compiled.at(name), numbers, scale);
    comparisons.push_back({name, static_cast<int64_t>(numbers.size()), off, off <= tolerance});
  }
  return comparisons;
}

} // namespace ortc::check
