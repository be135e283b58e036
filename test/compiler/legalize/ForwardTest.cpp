//===- ForwardTest.cpp - legalised models against numbers from outside ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every cases/NAME.onnx is imported, legalised for evaluation and run by the evaluator; the outputs must be
// the arrays `out/...`. make-cases.py wrote them with ONNX Runtime. ORTC_LEGALIZE_CASES names another folder.
#include "test/compiler/legalize/Cases.h"

#include "dialects/train/ElementTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ortc;
using namespace ortc::legalize;

static std::string folder() { return casesFolder("ORTC_LEGALIZE_CASES", "cases"); }

namespace {

/// What the host would read: the program's integers are signless.
double hostValue(const HostTensor &tensor, int64_t i, Type dtype) {
  if (tensor.isFloat())
    return tensor.getFloat(i);
  int64_t value = tensor.getInt(i);
  if (!dtype)
    return static_cast<double>(value);
  return static_cast<double>(static_cast<uint64_t>(value) &
                             llvm::maskTrailingOnes<uint64_t>(dtype.getIntOrFloatBitWidth()));
}

/// The `train.dtype` that belongs to an array of the reference; null for types that need none.
Type dtypeOf(host::DataType type, MLIRContext *context) {
  auto isUnsigned = [&](unsigned width) { return IntegerType::get(context, width, IntegerType::Unsigned); };
  switch (type) {
  case host::DataType::UInt8:
    return isUnsigned(8);
  case host::DataType::UInt16:
    return isUnsigned(16);
  case host::DataType::UInt32:
    return isUnsigned(32);
  case host::DataType::UInt64:
    return isUnsigned(64);
  default:
    return {};
  }
}

/// The largest magnitude counts, as a program of that type could not do better: 1e-5 of it, 1e-3 for float16.
void compare(const std::string &name, const HostTensor &got, Type dtype, const host::Array &want) {
  ASSERT_EQ(dtype, dtypeOf(want.type, got.getType().getContext())) << name;
  ASSERT_EQ(std::vector<int64_t>(got.getShape().begin(), got.getShape().end()), want.shape) << name;
  double largest = 0.1, tolerance = want.type == host::DataType::Float16 ? 1e-3 : 1e-5;
  for (int64_t i = 0; i < got.size(); ++i)
    if (std::isfinite(elementOf(want, i)))
      largest = std::max(largest, std::fabs(elementOf(want, i)));
  for (int64_t i = 0; i < got.size(); ++i) {
    double a = hostValue(got, i, dtype), b = elementOf(want, i);
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
    auto dtype = function.getResultAttrOfType<TypeAttr>(i, train::kDtype);
    compare(name.str(), results[i], dtype ? dtype.getValue() : Type(), want);
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

INSTANTIATE_TEST_SUITE_P(Cases, ForwardTest, testing::ValuesIn(listCases(folder())), testName);

TEST(ForwardCases, AreAllThere) { EXPECT_GE(listCases(casesFolder("", "cases")).size(), 103u); }

} // namespace
