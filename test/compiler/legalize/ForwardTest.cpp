// Legalised models against numbers from outside.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every cases/NAME.onnx is imported, legalised for evaluation and run by the evaluator; the outputs must be
// the arrays `out/...`, all of them, in shape, type and every bit of integers and booleans. make-cases.py wrote them
// with ONNX Runtime. ORTC_LEGALIZE_CASES names another folder.
#include "test/compiler/legalize/Cases.h"
#include "test/compiler/legalize/Exact.h"

#include "dialects/train/ElementTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ortc;
using namespace ortc::legalize;

static std::string folder() { return casesFolder("ORTC_LEGALIZE_CASES", "cases"); }

namespace {

/// The element type of a program's tensor for an array of the reference: its integers are signless.
Type elementFor(DataType type, MLIRContext *context) {
  switch (type) {
  case DataType::Float16:
    return Float16Type::get(context);
  case DataType::BFloat16:
    return BFloat16Type::get(context);
  case DataType::Float32:
    return Float32Type::get(context);
  case DataType::Float64:
    return Float64Type::get(context);
  case DataType::Bool:
    return IntegerType::get(context, 1);
  default:
    return IntegerType::get(context, static_cast<unsigned>(8 * getElementBytes(type)));
  }
}

/// What the host would read.
uint64_t hostBits(const HostTensor &tensor, int64_t i) {
  unsigned width = tensor.getType().getElementTypeBitWidth();
  return static_cast<uint64_t>(tensor.getInt(i)) & llvm::maskTrailingOnes<uint64_t>(width);
}

/// The `train.dtype` that belongs to an array of the reference; null for types that need none.
Type dtypeOf(DataType type, MLIRContext *context) {
  auto isUnsigned = [&](unsigned width) { return IntegerType::get(context, width, IntegerType::Unsigned); };
  switch (type) {
  case DataType::UInt8:
    return isUnsigned(8);
  case DataType::UInt16:
    return isUnsigned(16);
  case DataType::UInt32:
    return isUnsigned(32);
  case DataType::UInt64:
    return isUnsigned(64);
  default:
    return {};
  }
}

/// Of floating-point numbers the largest magnitude counts, as a program of that type could not do better: 1e-5 of it,
/// 1e-3 for float16.
void compare(const std::string &name, const HostTensor &got, Type dtype, const Array &want) {
  ASSERT_EQ(dtype, dtypeOf(want.type, got.getType().getContext())) << name;
  ASSERT_EQ(got.getType().getElementType(), elementFor(want.type, got.getType().getContext())) << name;
  ASSERT_EQ(std::vector<int64_t>(got.getShape().begin(), got.getShape().end()), want.shape) << name;
  if (test::isExact(want.type)) {
    for (int64_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(hostBits(got, i), test::bitsOf(want, i)) << name << "[" << i << "]";
    return;
  }
  double largest = 0.1, tolerance = want.type == DataType::Float16 ? 1e-3 : 1e-5;
  for (int64_t i = 0; i < got.size(); ++i)
    if (std::isfinite(elementOf(want, i)))
      largest = std::max(largest, std::fabs(elementOf(want, i)));
  for (int64_t i = 0; i < got.size(); ++i) {
    double a = got.getFloat(i), b = elementOf(want, i);
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
  size_t compared = 0, wanted = 0;
  for (unsigned i = 0; i < results.size(); ++i) {
    auto name = function.getResultAttrOfType<StringAttr>(i, train::kOutput);
    Array want;
    if (!name || !subject.data->has("out/" + name.str()))
      continue;
    ASSERT_TRUE(subject.data->load("out/" + name.str(), want).isOk());
    auto dtype = function.getResultAttrOfType<TypeAttr>(i, train::kDtype);
    compare(name.str(), results[i], dtype ? dtype.getValue() : Type(), want);
    ++compared;
  }
  for (const std::string &name : subject.data->getNames())
    wanted += name.rfind("out/", 0) == 0;
  EXPECT_GT(wanted, 0u);
  EXPECT_EQ(compared, wanted) << "an output of the reference is missing";
}

INSTANTIATE_TEST_SUITE_P(Cases, ForwardTest, testing::ValuesIn(listCases(folder())), testName);

TEST(ForwardCases, AreAllThere) { expectAllCases("cases", 246); }

} // namespace
