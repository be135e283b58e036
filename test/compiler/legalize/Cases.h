// Models with inputs and expected arrays.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A case is NAME.onnx and NAME.npz: arrays `in/...` are fed, others are expected.
#pragma once

#include "compiler/evaluator/Evaluator.h"
#include "compiler/frontend/Importer.h"
#include "compiler/legalize/Legalize.h"
#include "dialects/onnx/OnnxDialect.h"
#include "dialects/train/TrainDialect.h"
#include "test/compiler/legalize/Exact.h"
#include "test/engine/cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace ortc::legalize {

using engine::test::elementOf;
using engine::test::listCases;
using engine::test::testName;
using evaluator::HostTensor;

/// The folder of cases: `variable` of the environment ("" for none), or a folder beside the tests.
inline std::string casesFolder(const char *variable, const std::string &folder) {
  const char *other = *variable ? std::getenv(variable) : nullptr;
  return other ? other : std::string(ORTC_TEST_DATA) + "/compiler/legalize/" + folder;
}

/// Every model of the folder has its arrays and the other way round, and none was lost: who adds a case counts it.
inline void expectAllCases(const std::string &folder, size_t count) {
  std::string path = casesFolder("", folder);
  std::vector<std::string> models = listCases(path), arrays;
  for (const auto &entry : std::filesystem::directory_iterator(path))
    if (entry.path().extension() == ".npz")
      arrays.push_back(entry.path().stem().string());
  std::sort(arrays.begin(), arrays.end());
  EXPECT_EQ(models, arrays);
  EXPECT_EQ(models.size(), count);
}

/// Reads a case and legalises it for `mode` with the shapes of its arrays.
struct LegalCase {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> source, target;
  std::unique_ptr<engine::DataSource> data;
  LegalizeReport report;

  LegalCase() = default;
  explicit LegalCase(const mlir::DialectRegistry &registry) : context(registry) {}

  void load(const std::string &base, LegalizeOptions options) {
    Status status;
    auto imported = frontend::importModel(base + ".onnx", context, status);
    ASSERT_TRUE(succeeded(imported)) << status.getMessage();
    source = std::move(*imported);
    ASSERT_TRUE(engine::openData(base + ".npz", data).isOk());
    auto graph = *source->getOps<onnx::GraphOp>().begin();
    for (unsigned i = 0; i < graph.getBlock().getNumArguments(); ++i) {
      Array array;
      std::string name = graph.getInputName(i).str();
      if (data->has("in/" + name) && data->load("in/" + name, array).isOk() && !array.shape.empty())
        options.shapes.push_back({name, array.shape});
    }
    target = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    ASSERT_TRUE(succeeded(legalize(*source, *target, options, report))) << report.message();
  }

  /// The arguments of `function`: the arrays `in/...` and the tensors' initial values.
  std::vector<HostTensor> arguments(mlir::func::FuncOp function) {
    std::vector<HostTensor> arguments;
    for (mlir::BlockArgument argument : function.getArguments()) {
      unsigned i = argument.getArgNumber();
      if (auto symbol = function.getArgAttrOfType<mlir::FlatSymbolRefAttr>(i, train::kTensor)) {
        auto tensor = mlir::SymbolTable::lookupNearestSymbolFrom<train::TensorOp>(*target, symbol);
        arguments.push_back(*HostTensor::fromAttribute(*tensor.getInitial()));
        continue;
      }
      Array array;
      std::string name = "in/" + function.getArgAttrOfType<mlir::StringAttr>(i, train::kInput).str();
      HostTensor tensor(mlir::cast<mlir::RankedTensorType>(argument.getType()));
      EXPECT_TRUE(data->has(name) && data->load(name, array).isOk()) << name << " is not fed";
      EXPECT_EQ(array.bytes, getElementBytes(array.type) * static_cast<size_t>(tensor.size())) << name;
      if (array.bytes == getElementBytes(array.type) * static_cast<size_t>(tensor.size()))
        for (int64_t k = 0; k < tensor.size(); ++k)
          tensor.isFloat()
              ? tensor.setFloat(k, elementOf(array, k))
              : tensor.setInt(k, evaluator::wrapTo(tensor.getType().getElementType(),
                                                   static_cast<int64_t>(test::bitsOf(array, k))));
      arguments.push_back(std::move(tensor));
    }
    return arguments;
  }

  /// The results of `function` on these; empty after a failure.
  llvm::SmallVector<HostTensor> evaluate(mlir::func::FuncOp function, evaluator::Precision precision) {
    auto results = evaluator::Evaluator(precision).evaluate(function.front(), arguments(function));
    EXPECT_TRUE(succeeded(results));
    return succeeded(results) ? *results : llvm::SmallVector<HostTensor>();
  }
};

} // namespace ortc::legalize
