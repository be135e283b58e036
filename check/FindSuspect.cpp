// Which operation a wrong gradient comes from.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "check/FindSuspect.h"

#include "compiler/evaluator/Evaluator.h"
#include "engine/session/difference.h"
#include "support/Random.h"
#include "support/Text.h"

#include <cmath>

using namespace mlir;

namespace ortc::check {

using evaluator::Evaluator;
using evaluator::HostTensor;

namespace {

/// One operation differentiated by itself.
class LocalCheck {
public:
  LocalCheck(Operation *op, const ProgramValues &values, const autodiff::DifferentiateOptions &options)
      : op(op), values(values), options(options), builder(op->getLoc(), op->getContext()) {}

  /// The number of the first operand whose gradient is wrong, with the error; none when all are right.
  std::optional<unsigned> run(double tolerance, double &error);

private:
  static bool isFloat(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && isa<FloatType>(type.getElementType());
  }
  HostTensor draw(RankedTensorType type);
  /// Computes the gradients; false where there are none.
  bool differentiate();
  /// The sum of cotangents times results.
  double weigh(ArrayRef<const HostTensor *> operands);
  /// The error of an operand's gradient in one direction, where it has one.
  std::optional<double> compare(unsigned number, const HostTensor &gradient, double tolerance);

  Operation *op;
  const ProgramValues &values;
  const autodiff::DifferentiateOptions &options;
  nn::TensorBuilder builder;
  Evaluator evaluator{evaluator::Precision::declared};
  Random random{1};
  SmallVector<HostTensor> cotangents; ///< as results; empty types for integers
  SmallVector<HostTensor> arguments;  ///< operands, then cotangents of floating-point results
  SmallVector<unsigned> numbers;      ///< of operands that have gradients
  SmallVector<HostTensor> gradients;  ///< as these
};

} // namespace

double LocalCheck::weigh(ArrayRef<const HostTensor *> operands) {
  auto results = evaluator.evaluate(op, operands);
  if (failed(results))
    return std::nan("");
  double sum = 0;
  for (auto [result, cotangent] : llvm::zip_equal(*results, cotangents))
    for (int64_t i = 0; result.isFloat() && i < result.size(); ++i)
      sum += result.getFloat(i) * cotangent.getFloat(i);
  return sum;
}

HostTensor LocalCheck::draw(RankedTensorType type) {
  HostTensor tensor(type);
  for (int64_t i = 0; tensor.isFloat() && i < tensor.size(); ++i)
    tensor.setFloat(i, random.normal());
  return tensor;
}

bool LocalCheck::differentiate() {
  for (Value result : op->getResults())
    cotangents.push_back(draw(cast<RankedTensorType>(result.getType())));
  // A function of operands and cotangents that returns the gradients.
  OwningOpRef<ModuleOp> module = ModuleOp::create(op->getLoc());
  builder.setInsertionPointToEnd(module->getBody());
  auto function = func::FuncOp::create(builder, "local", builder.getFunctionType({}, {}));
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  SmallVector<Value> operands, outputs, weights;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Value argument = block->addArgument(operand.getType(), op->getLoc());
    arguments.push_back(values.at(operand));
    if (isFloat(operand)) {
      operands.push_back(argument);
      numbers.push_back(i);
    }
  }
  Operation *copy = builder.clone(*op);
  copy->setOperands(block->getArguments());
  for (auto [i, result] : llvm::enumerate(copy->getResults())) {
    if (!isFloat(result))
      continue;
    outputs.push_back(result);
    weights.push_back(block->addArgument(result.getType(), op->getLoc()));
    arguments.push_back(cotangents[i]);
  }
  if (operands.empty() || outputs.empty())
    return false;
  auto found = autodiff::differentiate(builder, outputs, weights, operands, options);
  if (failed(found))
    return false;
  SmallVector<Value> results;
  for (auto [gradient, operand] : llvm::zip_equal(found->gradients, operands))
    results.push_back(gradient ? gradient : builder.zerosLike(operand));
  func::ReturnOp::create(builder, results);
  auto evaluated = evaluator.evaluate(*block, arguments);
  if (failed(evaluated))
    return false;
  gradients.assign(evaluated->begin(), evaluated->end());
  return true;
}

std::optional<double> LocalCheck::compare(unsigned number, const HostTensor &gradient, double tolerance) {
  const HostTensor &at = arguments[number];
  HostTensor direction = draw(at.getType()), moved = at;
  double derivative = 0, squares = 0, norm = 0, largest = 0;
  for (int64_t i = 0; i < at.size(); ++i) {
    norm += at.getFloat(i) * at.getFloat(i);
    squares += direction.getFloat(i) * direction.getFloat(i);
    largest += gradient.getFloat(i) * gradient.getFloat(i);
  }
  if (!(squares > 0) || !std::isfinite(norm))
    return std::nullopt;
  for (int64_t i = 0; i < at.size(); ++i) {
    // Leans towards the gradient: an error in its size shows best there.
    double lean = largest > 0 ? gradient.getFloat(i) / std::sqrt(largest) : 0;
    direction.setFloat(i, direction.getFloat(i) / std::sqrt(squares) + lean);
    derivative += direction.getFloat(i) * gradient.getFloat(i);
  }
  SmallVector<const HostTensor *> pointers;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    pointers.push_back(i == number ? &moved : &arguments[i]);
  auto f = [&](double step) {
    for (int64_t i = 0; i < at.size(); ++i)
      moved.setFloat(i, at.getFloat(i) + step * direction.getFloat(i));
    return weigh(pointers);
  };
  double value = f(0);
  if (!std::isfinite(value) || !std::isfinite(derivative))
    return std::nullopt;
  engine::Difference difference = engine::compareDerivative(
      f, value, derivative, {tolerance, 1e-9, 1e-4 * std::max(0.1, std::sqrt(norm))});
  return difference.isGood ? std::nullopt : std::optional(difference.error);
}

std::optional<unsigned> LocalCheck::run(double tolerance, double &error) {
  if (!differentiate())
    return std::nullopt;
  for (auto [number, gradient] : llvm::zip_equal(numbers, gradients))
    if (std::optional<double> wrong = compare(number, gradient, tolerance)) {
      error = *wrong;
      return number;
    }
  return std::nullopt;
}

/// The ONNX node that an operation was made for, in words.
static std::string describeNode(Operation *op) {
  auto name = op->getLoc()->findInstanceOf<NameLoc>();
  if (!name)
    return "";
  auto [type, node] = name.getName().getValue().split(':');
  return node.empty() ? ", part of the " + type.str()
                      : ", part of the node '" + node.str() + "' (" + type.str() + ")";
}

std::string findSuspect(ModuleOp parts, const ValueSource &source, const NamedValues &compiled,
                        const autodiff::DifferentiateOptions &options, double tolerance) {
  auto backward = parts.lookupSymbol<func::FuncOp>("backward_0");
  auto comparisons = compareWithEvaluator(backward, source, compiled, tolerance);
  if (!comparisons)
    return comparisons.getStatus().getMessage() + ", so nothing can be suspected";
  for (const CodeComparison &comparison : *comparisons)
    if (!comparison.isGood)
      return "generated code and evaluator disagree on the " + comparison.name + " (they differ by " +
             formatShort(comparison.distance, 2) +
             " of the largest): a kernel is to be suspected, and no gradient rule";
  llvm::StringMap<HostTensor> outputs;
  for (const char *name : {"forward_train_0", "loss_0"}) {
    auto function = parts.lookupSymbol<func::FuncOp>(name);
    Expected<ProgramValues> values = evaluateFunction(function, source, outputs);
    if (!values)
      return values.getStatus().getMessage() + ", so nothing can be suspected";
    for (Operation &op : function.front().without_terminator()) {
      if (op.getNumOperands() == 0 || !Evaluator::isKnown(&op))
        continue;
      double off = 0;
      std::optional<unsigned> operand = LocalCheck(&op, *values, options).run(tolerance, off);
      if (operand)
        return "the first operation to suspect is " + op.getName().getStringRef().str() + describeNode(&op) +
               ": alone, its gradient for operand " + std::to_string(*operand) + " is off by " +
               formatShort(off, 2);
    }
  }
  return "every operation's gradient is right by itself, and generated code and evaluator agree: "
         "contributions to a value "
         "may be lost or counted twice. Please report this with the model";
}

} // namespace ortc::check
