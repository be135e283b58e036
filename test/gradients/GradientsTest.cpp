// Every rule, every operand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the cases of Inputs/*.mlir: numeric ones against central differences, with every operand's gradient
// mutated in turn (the check must then fail); special points against PyTorch's numbers. An operation with a rule
// and without a numeric case, a mutation that is noticed in every operand, special points or a test of what it saves
// fails.
#include "test/gradients/GradientCheck.h"

#include "compiler/autodiff/DifferentiableOpInterface.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Regex.h"
#include "gtest/gtest.h"

#include <cmath>
#include <fstream>
#include <map>
#include <set>

using namespace mlir;
using namespace ortc;
using namespace ortc::gradients;
using evaluator::HostTensor;

namespace {

class Harness {
protected:
  Harness() {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, arith::ArithDialect, math::MathDialect, nn::NnDialect>();
    autodiff::registerGradientRules(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.allowUnregisteredDialects();
  }
  OwningOpRef<ModuleOp> load(StringRef file) {
    auto module =
        parseSourceFile<ModuleOp>((ORTC_TEST_DATA "/gradients/Inputs/" + file + ".mlir").str(), &context);
    EXPECT_TRUE(module) << file.str();
    return module;
  }
  MLIRContext context{MLIRContext::Threading::DISABLED};
};

class GradientsTest : public Harness, public ::testing::TestWithParam<const char *> {};
class GradientRulesTest : public Harness, public ::testing::Test {};

constexpr const char *kFamilies[] = {"arith",       "math",    "movement", "reduction",
                                     "contraction", "spatial", "indexing", "scan"};

TEST_P(GradientsTest, AgreeWithCentralDifferences) {
  OwningOpRef<ModuleOp> module = load(GetParam());
  ASSERT_TRUE(module);
  for (func::FuncOp function : module->getOps<func::FuncOp>()) {
    SCOPED_TRACE(function.getName().str());
    for (unsigned seed : {1, 2, 3}) {
      auto arguments = makeArguments(function, seed);
      auto cotangents = makeCotangents(function, seed);
      auto engine = engineGradients(function, arguments, cotangents);
      ASSERT_TRUE(succeeded(engine));
      EXPECT_LE(distance(*engine, numericGradients(function, arguments, cotangents)), kTolerance)
          << "seed " << seed;
    }
  }
}

/// An operand of an operation.
using Operand = std::pair<std::string, unsigned>;

/// The floating-point operands of a function's operations.
static std::set<Operand> operandsOf(func::FuncOp function) {
  std::set<Operand> operands;
  for (Operation &op : function.front().without_terminator())
    for (auto [i, operand] : llvm::enumerate(op.getOperands()))
      if (isa<FloatType>(nn::TensorBuilder::elementOf(operand)))
        operands.emplace(op.getName().getStringRef().str(), i);
  return operands;
}

/// The largest distance of the engine's gradients from `numeric` when those of `operand` are multiplied by
/// `factor`. Not a number where a gradient is none.
static double mutate(func::FuncOp function, ArrayRef<HostTensor> numeric, const Operand &operand,
                     double factor) {
  autodiff::DifferentiateOptions options;
  options.mutation.operation = operand.first;
  options.mutation.operand = operand.second;
  options.mutation.factor = factor;
  auto engine = engineGradients(function, makeArguments(function, 1), makeCotangents(function, 1), options);
  EXPECT_TRUE(succeeded(engine));
  return succeeded(engine) ? distance(*engine, numeric) : 0;
}

static SmallVector<HostTensor> numericGradientsOf(func::FuncOp function) {
  return numericGradients(function, makeArguments(function, 1), makeCotangents(function, 1));
}

/// The operands whose gradients take part in those of the function's arguments: what is multiplied by NaN stays NaN.
static std::set<Operand> differentiatedOperands(func::FuncOp function, ArrayRef<HostTensor> numeric) {
  std::set<Operand> operands;
  for (const Operand &operand : operandsOf(function))
    if (mutate(function, numeric, operand, NAN) == INFINITY)
      operands.insert(operand);
  return operands;
}

TEST_P(GradientsTest, WrongRuleIsNoticed) {
  OwningOpRef<ModuleOp> module = load(GetParam());
  ASSERT_TRUE(module);
  for (func::FuncOp function : module->getOps<func::FuncOp>()) {
    auto numeric = numericGradientsOf(function);
    for (const Operand &operand : differentiatedOperands(function, numeric))
      EXPECT_GT(mutate(function, numeric, operand, 1.01), 10 * kTolerance)
          << function.getName().str() << ": operand " << operand.second << " of " << operand.first;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GradientsTest, ::testing::ValuesIn(kFamilies),
                         [](const auto &info) { return std::string(info.param); });

/// Special points were computed by another library: its elementary functions may differ in the last bits, through a
/// handful of operations.
constexpr double kOtherLibrary = 1e-13;

static bool isSame(double a, double b) {
  if (std::isnan(b) || std::isinf(b))
    return std::isnan(b) ? std::isnan(a) : a == b;
  return std::fabs(a - b) <= kOtherLibrary * std::fabs(b);
}

TEST_F(GradientRulesTest, SpecialPointsFollowTheConventions) {
  OwningOpRef<ModuleOp> module = load("special-points");
  ASSERT_TRUE(module);
  for (func::FuncOp function : module->getOps<func::FuncOp>()) {
    SCOPED_TRACE(function.getName().str());
    auto engine =
        engineGradients(function, makeArguments(function, 1), makeCotangents(function, 1, /*ones=*/true));
    ASSERT_TRUE(succeeded(engine));
    bool isCompared = false;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto attribute = function.getArgAttrOfType<ElementsAttr>(i, "test.gradient");
      if (!attribute)
        continue;
      isCompared = true;
      HostTensor expected = *HostTensor::fromAttribute(attribute);
      ASSERT_EQ((*engine)[i].getType(), expected.getType()) << "argument " << i;
      for (int64_t j = 0; j < expected.size(); ++j)
        EXPECT_TRUE(isSame((*engine)[i].getFloat(j), expected.getFloat(j)))
            << "argument " << i << ", element " << j << ": " << (*engine)[i].getFloat(j) << " instead of "
            << expected.getFloat(j);
    }
    EXPECT_TRUE(isCompared);
  }
}

/// Names of the operations of one case file.
static void collect(ModuleOp module, std::set<std::string> &names) {
  module.walk([&](Operation *op) { names.insert(op->getName().getStringRef().str()); });
}

/// Names of the operations whose saved values the lit test names: those on the line below an expected remark.
static std::set<std::string> namesWithSavedValues() {
  std::set<std::string> names;
  std::ifstream file(ORTC_TEST_DATA "/compiler/autodiff/saved-values.mlir");
  EXPECT_TRUE(file);
  bool isExpected = false;
  llvm::Regex operation("= ([a-z]+\\.[a-z0-9_]+)");
  for (std::string line; std::getline(file, line);) {
    SmallVector<StringRef> match;
    if (isExpected && operation.match(line, &match))
      names.insert(match[1].str());
    isExpected = StringRef(line).contains("expected-remark@+1");
  }
  return names;
}

/// Operands to which a rule gives no gradient, and why: there is nothing to multiply.
static const std::map<Operand, const char *> &operandsWithoutGradient() {
  static const std::map<Operand, const char *> operands = {
      {{"math.ceil", 0}, "piecewise constant"},
      {{"math.floor", 0}, "piecewise constant"},
      {{"math.round", 0}, "piecewise constant"},
      {{"math.roundeven", 0}, "piecewise constant"},
      {{"math.trunc", 0}, "piecewise constant"},
      {{"math.copysign", 1}, "only its sign counts"},
      {{"nn.straight_through", 0}, "its gradient goes to the other operand"},
      {{"nn.detach", 0}, "that is what it is for"},
      {{"nn.arg_reduce", 0}, "the result is an index"},
      {{"nn.arg_sort", 0}, "the result is an index"},
  };
  return operands;
}

TEST_F(GradientRulesTest, EveryRuleHasItsProofs) {
  std::set<std::string> numeric, special, saved = namesWithSavedValues(), names;
  std::set<Operand> operands, noticed; // noticed: by WrongRuleIsNoticed
  for (const char *family : kFamilies)
    if (OwningOpRef<ModuleOp> module = load(family)) {
      collect(*module, numeric);
      for (func::FuncOp function : module->getOps<func::FuncOp>()) {
        operands.merge(operandsOf(function));
        noticed.merge(differentiatedOperands(function, numericGradientsOf(function)));
      }
    }
  if (OwningOpRef<ModuleOp> module = load("special-points"))
    collect(*module, special);
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    if (!name.hasInterface<autodiff::DifferentiableOpInterface>())
      continue;
    std::string rule = name.getStringRef().str();
    names.insert(rule);
    EXPECT_TRUE(numeric.count(rule)) << rule << " has a rule and no numeric case in Inputs/<family>.mlir";
    EXPECT_TRUE(special.count(rule)) << rule << " has a rule and no case in make_special_points.py";
    EXPECT_TRUE(saved.count(rule)) << rule
                                   << " has a rule and no line in compiler/autodiff/saved-values.mlir";
  }
  for (const std::string &name : saved)
    EXPECT_TRUE(names.count(name)) << name << " has saved values and no rule";
  for (const Operand &operand : operands) {
    if (!names.count(operand.first))
      continue;
    EXPECT_NE(noticed.count(operand), operandsWithoutGradient().count(operand))
        << "operand " << operand.second << " of " << operand.first
        << ": either a wrong gradient of it is noticed, or operandsWithoutGradient says why there is none";
  }
  for (const auto &[operand, reason] : operandsWithoutGradient())
    EXPECT_TRUE(operands.count(operand)) << operand.first << " has no case; " << reason;
}

} // namespace
