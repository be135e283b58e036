// Gradients of legalised models.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What legalisation makes of an operator must have the operator's gradient, at kinks and ties as well.
// gradients/NAME is a model whose initializers p0, p1, ... are trained with the mean squared error;
// `grad/...` are PyTorch's gradients in float64 (README.md there). ORTC_GRADIENT_CASES names another folder;
// NAME.flags may hold flags, one a line.
#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/TrainingProgram.h"
#include "test/compiler/legalize/Cases.h"

#include <fstream>

using namespace mlir;
using namespace ortc;
using namespace ortc::legalize;

static std::string folder() { return casesFolder("ORTC_GRADIENT_CASES", "gradients"); }

namespace {

struct Flags {
  LegalizeOptions options;
  LossSpec loss;
};

Flags readFlags(const std::string &path) {
  Flags flags;
  std::string line;
  std::ifstream file(path);
  bool any = false;
  CompileOptions shapes;
  for (; std::getline(file, line); any = true) {
    std::string value = line.substr(line.find(' ') + 1);
    Status status;
    if (line.rfind("--loss ", 0) == 0) {
      status = train::parseLoss(value).moveTo(flags.loss);
    } else if (line.rfind("--loss-input ", 0) == 0) {
      flags.options.lossOutputs = {value};
    } else if (line.rfind("--batch-norm ", 0) == 0) {
      status = parseBatchNorm(value).moveTo(flags.options.batchNorm);
    } else if (line.rfind("--train ", 0) == 0 || line.rfind("--freeze ", 0) == 0) {
      auto &patterns = line[2] == 't' ? flags.options.train : flags.options.freeze;
      status = NamePattern::parse(value).moveTo(patterns.emplace_back());
    }
    EXPECT_TRUE(status.isOk()) << status.getMessage();
  }
  if (any) {
    if (flags.loss.source == LossSource::Output)
      flags.options.lossOutputs = flags.loss.outputs;
    return flags;
  }
  EXPECT_TRUE(train::parseLoss("mse").moveTo(flags.loss).isOk());
  EXPECT_TRUE(NamePattern::parse("p[0-9]+").moveTo(flags.options.train.emplace_back()).isOk());
  return flags;
}

class GradientTest : public testing::TestWithParam<std::string> {};

TEST_P(GradientTest, AgreesWithPyTorch) {
  DialectRegistry registry;
  autodiff::registerGradientRules(registry);
  LegalCase subject(registry);
  std::string base = folder() + "/" + GetParam();
  Flags flags = readFlags(base + ".flags");
  ASSERT_NO_FATAL_FAILURE(subject.load(base, flags.options));
  ASSERT_TRUE(succeeded(train::buildLoss(
      *subject.target, flags.loss, flags.options.lossOutputs.empty() ? "" : flags.options.lossOutputs[0])));
  ASSERT_TRUE(succeeded(train::differentiateLoss(*subject.target)));
  auto function = subject.target->lookupSymbol<func::FuncOp>("backward_0");
  ASSERT_TRUE(function);
  auto results = subject.evaluate(function, evaluator::Precision::f64);

  // Gradients that are zero in theory are judged by the largest one of the model.
  double largest = 0;
  llvm::StringMap<HostTensor> gradients;
  for (unsigned i = 0; i < results.size(); ++i)
    if (auto symbol = function.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradient))
      gradients[SymbolTable::lookupNearestSymbolFrom<train::TensorOp>(*subject.target, symbol).getName()] =
          results[i];
  SmallVector<Array> wanted;
  for (const std::string &name : subject.data->getNames())
    if (name.rfind("grad/", 0) == 0) {
      wanted.emplace_back();
      ASSERT_TRUE(subject.data->load(name, wanted.back()).isOk());
      for (size_t k = 0; k < wanted.back().bytes / getElementBytes(wanted.back().type); ++k)
        largest = std::max(largest, std::fabs(elementOf(wanted.back(), static_cast<int64_t>(k))));
    }
  for (const Array &want : wanted) {
    std::string name = want.name.substr(5);
    ASSERT_TRUE(gradients.contains(name)) << name << " has no gradient";
    const HostTensor &got = gradients[name];
    ASSERT_EQ(std::vector<int64_t>(got.getShape().begin(), got.getShape().end()), want.shape) << name;
    double scale = largest * 0.1;
    for (int64_t k = 0; k < got.size(); ++k)
      scale = std::max(scale, std::fabs(elementOf(want, k)));
    for (int64_t k = 0; k < got.size(); ++k) // constants were rounded to float32 when they folded
      ASSERT_NEAR(got.getFloat(k), elementOf(want, k), 2e-5 * scale) << name << "[" << k << "]";
  }
  EXPECT_FALSE(wanted.empty());
  EXPECT_EQ(gradients.size(), wanted.size()) << "something is trained that has no reference";
}

INSTANTIATE_TEST_SUITE_P(Cases, GradientTest, testing::ValuesIn(listCases(folder())), testName);

TEST(GradientCases, AreAllThere) { expectAllCases("gradients", 106); }

} // namespace
