// Cut and flipped files must not crash the checker.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Meant for the build with AddressSanitizer and UndefinedBehaviorSanitizer. Files are the models of test/zoo,
// and with ORTC_FUZZ_MODELS=FILE:FILE... others; ORTC_FUZZ_FLIPS sets how many damaged copies of each are
// tried.
#include "ModelBuilder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>

using namespace ortc;
using namespace ortc::frontend;
using namespace ortc::frontend::test;

namespace {

/// A model with a branch, a function, sparse and typed data, so that damage reaches every part of the
/// checker.
proto::ModelProto richModel() {
  proto::ModelProto model = smallModel();
  proto::GraphProto *graph = model.mutable_graph();
  auto *sparse = graph->add_sparse_initializer();
  sparse->add_dims(8);
  sparse->mutable_values()->set_name("s");
  sparse->mutable_values()->set_data_type(proto::TensorProto::INT64);
  sparse->mutable_values()->add_dims(1);
  sparse->mutable_values()->add_int64_data(3);
  sparse->mutable_indices()->set_data_type(proto::TensorProto::INT64);
  sparse->mutable_indices()->add_dims(1);
  sparse->mutable_indices()->add_int64_data(7);
  proto::TensorProto *small = graph->add_initializer();
  small->set_name("q");
  small->set_data_type(proto::TensorProto::INT4);
  small->add_dims(3);
  small->add_int32_data(1);
  small->add_int32_data(2);
  proto::FunctionProto *function = model.add_functions();
  function->set_domain("custom");
  function->set_name("F");
  function->add_input("a");
  function->add_output("b");
  function->add_attribute("alpha");
  function->add_opset_import()->set_version(17);
  proto::NodeProto *elu = addNode(function->mutable_node(), "Elu", {"a"}, {"b"});
  addAttribute(elu, "alpha", proto::AttributeProto::FLOAT)->set_ref_attr_name("alpha");
  addNode(graph, "F", {"h"}, {"k"})->set_domain("custom");
  proto::NodeProto *constant = addNode(graph, "Constant", {}, {"c"});
  proto::TensorProto *truth = addAttribute(constant, "value", proto::AttributeProto::TENSOR)->mutable_t();
  truth->set_data_type(proto::TensorProto::BOOL);
  truth->add_int32_data(1);
  proto::NodeProto *choice = addNode(graph, "If", {"c"}, {"z"});
  for (const char *name : {"then_branch", "else_branch"}) {
    proto::GraphProto *branch = addAttribute(choice, name, proto::AttributeProto::GRAPH)->mutable_g();
    addNode(branch, "Relu", {"k"}, {"r"});
    setType(branch->add_output(), "r", {2, 4});
  }
  return model;
}

std::vector<std::string> models() {
  std::vector<std::string> files{richModel().SerializeAsString()};
  std::vector<std::string> paths;
  std::filesystem::path zoo = std::filesystem::path(ORTC_TEST_DATA) / "zoo";
  if (std::filesystem::is_directory(zoo))
    for (const auto &entry : std::filesystem::directory_iterator(zoo))
      if (std::filesystem::exists(entry.path() / "model.onnx"))
        paths.push_back(entry.path() / "model.onnx");
  std::sort(paths.begin(), paths.end());
  if (const char *more = std::getenv("ORTC_FUZZ_MODELS")) {
    std::stringstream list(more);
    for (std::string path; std::getline(list, path, ':');)
      paths.push_back(path);
  }
  for (const std::string &path : paths) {
    std::ifstream stream(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return files;
}

TEST(DamagedModelTest, TheUndamagedModelsPass) {
  for (const std::string &file : models())
    EXPECT_EQ(check(file), "");
}

TEST(DamagedModelTest, TruncationsAreRefused) {
  for (const std::string &file : models())
    for (size_t part = 0; part < 50; ++part)
      EXPECT_NE(check(file.substr(0, file.size() * part / 50)), "") << part << "/50";
}

TEST(DamagedModelTest, FlippedBytesDoNotCrash) {
  const char *setting = std::getenv("ORTC_FUZZ_FLIPS");
  int rounds = setting ? std::atoi(setting) : 300;
  std::mt19937 random(7); // NOLINT: the same damage every time
  size_t refused = 0, tried = 0;
  for (const std::string &file : models())
    for (int round = 0; round < rounds; ++round) {
      std::string damaged = file;
      // Damage near the beginning of a small file or of its nodes says more than damage in weights.
      size_t reach = round % 2 ? damaged.size() : std::min<size_t>(damaged.size(), 4096);
      for (unsigned flips = 1 + random() % 4; flips > 0; --flips)
        damaged[random() % reach] = static_cast<char>(random());
      refused += !check(damaged).empty();
      ++tried;
    }
  std::printf("%zu of %zu damaged models were refused\n", refused, tried);
  EXPECT_GT(refused, 0u);
}

} // namespace
