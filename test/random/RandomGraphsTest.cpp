// Gradients of random compositions: the engine's against central differences, generated code's against the engine's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything computes in float64. The loss of a model is evaluated by the evaluator; the gradients of the
// compiled model come from the tool, through fusion, placement and the kernels. A model that fails is named
// by its seed and operators.
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/TrainingProgram.h"
#include "engine/data/writers.h"
#include "test/compiler/legalize/Cases.h"
#include "test/e2e/Tool.h"
#include "test/random/GraphGenerator.h"

using namespace mlir;
using namespace ortc;
using namespace ortc::legalize;

namespace {

constexpr unsigned kModels = 200;
/// Models in one test: ctest runs tests side by side.
constexpr unsigned kModelsPerTest = 25;

/// A central difference is right to about the square of its step; near a kink a smaller step is needed, which
/// costs digits.
struct Step {
  double size, tolerance;
};
constexpr Step kSteps[] = {{1e-5, 1e-6}, {1e-6, 1e-5}, {1e-7, 1e-4}};
/// Generated code sums in another order than the evaluator.
constexpr double kCodeTolerance = 1e-9;

std::string describe(unsigned seed, const test::RandomModel &model) {
  std::string text = "seed " + std::to_string(seed) + ":";
  for (const std::string &op : model.operators)
    text += " " + op;
  return text;
}

/// Writes what the tool reads, and the same arrays as `in/...` for the evaluator.
void writeArrays(const std::string &path, const std::string &prefix, const test::RandomModel &model) {
  std::vector<engine::OutputArray> arrays;
  for (const auto &[name, array] : model.feeds) {
    const auto *bytes = reinterpret_cast<const uint8_t *>(array.data.data());
    Shape shape = array.shape.empty() ? Shape{1} : array.shape;
    arrays.push_back(
        {prefix + name, DataType::Float32, shape, {bytes, bytes + array.data.size() * sizeof(float)}});
  }
  ASSERT_TRUE(engine::writeNpz(path, arrays).isOk());
}

/// The model's loss and gradients as one function of its weights.
class Program {
public:
  explicit Program(const DialectRegistry &registry) : subject(registry) {}

  void load(const std::string &base, const autodiff::DifferentiateOptions &differentiate = {}) {
    LegalizeOptions options;
    LossSpec loss;
    ASSERT_TRUE(train::parseLoss("mse").moveTo(loss).isOk());
    ASSERT_TRUE(NamePattern::parse("w[0-9]+").moveTo(options.train.emplace_back()).isOk());
    options.float64 = true;
    ASSERT_NO_FATAL_FAILURE(subject.load(base, options));
    ASSERT_TRUE(succeeded(train::buildLoss(*subject.target, loss, "")));
    ASSERT_TRUE(succeeded(train::differentiateLoss(*subject.target, differentiate)));
    function = subject.target->lookupSymbol<func::FuncOp>("backward_0");
    ASSERT_TRUE(function);
    arguments = subject.arguments(function);
    results = evaluate();
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      if (function.getResultAttr(i, train::kLoss))
        lossAt = i;
      if (auto symbol = function.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradient))
        gradientAt[symbol.getValue().str()] = i;
    }
  }

  /// Compares the gradients of all weights along random directions and for single elements; what disagrees, or nothing.
  std::string compareWithDifferences() {
    std::string text;
    for (BlockArgument argument : function.getArguments()) {
      unsigned number = argument.getArgNumber();
      auto symbol = function.getArgAttrOfType<FlatSymbolRefAttr>(number, train::kTensor);
      if (symbol && gradientAt.count(symbol.getValue().str()))
        text += compareOne(number, results[gradientAt[symbol.getValue().str()]]);
    }
    return text;
  }

  LegalCase subject;
  func::FuncOp function;
  std::vector<HostTensor> arguments;
  SmallVector<HostTensor> results;
  unsigned lossAt = 0;
  std::map<std::string, unsigned> gradientAt;

private:
  std::string compareOne(unsigned argument, const HostTensor &gradient) {
    std::mt19937 random(argument + 1);
    HostTensor direction(gradient.getType());
    for (int64_t i = 0; i < direction.size(); ++i)
      direction.setFloat(i, static_cast<double>(random() % 2001) / 1000 - 1);
    std::string text = compareAlong(argument, gradient, direction, "along a random direction");
    for (int64_t i = 0; i < gradient.size(); i += std::max<int64_t>(1, gradient.size() / 2)) {
      HostTensor one(gradient.getType());
      one.setFloat(i, 1);
      text += compareAlong(argument, gradient, one, "of element " + std::to_string(i));
    }
    return text;
  }

  SmallVector<HostTensor> evaluate() {
    auto values = evaluator::Evaluator(evaluator::Precision::f64).evaluate(function.front(), arguments);
    EXPECT_TRUE(succeeded(values));
    return succeeded(values) ? *values : SmallVector<HostTensor>();
  }

  double lossAround(unsigned argument, const HostTensor &direction, double step) {
    HostTensor kept = arguments[argument];
    for (int64_t i = 0; i < kept.size(); ++i)
      arguments[argument].setFloat(i, kept.getFloat(i) + step * direction.getFloat(i));
    double loss = evaluate()[lossAt].getFloat(0);
    arguments[argument] = kept;
    return loss;
  }

  std::string compareAlong(unsigned argument, const HostTensor &gradient, const HostTensor &direction,
                           const std::string &what) {
    double slope = 0, scale = 1e-2;
    for (int64_t i = 0; i < gradient.size(); ++i) {
      slope += gradient.getFloat(i) * direction.getFloat(i);
      scale = std::max(scale, std::fabs(gradient.getFloat(i)));
    }
    std::string text;
    for (const Step &step : kSteps) {
      double difference =
          (lossAround(argument, direction, step.size) - lossAround(argument, direction, -step.size)) /
          (2 * step.size);
      if (std::fabs(difference - slope) <= step.tolerance * std::max(scale, std::fabs(difference)))
        return "";
      text += " " + std::to_string(difference);
    }
    return "the gradient " + what + " of argument " + std::to_string(argument) + " is " +
           std::to_string(slope) + ", differences give" + text + "\n";
  }
};

class RandomGraphsTest : public testing::TestWithParam<unsigned> {
protected:
  static DialectRegistry rules() {
    DialectRegistry registry;
    autodiff::registerGradientRules(registry);
    return registry;
  }

  /// The model and its arrays; the path of its files without extensions.
  std::string write(unsigned seed, const test::RandomModel &model) {
    std::string base = folder / ("model" + std::to_string(seed));
    folder.write("model" + std::to_string(seed) + ".onnx", model.model.SerializeAsString());
    writeArrays(base + ".npz", "in/", model);
    writeArrays(base + "-data.npz", "", model);
    return base;
  }

  using Check = llvm::function_ref<void(const std::string &base, Program &program)>;

  /// Gives `check` every model of this test: the path of its files and its program, with the engine's gradients.
  void forEachModel(Check check) {
    for (unsigned seed = GetParam(); seed < GetParam() + kModelsPerTest; ++seed)
      withModel(seed, check);
  }

  /// Compiles for `target` and compares what `ortc gradients` with the flags `device` gives.
  void compareGeneratedCode(const std::string &base, const Program &program, const std::string &target,
                            const std::vector<std::string> &device) {
    test::mustRun({"train", base + ".onnx", "-o", base + "-out", "--loss", "mse", "--train", "w[0-9]+",
                   "--precision", "f64", "--gradients", "--target", target, "--quiet"});
    std::vector<std::string> gradients = {"gradients", base + "-out",         "--data", base + "-data.npz",
                                          "-o",        base + ".safetensors", "--quiet"};
    gradients.insert(gradients.end(), device.begin(), device.end());
    test::mustRun(gradients);
    auto compiled = test::loadValues(base + ".safetensors");
    for (const auto &[name, at] : program.gradientAt) {
      const HostTensor &want = program.results[at];
      ASSERT_TRUE(compiled.count(name)) << name;
      const test::Values &got = compiled[name];
      ASSERT_EQ(static_cast<int64_t>(got.data.size()), want.size()) << name;
      double scale = 1e-2;
      for (int64_t i = 0; i < want.size(); ++i)
        scale = std::max(scale, std::fabs(want.getFloat(i)));
      for (int64_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got.data[i], want.getFloat(i), kCodeTolerance * scale)
            << name << "[" << i << "] of generated code";
    }
  }

  test::TemporaryFolder folder;

private:
  void withModel(unsigned seed, Check check) {
    test::RandomModel model = test::generateModel(seed);
    SCOPED_TRACE(describe(seed, model));
    std::string base = write(seed, model);
    Program program(rules());
    ASSERT_NO_FATAL_FAILURE(program.load(base));
    ASSERT_FALSE(program.gradientAt.empty());
    check(base, program);
  }
};

TEST_P(RandomGraphsTest, GradientsAgreeWithDifferencesAndGeneratedCode) {
  forEachModel([&](const std::string &base, Program &program) {
    EXPECT_EQ(program.compareWithDifferences(), "");
    compareGeneratedCode(base, program, "native", {});
  });
}

/// A rule that is off by one per cent in one operand must show in some model that uses it.
TEST_P(RandomGraphsTest, WrongRuleIsNoticed) {
  for (StringRef operation : {"nn.dot", "arith.mulf"}) {
    autodiff::DifferentiateOptions wrong;
    wrong.mutation = {operation.str(), 1, 1.01};
    bool isNoticed = false;
    for (unsigned seed = GetParam(); seed < GetParam() + kModelsPerTest && !isNoticed; ++seed) {
      Program program(rules());
      ASSERT_NO_FATAL_FAILURE(program.load(write(seed, test::generateModel(seed)), wrong));
      isNoticed = !program.compareWithDifferences().empty();
    }
    EXPECT_TRUE(isNoticed) << operation.str();
  }
}

/// The same models on the GPU of $ORTC_CUDA_DRIVER, or of the machine.
class DeviceRandomGraphsTest : public RandomGraphsTest {};

TEST_P(DeviceRandomGraphsTest, GeneratedCodeAgreesWithTheEngine) {
  forEachModel([&](const std::string &base, Program &program) {
    compareGeneratedCode(base, program, "sm_80", {"--device", "cuda"});
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphsTest, testing::Range(0u, kModels, kModelsPerTest));
INSTANTIATE_TEST_SUITE_P(Seeds, DeviceRandomGraphsTest, testing::Range(0u, kModels, kModelsPerTest));

} // namespace
