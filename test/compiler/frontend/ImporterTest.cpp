// What text cannot show of the importer.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ModelBuilder.h"

#include "compiler/frontend/Importer.h"
#include "dialects/onnx/OnnxDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "support/MappedFile.h"

#include <gtest/gtest.h>
#include <random>

using namespace ortc;
using namespace ortc::frontend;
using namespace ortc::frontend::test;

namespace {

const std::string kInputs = ORTC_TEST_DATA "/compiler/frontend/Inputs/";

std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  return text;
}

TEST(ImporterTest, GivesTheSameIrEveryTime) {
  for (const char *name : {"types", "attributes", "functions", "branches", "old", "external"}) {
    std::string texts[2];
    for (std::string &text : texts) {
      mlir::MLIRContext context;
      Status status;
      auto module = importModel(kInputs + name + ".onnx", context, status);
      ASSERT_TRUE(mlir::succeeded(module)) << status.getMessage();
      text = print(**module);
    }
    EXPECT_EQ(texts[0], texts[1]) << name;
  }
}

TEST(ImporterTest, LargeConstantsViewTheModelAndKeepItAlive) {
  proto::ModelProto proto = smallModel();
  addInitializer(proto.mutable_graph(), "large", {2000})->mutable_raw_data()->front() = 1;
  std::shared_ptr<const Model> model;
  ASSERT_TRUE(Model::parse(proto.SerializeAsString(), "m", ".", model).isOk());
  const void *bytes = model->getProto().graph().initializer(1).raw_data().data();
  std::weak_ptr<const Model> alive = model;
  {
    mlir::MLIRContext context;
    Status status;
    auto module = importModel(model, context, status);
    ASSERT_TRUE(mlir::succeeded(module)) << status.getMessage();
    model.reset();
    EXPECT_FALSE(alive.expired());
    size_t resources = 0;
    (*module)->walk([&](onnx::InitializerOp op) {
      if (auto resource = mlir::dyn_cast<mlir::DenseResourceElementsAttr>(op.getValue())) {
        ++resources;
        EXPECT_EQ(static_cast<const void *>(resource.getData().data()), bytes);
      }
    });
    EXPECT_EQ(resources, 1u);
  }
  EXPECT_TRUE(alive.expired());
}

TEST(ImporterTest, ReportsThroughStatusOnly) {
  mlir::MLIRContext context;
  size_t diagnostics = 0;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &) { ++diagnostics; });
  Status status;
  EXPECT_TRUE(mlir::failed(importModel("no/such.onnx", context, status)));
  EXPECT_EQ(status.getMessage(), "no/such.onnx: cannot be opened: No such file or directory");
  EXPECT_EQ(diagnostics, 0u);
}

TEST(ImporterTest, NodesWithoutOutputsAreLeftOut) {
  proto::ModelProto proto = smallModel();
  addNode(proto.mutable_graph(), "Unheard", {"h"}, {});
  addNode(proto.mutable_graph(), "Unheard", {"w"}, {"", ""});
  std::shared_ptr<const Model> model;
  ASSERT_TRUE(Model::parse(proto.SerializeAsString(), "m", ".", model).isOk());
  mlir::MLIRContext context;
  Status status;
  auto module = importModel(model, context, status);
  ASSERT_TRUE(mlir::succeeded(module)) << status.getMessage();
  std::vector<std::string> ops;
  (*module)->walk([&](onnx::NodeOp node) { ops.push_back(node.getOpType().str()); });
  EXPECT_EQ(ops, (std::vector<std::string>{"MatMul", "Relu"}));
}

TEST(ImporterTest, DefaultsThatAreGraphsAreRefused) {
  proto::ModelProto proto = smallModel();
  proto::FunctionProto *function = proto.add_functions();
  function->set_name("F");
  function->set_domain("d");
  proto::AttributeProto *attribute = function->add_attribute_proto();
  attribute->set_name("body");
  attribute->set_type(proto::AttributeProto::GRAPH);
  attribute->mutable_g();
  std::shared_ptr<const Model> model;
  ASSERT_EQ(Model::parse(proto.SerializeAsString(), "m", ".", model).getMessage(), "");
  mlir::MLIRContext context;
  Status status;
  EXPECT_TRUE(mlir::failed(importModel(model, context, status)));
  EXPECT_EQ(
      status.getMessage(),
      "'m': function 'F': attribute 'body' is a graph; default values that are graphs are not supported");
}

/// What the checker accepts the importer mirrors, however damaged: no crash, no failing verifier.
TEST(ImporterTest, AcceptedDamageImports) {
  std::mt19937 random(11); // NOLINT: the same damage every time
  size_t imported = 0;
  for (const char *name : {"types", "attributes", "functions", "branches", "old"}) {
    std::shared_ptr<const MappedFile> file;
    ASSERT_TRUE(MappedFile::open(kInputs + name + ".onnx", file).isOk());
    for (int round = 0; round < 400; ++round) {
      std::string damaged(file->getText());
      damaged[random() % std::min<size_t>(damaged.size(), 2048)] = static_cast<char>(random());
      std::shared_ptr<const Model> model;
      if (!Model::parse(damaged, "m", ".", model).isOk())
        continue;
      mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
      Status status;
      EXPECT_TRUE(mlir::succeeded(importModel(model, context, status))) << status.getMessage();
      ++imported;
    }
  }
  std::printf("%zu damaged models were accepted and imported\n", imported);
  EXPECT_GT(imported, 0u);
}

} // namespace
