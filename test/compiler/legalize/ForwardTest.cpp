//===- ForwardTest.cpp - legalised models against numbers from outside ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every cases/NAME.onnx is imported, legalised for evaluation and run by the evaluator; the outputs must be
// the arrays `out/...`. make-cases.py wrote them with ONNX Runtime. ORTC_LEGALIZE_CASES names another folder.
#include "test/compiler/legalize/Cases.h"

using namespace mlir;
using namespace ortc;
using namespace ortc::legalize;

static std::string folder() { return casesFolder("ORTC_LEGALIZE_CASES", "cases"); }

namespace {

/// The largest magnitude counts, as a program of that type could not do better: 1e-5 of it, 1e-3 for float16.
void compare(const std::string &name, const HostTensor &got, const host::Array &want) {
  ASSERT_EQ(std::vector<int64_t>(got.getShape().begin(), got.getShape().end()), want.shape) << name;
  double largest = 0.1, tolerance = want.type == host::DataType::Float16 ? 1e-3 : 1e-5;
  for (int64_t i = 0; i < got.size(); ++i)
    if (std::isfinite(elementOf(want, i)))
      largest = std::max(largest, std::fabs(elementOf(want, i)));
  for (int64_t i = 0; i < got.size(); ++i) {
    double a = got.isFloat() ? got.getFloat(i) : static_cast<double>(got.getInt(i)), b = elementOf(want, i);
    if (!got.isFloat() && (want.type == host::DataType::UInt8 || want.type == host::DataType::UInt16) &&
        a < 0)
      a += want.type == host::DataType::UInt8 ? 256 : 65536;
    bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= tolerance * largest;
    ASSERT_TRUE(same) << name << "[" << i << "] is " << a << ", not " << b;
  }
}

class ForwardTest : public testing::TestWithParam<std::string> {};

TEST_P(ForwardTest, GivesTheReferencesNumbers) {
  LegalizeOptions options;
  options.mode = Mode::eval;
  LegalCase subject;
  ASSERT_NO_FATAL_FAILURE(subject.load(folder() + "/" + GetParam(), options));
  func::FuncOp function = subject.report.function;
  auto results = subject.evaluate(function, evaluator::Precision::declared);
  unsigned compared = 0;
  for (unsigned i = 0; i < results.size(); ++i) {
    auto name = function.getResultAttrOfType<StringAttr>(i, train::kOutput);
    host::Array want;
    if (!name || !subject.data->has("out/" + name.str()))
      continue;
    ASSERT_TRUE(subject.data->load("out/" + name.str(), want).isOk());
    compare(name.str(), results[i], want);
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

INSTANTIATE_TEST_SUITE_P(Cases, ForwardTest, testing::ValuesIn(listCases(folder())), testName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ForwardTest);

} // namespace
