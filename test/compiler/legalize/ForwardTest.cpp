//===- ForwardTest.cpp - legalised models against numbers from outside ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every cases/NAME.onnx is imported, legalised for evaluation and run by the evaluator on the arrays `in/...` of
// cases/NAME.npz; the outputs must be its arrays `out/...`. make-cases.py wrote both with ONNX Runtime. ORTC_LEGALIZE_CASES names another folder of cases.
#include "compiler/evaluator/Evaluator.h"
#include "compiler/frontend/Importer.h"
#include "compiler/legalize/Legalize.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/onnx/OnnxDialect.h"
#include "dialects/train/TrainDialect.h"
#include "runtime/host/data/data_source.h"
#include "llvm/ADT/StringMap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

using namespace mlir;
using namespace ortc;
using evaluator::HostTensor;

namespace {

std::string casesFolder() {
  const char *other = std::getenv("ORTC_LEGALIZE_CASES");
  return other ? other : std::string(ORTC_TEST_DATA) + "/compiler/legalize/cases";
}

std::vector<std::string> listCases() {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(casesFolder()))
    if (entry.path().extension() == ".onnx")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

double elementOf(const host::Array &array, int64_t i) {
  auto load = [&](auto zero) {
    decltype(zero) value;
    std::memcpy(&value, array.data + i * sizeof(value), sizeof(value));
    return value;
  };
  switch (array.type) {
  case host::DataType::Float32: return load(float());
  case host::DataType::Float64: return load(double());
  case host::DataType::Float16: return host::halfToFloat(load(uint16_t()));
  case host::DataType::Int64: return static_cast<double>(load(int64_t()));
  case host::DataType::Int32: return load(int32_t());
  case host::DataType::Int16: return load(int16_t());
  case host::DataType::Int8: return load(int8_t());
  case host::DataType::UInt16: return load(uint16_t());
  case host::DataType::UInt8:
  case host::DataType::Bool: return load(uint8_t());
  default: ADD_FAILURE() << array.name << ": element type not read by this test"; return 0;
  }
}

/// Outputs by name, or nothing after a failure.
std::vector<std::pair<std::string, HostTensor>> evaluate(func::FuncOp function, ModuleOp module, host::DataSource &data) {
  std::vector<HostTensor> arguments;
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    if (auto symbol = function.getArgAttrOfType<FlatSymbolRefAttr>(i, train::kTensor)) {
      auto tensor = SymbolTable::lookupNearestSymbolFrom<train::TensorOp>(module, symbol);
      arguments.push_back(*HostTensor::fromAttribute(*tensor.getInitial()));
      continue;
    }
    host::Array array;
    std::string name = "in/" + function.getArgAttrOfType<StringAttr>(i, train::kInput).str();
    HostTensor tensor(cast<RankedTensorType>(argument.getType()));
    if (data.has(name) && data.load(name, array).isOk())
      for (int64_t k = 0; k < tensor.size(); ++k)
        tensor.isFloat() ? tensor.setFloat(k, elementOf(array, k)) : tensor.setInt(k, static_cast<int64_t>(elementOf(array, k)));
    arguments.push_back(std::move(tensor));
  }
  auto results = evaluator::Evaluator().evaluate(function.front(), arguments);
  std::vector<std::pair<std::string, HostTensor>> named;
  EXPECT_TRUE(succeeded(results));
  for (unsigned i = 0; succeeded(results) && i < results->size(); ++i)
    if (auto name = function.getResultAttrOfType<StringAttr>(i, train::kOutput))
      named.push_back({name.str(), (*results)[i]});
  return named;
}

/// The largest magnitude counts, as a float32 program could not do better: 1e-5 of it, or 1e-6.
void compare(const std::string &name, const HostTensor &got, const host::Array &want) {
  ASSERT_EQ(std::vector<int64_t>(got.getShape().begin(), got.getShape().end()), want.shape) << name;
  double largest = 0.1;
  for (int64_t i = 0; i < got.size(); ++i)
    if (std::isfinite(elementOf(want, i)))
      largest = std::max(largest, std::fabs(elementOf(want, i)));
  for (int64_t i = 0; i < got.size(); ++i) {
    double a = got.isFloat() ? got.getFloat(i) : static_cast<double>(got.getInt(i)), b = elementOf(want, i);
    if (!got.isFloat() && (want.type == host::DataType::UInt8 || want.type == host::DataType::UInt16) && a < 0)
      a += want.type == host::DataType::UInt8 ? 256 : 65536;
    bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-5 * largest;
    ASSERT_TRUE(same) << name << "[" << i << "] is " << a << ", not " << b;
  }
}

class ForwardTest : public testing::TestWithParam<std::string> {};

TEST_P(ForwardTest, GivesTheReferencesNumbers) {
  std::string base = casesFolder() + "/" + GetParam();
  MLIRContext context;
  frontend::Status status;
  auto source = frontend::importModel(base + ".onnx", context, status);
  ASSERT_TRUE(succeeded(source)) << status.message();
  std::unique_ptr<host::DataSource> data;
  ASSERT_TRUE(host::openData(base + ".npz", data).isOk());

  legalize::LegalizeOptions options;
  options.mode = legalize::Mode::eval;
  auto graph = *(*source)->getOps<onnx::GraphOp>().begin();
  for (unsigned i = 0; i < graph.getBlock().getNumArguments(); ++i) {
    host::Array array;
    std::string name = graph.getInputName(i).str();
    if (data->has("in/" + name) && data->load("in/" + name, array).isOk() && !array.shape.empty())
      options.shapes.push_back({name, array.shape});
  }
  OwningOpRef<ModuleOp> target = ModuleOp::create(UnknownLoc::get(&context));
  legalize::LegalizeReport report;
  ASSERT_TRUE(succeeded(legalize::legalize(**source, *target, options, report))) << report.message();
  auto outputs = evaluate(report.function, *target, *data);
  unsigned compared = 0;
  for (auto &[name, tensor] : outputs) {
    host::Array want;
    if (!data->has("out/" + name))
      continue;
    ASSERT_TRUE(data->load("out/" + name, want).isOk());
    compare(name, tensor, want);
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

INSTANTIATE_TEST_SUITE_P(Cases, ForwardTest, testing::ValuesIn(listCases()), [](const auto &info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ForwardTest);

} // namespace
