//===- GradientsTest.cpp - every rule, every operand ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the cases of Inputs/*.mlir: numeric ones against central differences, with every operand's gradient
// mutated in turn (the check must then fail); special points against PyTorch's numbers. An operation with a rule
// and without a numeric case, special points or a test of what it saves fails.
#include "test/gradients/GradientCheck.h"

#include "compiler/autodiff/DifferentiableOpInterface.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Regex.h"
#include "gtest/gtest.h"

#include <cmath>
#include <fstream>
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

/// Whether changing operand `i` of `op` changes anything a gradient sees.
static bool isDifferentiated(Operation &op, unsigned i) {
  auto isFloat = [](Value value) { return isa<FloatType>(nn::TensorBuilder::elementOf(value)); };
  return isFloat(op.getOperand(i)) && llvm::any_of(op.getResults(), isFloat);
}

TEST_P(GradientsTest, WrongRuleIsNoticed) {
  OwningOpRef<ModuleOp> module = load(GetParam());
  ASSERT_TRUE(module);
  for (func::FuncOp function : module->getOps<func::FuncOp>()) {
    if (function->hasAttr("test.zero"))
      continue; // a gradient that is zero has nothing to scale
    auto arguments = makeArguments(function, 1);
    auto cotangents = makeCotangents(function, 1);
    auto numeric = numericGradients(function, arguments, cotangents);
    std::set<std::pair<std::string, unsigned>> done;
    for (Operation &op : function.front().without_terminator()) {
      for (unsigned i = 0; i < op.getNumOperands(); ++i) {
        autodiff::DifferentiateOptions options;
        options.mutation.operation = op.getName().getStringRef().str();
        options.mutation.operand = i;
        if (!isDifferentiated(op, i) || !done.emplace(options.mutation.operation, i).second)
          continue;
        // Only what depends on an argument can be noticed.
        auto inert = [](Value value) {
          return value.getDefiningOp() && value.getDefiningOp()->hasTrait<OpTrait::ConstantLike>();
        };
        if (inert(op.getOperand(i)))
          continue;
        auto engine = engineGradients(function, arguments, cotangents, options);
        ASSERT_TRUE(succeeded(engine));
        EXPECT_GT(distance(*engine, numeric), 10 * kTolerance)
            << function.getName().str() << ": operand " << i << " of " << options.mutation.operation;
      }
    }
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

TEST_F(GradientRulesTest, EveryRuleHasItsProofs) {
  std::set<std::string> numeric, special, saved = namesWithSavedValues();
  for (const char *family : kFamilies)
    if (OwningOpRef<ModuleOp> module = load(family))
      collect(*module, numeric);
  if (OwningOpRef<ModuleOp> module = load("special-points"))
    collect(*module, special);
  unsigned rules = 0;
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    if (!name.hasInterface<autodiff::DifferentiableOpInterface>())
      continue;
    ++rules;
    std::string rule = name.getStringRef().str();
    EXPECT_TRUE(numeric.count(rule)) << rule << " has a rule and no numeric case in Inputs/<family>.mlir";
    EXPECT_TRUE(special.count(rule)) << rule << " has a rule and no case in make_special_points.py";
    EXPECT_TRUE(saved.count(rule)) << rule
                                   << " has a rule and no line in compiler/autodiff/saved-values.mlir";
  }
  EXPECT_GT(rules, 60u);
}

} // namespace
