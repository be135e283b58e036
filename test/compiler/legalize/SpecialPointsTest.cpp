// Derivatives that formulas keep.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Legalisation and simplification may write an operator as others with the same value; its derivative must not be
// lost at zeros, ones, ties, bounds, negative axes and infinities. special-points/NAME.onnx has many formulas, each of
// an initializer with the formula's name; `grad/...` are PyTorch's gradients of their sum in float64
// (make-special-points.py).
#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/TrainingProgram.h"
#include "compiler/pipeline/Pipelines.h"
#include "test/compiler/legalize/Cases.h"

using namespace mlir;
using namespace ortc;
using namespace ortc::legalize;

static std::string folder() { return casesFolder("", "special-points"); }

/// Numbers of a formula were rounded to float32, the type of the models; the rest is computed in float64.
static constexpr double kRounded = 1e-6;

static bool isSame(double a, double b) {
  if (std::isnan(b) || std::isinf(b))
    return std::isnan(b) ? std::isnan(a) : a == b;
  return std::fabs(a - b) <= kRounded * std::fabs(b);
}

namespace {

class SpecialPointsTest : public testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(SpecialPointsTest, FormulasHaveTheirDerivatives) {
  auto [name, isSimplified] = GetParam();
  DialectRegistry registry;
  autodiff::registerGradientRules(registry);
  LegalCase subject(registry);
  LegalizeOptions options;
  options.lossOutputs = {"loss"};
  ASSERT_TRUE(NamePattern::parse(".*").moveTo(options.train.emplace_back()).isOk());
  ASSERT_NO_FATAL_FAILURE(subject.load(folder() + "/" + name, options));
  if (isSimplified) {
    PassManager passes(&subject.context);
    pipeline::buildSimplify(passes);
    ASSERT_TRUE(succeeded(passes.run(*subject.target)));
  }
  LossSpec loss;
  ASSERT_TRUE(train::parseLoss("output:loss").moveTo(loss).isOk());
  ASSERT_TRUE(succeeded(train::buildLoss(*subject.target, loss, "loss")));
  ASSERT_TRUE(succeeded(train::differentiateLoss(*subject.target)));
  auto function = subject.target->lookupSymbol<func::FuncOp>("backward_0");
  ASSERT_TRUE(function);
  auto results = subject.evaluate(function, evaluator::Precision::f64);
  size_t compared = 0;
  for (unsigned i = 0; i < results.size(); ++i) {
    auto symbol = function.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradient);
    if (!symbol)
      continue;
    auto tensor = SymbolTable::lookupNearestSymbolFrom<train::TensorOp>(*subject.target, symbol);
    std::string formula = tensor.getName().str();
    HostTensor points = *HostTensor::fromAttribute(*tensor.getInitial());
    Array want;
    ASSERT_TRUE(subject.data->load("grad/" + formula, want).isOk()) << formula;
    ASSERT_EQ(points.size() * sizeof(double), want.bytes) << formula;
    ++compared;
    for (int64_t k = 0; k < points.size(); ++k)
      EXPECT_TRUE(isSame(results[i].getFloat(k), elementOf(want, k)))
          << formula << " at " << points.getFloat(k) << " (element " << k << "): " << results[i].getFloat(k)
          << ", not " << elementOf(want, k);
  }
  EXPECT_EQ(compared, subject.data->getNames().size());
}

static std::string nameOf(const testing::TestParamInfo<std::tuple<std::string, bool>> &info) {
  return testName({std::get<0>(info.param), info.index}) +
         (std::get<1>(info.param) ? "_simplified" : "_legalized");
}

INSTANTIATE_TEST_SUITE_P(Formulas, SpecialPointsTest,
                         testing::Combine(testing::ValuesIn(listCases(folder())), testing::Bool()), nameOf);

TEST(SpecialPoints, AreAllThere) { expectAllCases("special-points", 5); }

} // namespace
