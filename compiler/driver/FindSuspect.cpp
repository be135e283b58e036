//===- FindSuspect.cpp - which operation a wrong gradient comes from ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/FindSuspect.h"

#include "compiler/evaluator/Evaluator.h"
#include "dialects/train/TrainDialect.h"
#include "runtime/host/difference.h"
#include "runtime/host/text.h"
#include "llvm/ADT/DenseMap.h"

#include <cmath>
#include <set>

using namespace mlir;

namespace ortc::driver {

using evaluator::Evaluator;
using evaluator::HostTensor;

namespace {

using Values = llvm::DenseMap<Value, HostTensor>;

/// Evaluates functions of one program, keeping every value.
class Program {
public:
  Program(ModuleOp parts, const ValueSource &source) : parts(parts), source(source) {}

  /// `outputs`: results of another function by name, which arguments may ask for.
  LogicalResult evaluate(func::FuncOp function, llvm::StringMap<HostTensor> &outputs, Values &values) {
    for (BlockArgument argument : function.getArguments()) {
      auto output = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), train::kOutput);
      if (output && outputs.contains(output)) {
        values[argument] = outputs[output];
        continue;
      }
      FailureOr<HostTensor> value = source(function, argument.getArgNumber());
      if (failed(value))
        return failure();
      values[argument] = std::move(*value);
    }
    for (Operation &op : function.front().without_terminator()) {
      SmallVector<const HostTensor *> operands;
      for (Value operand : op.getOperands())
        operands.push_back(&values[operand]);
      auto results = evaluator.evaluate(&op, operands);
      if (failed(results))
        return failure();
      for (auto [value, tensor] : llvm::zip_equal(op.getResults(), *results))
        values[value] = std::move(tensor);
    }
    for (auto [i, value] : llvm::enumerate(function.front().getTerminator()->getOperands()))
      if (auto name = function.getResultAttrOfType<StringAttr>(i, train::kOutput))
        outputs[name] = values[value];
    return success();
  }

private:
  ModuleOp parts;
  const ValueSource &source;
  Evaluator evaluator{evaluator::Precision::declared};
};

/// One operation differentiated by itself.
class LocalCheck {
public:
  LocalCheck(Operation *op, const Values &values, const autodiff::DifferentiateOptions &options)
      : op(op), values(values), options(options), builder(op->getLoc(), op->getContext()) {}

  /// The number of the first operand whose gradient is wrong, with the error; none when all are right.
  std::optional<unsigned> run(double tolerance, double &error);

private:
  static bool isFloat(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && isa<FloatType>(type.getElementType());
  }
  /// The sum of cotangents times results.
  double weigh(ArrayRef<const HostTensor *> operands);

  Operation *op;
  const Values &values;
  const autodiff::DifferentiateOptions &options;
  nn::TensorBuilder builder;
  Evaluator evaluator{evaluator::Precision::declared};
  SmallVector<HostTensor> cotangents; ///< as results; empty types for integers
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

std::optional<unsigned> LocalCheck::run(double tolerance, double &error) {
  host::Random random(1);
  auto draw = [&](RankedTensorType type) {
    HostTensor tensor(type);
    for (int64_t i = 0; tensor.isFloat() && i < tensor.size(); ++i)
      tensor.setFloat(i, random.normal());
    return tensor;
  };
  for (Value result : op->getResults())
    cotangents.push_back(draw(cast<RankedTensorType>(result.getType())));

  // A function of operands and cotangents that returns the gradients.
  OwningOpRef<ModuleOp> module = ModuleOp::create(op->getLoc());
  builder.setInsertionPointToEnd(module->getBody());
  auto function = func::FuncOp::create(builder, "local", builder.getFunctionType({}, {}));
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  SmallVector<HostTensor> arguments;
  SmallVector<Value> operands, outputs, weights;
  SmallVector<unsigned> numbers;
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
    return std::nullopt;
  auto gradients = autodiff::differentiate(builder, outputs, weights, operands, options);
  if (failed(gradients))
    return std::nullopt;
  SmallVector<Value> results;
  for (auto [gradient, operand] : llvm::zip_equal(gradients->gradients, operands))
    results.push_back(gradient ? gradient : builder.zerosLike(operand));
  func::ReturnOp::create(builder, results);
  auto evaluated = evaluator.evaluate(*block, arguments);
  if (failed(evaluated))
    return std::nullopt;

  for (auto [k, number] : llvm::enumerate(numbers)) {
    const HostTensor &at = arguments[number], &gradient = (*evaluated)[k];
    HostTensor direction = draw(at.getType()), moved = at;
    double derivative = 0, squares = 0, norm = 0, largest = 0;
    for (int64_t i = 0; i < at.size(); ++i) {
      norm += at.getFloat(i) * at.getFloat(i);
      squares += direction.getFloat(i) * direction.getFloat(i);
      largest += gradient.getFloat(i) * gradient.getFloat(i);
    }
    if (!(squares > 0) || !std::isfinite(norm))
      continue;
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
      continue;
    host::Difference difference =
        host::compareDerivative(f, value, derivative, {tolerance, 1e-9, 1e-4 * std::max(0.1, std::sqrt(norm))});
    if (difference.isGood)
      continue;
    error = difference.error;
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
  return node.empty() ? ", part of the " + type.str() : ", part of the node '" + node.str() + "' (" + type.str() + ")";
}

/// The gradients of the evaluator against those of generated code; "" when they agree.
static std::string compareWithEvaluator(ModuleOp parts, Program &program, const NamedGradients &compiled, double tolerance,
                                        bool &isKnown) {
  auto backward = parts.lookupSymbol<func::FuncOp>("backward_0");
  llvm::StringMap<HostTensor> none;
  Values values;
  isKnown = backward && succeeded(program.evaluate(backward, none, values));
  if (!isKnown)
    return "";
  for (auto [i, value] : llvm::enumerate(backward.front().getTerminator()->getOperands())) {
    auto symbol = backward.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradient);
    if (!symbol)
      continue;
    auto tensor = parts.lookupSymbol<train::TensorOp>(symbol.getValue());
    auto found = compiled.find(tensor.getName().str());
    const HostTensor &mine = values[value];
    if (found == compiled.end() || int64_t(found->second.size()) != mine.size())
      continue;
    // Sorted, because layouts differ; a wrong number moves the order statistics too.
    std::vector<double> a(found->second), b;
    for (int64_t k = 0; k < mine.size(); ++k)
      b.push_back(mine.getFloat(k));
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    double largest = 0, distance = 0;
    for (size_t k = 0; k < a.size(); ++k) {
      largest = std::max({largest, std::fabs(a[k]), std::fabs(b[k])});
      distance = std::max(distance, std::fabs(a[k] - b[k]));
    }
    if (!(distance <= tolerance * largest + 1e-300))
      return "generated code and evaluator give different gradients of '" + tensor.getName().str() + "' (they differ by " +
             host::formatShort(distance / largest, 2) + " of the largest): a kernel is to be suspected, and no gradient rule";
  }
  return "";
}

std::string findSuspect(ModuleOp parts, const ValueSource &source, const NamedGradients &compiled,
                        const autodiff::DifferentiateOptions &options, double tolerance) {
  Program program(parts, source);
  bool isKnown = false;
  std::string kernels = compareWithEvaluator(parts, program, compiled, tolerance, isKnown);
  if (!kernels.empty())
    return kernels;
  llvm::StringMap<HostTensor> outputs;
  std::set<std::string> seen;
  for (const char *name : {"forward_train_0", "loss_0"}) {
    auto function = parts.lookupSymbol<func::FuncOp>(name);
    Values values;
    if (!function || failed(program.evaluate(function, outputs, values)))
      return "the evaluator cannot run this program, so no operation can be named";
    for (Operation &op : function.front().without_terminator()) {
      if (op.getNumOperands() == 0 || !Evaluator::isKnown(&op))
        continue;
      double error = 0;
      std::optional<unsigned> operand = LocalCheck(&op, values, options).run(tolerance, error);
      if (operand)
        return "the first operation to suspect is " + op.getName().getStringRef().str() + describeNode(&op) +
               ": alone, its gradient for operand " + std::to_string(*operand) + " is off by " + host::formatShort(error, 2);
    }
  }
  return std::string("every operation's gradient is right by itself") +
         (isKnown ? ", and generated code and evaluator agree" : "") +
         ": contributions to a value may be lost or counted twice. Please report this with the model";
}

} // namespace ortc::driver
