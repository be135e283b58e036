//===- GradientsTest.cpp - every rule, every operand ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the cases of Inputs/*.mlir: numeric ones against central differences, with every operand's gradient
// mutated in turn (the check must then fail); special points against exact values. An operation with a rule
// and without a case fails.
#include "test/gradients/GradientCheck.h"

#include "compiler/autodiff/DifferentiableOpInterface.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

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

TEST_F(GradientRulesTest, SpecialPointsFollowTheConventions) {
  OwningOpRef<ModuleOp> module = load("special-points");
  ASSERT_TRUE(module);
  for (func::FuncOp function : module->getOps<func::FuncOp>()) {
    SCOPED_TRACE(function.getName().str());
    auto engine =
        engineGradients(function, makeArguments(function, 1), makeCotangents(function, 1, /*ones=*/true));
    ASSERT_TRUE(succeeded(engine));
    unsigned compared = 0;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto attribute = function.getArgAttrOfType<ElementsAttr>(i, "test.gradient");
      if (!attribute)
        continue;
      HostTensor expected = *HostTensor::fromAttribute(attribute);
      for (int64_t j = 0; j < expected.size(); ++j, ++compared)
        EXPECT_EQ((*engine)[i].getFloat(j), expected.getFloat(j)) << "argument " << i << ", element " << j;
    }
    EXPECT_GT(compared, 0u);
  }
}

TEST_F(GradientRulesTest, EveryRuleHasACase) {
  std::set<std::string> seen;
  for (const char *family : kFamilies)
    if (OwningOpRef<ModuleOp> module = load(family))
      module->walk([&](Operation *op) { seen.insert(op->getName().getStringRef().str()); });
  unsigned rules = 0;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.hasInterface<autodiff::DifferentiableOpInterface>()) {
      ++rules;
      EXPECT_TRUE(seen.count(name.getStringRef().str()))
          << name.getStringRef().str() << " has a rule and no numeric case";
    }
  EXPECT_GT(rules, 60u);
}

} // namespace
