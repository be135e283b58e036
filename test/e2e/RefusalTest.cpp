// Models that are refused in one report, and malformed files that must not crash or leave anything.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>

#include "compiler/frontend/onnx.pb.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

using Edit = std::function<void(proto::ModelProto &)>;

class RefusalTest : public testing::Test {
protected:
  RefusalTest() : bytes(readFile(sourcePath("zoo/mlp-digits/model.onnx"))) {
    EXPECT_TRUE(model.ParseFromString(bytes));
    std::filesystem::create_directory(folder / "inside");
  }

  /// Compiles this file; what is in the folder afterwards is the model alone, whatever the outcome.
  Outcome compile(const std::string &contents,
                  const std::vector<std::string> &extra = {"--shape", "batch=64"}) {
    std::string path = folder.write("inside/model.onnx", contents);
    std::vector<std::string> arguments{"train",    path,     "-o",     folder / "inside/artifact",
                                       "--target", "native", "--quiet"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return runTool(arguments);
  }

  /// Exit status 2, one message on stderr, and nothing left behind.
  void expectRefused(const std::string &contents, const std::string &what,
                     const std::vector<std::string> &extra = {"--shape", "batch=64"}) {
    Outcome outcome = compile(contents, extra);
    EXPECT_EQ(outcome.status, 2) << what << "\n" << outcome.errors;
    EXPECT_EQ(outcome.errors.substr(0, 13), "ortc: error: ") << what << "\n" << outcome.errors;
    EXPECT_EQ(outcome.text, "") << what;
    for (const auto &item : std::filesystem::directory_iterator(folder / "inside"))
      EXPECT_EQ(item.path().filename(), "model.onnx") << what;
  }

  TemporaryFolder folder;
  std::string bytes;
  proto::ModelProto model;
};

proto::NodeProto *addNode(proto::ModelProto &model, const std::string &op, const std::string &name,
                          const std::string &input, const std::string &output) {
  proto::NodeProto *node = model.mutable_graph()->add_node();
  node->set_op_type(op);
  node->set_name(name);
  node->add_input(input);
  node->add_output(output);
  return node;
}

/// Says that the first initializer's data lie in a file.
void moveOut(proto::ModelProto &model, const std::string &file) {
  proto::TensorProto *tensor = model.mutable_graph()->mutable_initializer(0);
  tensor->clear_raw_data();
  tensor->set_data_location(proto::TensorProto::EXTERNAL);
  auto *location = tensor->add_external_data();
  location->set_key("location");
  location->set_value(file);
}

} // namespace

TEST_F(RefusalTest, AllUnsupportedPartsStandInOneReport) {
  addNode(model, "NonZero", "first_unsupported", "output", "places");
  addNode(model, "StringNormalizer", "second_unsupported", "output", "text");
  addNode(model, "Det", "third_unsupported", "output", "determinant");
  for (const char *name : {"places", "text", "determinant"})
    model.mutable_graph()->add_output()->set_name(name);
  // For training, such outputs are left out.
  Outcome outcome = compile(model.SerializeAsString(), {"--shape", "batch=64", "--loss", "none"});
  EXPECT_EQ(outcome.status, 2);
  for (const char *part :
       {"NonZero", "first_unsupported", "StringNormalizer", "second_unsupported", "Det", "third_unsupported"})
    EXPECT_NE(outcome.errors.find(part), std::string::npos) << part << " is missing in\n" << outcome.errors;
  EXPECT_NE(outcome.errors.find("cannot be compiled:\n  NonZero"), std::string::npos) << outcome.errors;
}

/// A name may hold what acts on a terminal.
TEST_F(RefusalTest, NamesAreShownOnOneLine) {
  addNode(model, "Det", "evil\nname\x1b[2J", "output", "determinant");
  model.mutable_graph()->add_output()->set_name("determinant");
  Outcome outcome = compile(model.SerializeAsString(), {"--shape", "batch=64", "--loss", "none"});
  EXPECT_NE(outcome.errors.find("'evil?name?[2J'"), std::string::npos) << outcome.errors;
  // Not even a line that looks like one of a list.
  const std::string evil = "a\n  Det 'b': \xe2\x80\xae\xc2\x9b\xe2\x80\xa9";
  model.mutable_graph()->mutable_node(model.graph().node_size() - 1)->set_name(evil);
  outcome = compile(model.SerializeAsString(), {"--shape", "batch=64", "--loss", "none"});
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 2) << outcome.errors;
  EXPECT_NE(outcome.errors.find("\n  Det (since opset 11) 'a?  Det 'b': ?\?\?': "), std::string::npos)
      << outcome.errors;
  outcome = compile(bytes, {"--shape", "batch=64", "--loss", "mse@" + evil});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
  EXPECT_NE(outcome.errors.find("a?  Det 'b': ?\?\?"), std::string::npos) << outcome.errors;
  Outcome flag = compile(bytes, {"--shape", "batch=64", "--target", "a\nb"});
  EXPECT_EQ(flag.status, 2);
  EXPECT_NE(flag.errors.find("a?b"), std::string::npos) << flag.errors;
}

/// What is known only behind the loss: no gradient reaches the only weight.
TEST_F(RefusalTest, LossesThatReachNothingAreRefused) {
  proto::GraphProto *graph = model.mutable_graph();
  addNode(model, "Equal", "same", "output", "same")->add_input("output");
  addNode(model, "Cast", "cast", "same", "score")->add_attribute()->set_name("to");
  auto *attribute = graph->mutable_node(graph->node_size() - 1)->mutable_attribute(0);
  attribute->set_type(proto::AttributeProto::INT);
  attribute->set_i(proto::TensorProto::FLOAT);
  graph->add_output()->set_name("score");
  Outcome outcome =
      compile(model.SerializeAsString(), {"--shape", "batch=64", "--loss", "mse", "--loss-input", "score"});
  EXPECT_EQ(outcome.status, 2) << outcome.text;
  EXPECT_NE(outcome.errors.find("there is nothing to train"), std::string::npos) << outcome.errors;
}

/// Buffers of a plan have such names of their own: a gradient is found by the name of its tensor all the same.
TEST_F(RefusalTest, WeightsMayHaveTheNamesOfBuffers) {
  std::map<std::string, Values> wanted;
  const std::string bias = "0.bias";
  for (const std::string &name : {bias, std::string("loss"), std::string("part of loss")}) {
    proto::ModelProto renamed = model;
    for (auto &tensor : *renamed.mutable_graph()->mutable_initializer())
      if (tensor.name() == bias)
        tensor.set_name(name);
    for (auto &node : *renamed.mutable_graph()->mutable_node())
      for (std::string &input : *node.mutable_input())
        if (input == bias)
          input = name;
    Outcome outcome = compile(renamed.SerializeAsString(), {"--shape", "batch=64", "--gradients"});
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
    mustRun({"gradients", folder / "inside/artifact", "--data", ZooEntry("mlp-digits").data(), "-o",
             folder / "gradients.safetensors", "--quiet"});
    auto gradients = loadValues(folder / "gradients.safetensors");
    if (wanted.empty())
      wanted = gradients;
    EXPECT_EQ(valuesOf(gradients, name).bits, valuesOf(wanted, bias).bits) << name;
    EXPECT_EQ(valuesOf(gradients, name).data, valuesOf(wanted, bias).data) << name;
  }
}

TEST_F(RefusalTest, UnboundDimensionsStandInOneMessage) {
  Outcome outcome = compile(bytes, {});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find("batch"), std::string::npos) << outcome.errors;
  EXPECT_NE(outcome.errors.find("--shape"), std::string::npos) << outcome.errors;
}

TEST_F(RefusalTest, FlagsThatDoNotFitTheModel) {
  const std::vector<std::vector<std::string>> cases = {
      {"--shape", "batch=0"},
      {"--shape", "batch=-3"},
      {"--shape", "batch=64", "--shape", "nothing=3"},
      {"--shape", "batch=64", "--loss-input", "nothing"},
      {"--shape", "batch=64", "--loss", "output:nothing"},
      {"--shape", "batch=64", "--loss", "hinges"},
      {"--shape", "batch=64", "--optimizer", "adamw:speed=1"},
      {"--shape", "batch=64", "--train", "["},
      {"--shape", "batch=64", "--freeze", ".*"},
      {"--shape", "batch=64", "--target", "pdp11"},
      {"--shape", "batch=64", "--loss", "none", "--batch-norm", "train"},
      {"--shape", "batch=64", "--loss", "none", "--dropout", "train"},
      {"--shape", "batch=64", "--compile-to", "nowhere"}};
  for (const auto &flags : cases)
    expectRefused(bytes, flags.back(), flags);
}

TEST_F(RefusalTest, ALossThatTheGraphComputesIsRecognised) {
  auto *keep = addNode(model, "ReduceMean", "mean", model.graph().output(0).name(), "total")->add_attribute();
  keep->set_name("keepdims");
  keep->set_type(proto::AttributeProto::INT);
  keep->set_i(0);
  model.mutable_graph()->clear_output();
  model.mutable_graph()->add_output()->set_name("total");
  std::string scalar = model.SerializeAsString();
  expectRefused(scalar, "one number for cross_entropy");
  Outcome outcome = compile(scalar);
  EXPECT_NE(
      outcome.errors.find("output 'total' is one number, and loss cross_entropy needs classes; if the graph "
                          "computes its loss, give --loss output:total"),
      std::string::npos)
      << outcome.errors;
  outcome = compile(scalar, {"--shape", "batch=64", "--loss", "output:total"}); // as the message says
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

TEST_F(RefusalTest, MalformedFiles) {
  expectRefused("", "empty");
  expectRefused("this is no model", "text");
  expectRefused(std::string(4096, '\0'), "zeros");
  expectRefused(std::string(4096, '\xff'), "ones");
  for (size_t part = 1; part < 16; ++part)
    expectRefused(bytes.substr(0, bytes.size() * part / 16),
                  "truncated to " + std::to_string(part) + " sixteenths");
}

/// A Loop over the model's output whose body has `outputs` of: the condition, the next value, another value.
TEST_F(RefusalTest, LoopBodiesThatDoNotGiveTheirResults) {
  for (int outputs : {0, 1, 2}) {
    proto::ModelProto looped = model;
    proto::GraphProto &graph = *looped.mutable_graph();
    proto::TensorProto *count = graph.add_initializer();
    count->set_name("count");
    count->set_data_type(proto::TensorProto::INT64);
    count->add_int64_data(3);
    proto::NodeProto *node = addNode(looped, "Loop", "loop", "count", "last");
    node->add_input("");
    node->add_input(graph.output(0).name());
    node->add_output("stacked");
    auto *attribute = node->add_attribute();
    attribute->set_name("body");
    attribute->set_type(proto::AttributeProto::GRAPH);
    proto::GraphProto &body = *attribute->mutable_g();
    body.set_name("body");
    for (const char *name : {"i", "on", "value"})
      body.add_input()->set_name(name);
    const char *const names[][2] = {{"on", "still"}, {"value", "next"}, {"value", "other"}};
    for (int k = 0; k < 3; ++k) {
      proto::NodeProto *identity = body.add_node();
      identity->set_op_type("Identity");
      identity->add_input(names[k][0]);
      identity->add_output(names[k][1]);
      if (k < outputs)
        body.add_output()->set_name(names[k][1]);
    }
    graph.mutable_output(0)->set_name("last");
    *graph.add_output() = graph.output(0);
    graph.mutable_output(1)->set_name("stacked");
    Outcome outcome = compile(looped.SerializeAsString(), {"--shape", "batch=64", "--loss", "none"});
    EXPECT_EQ(outcome.status, 2) << outputs << outcome.errors;
    EXPECT_NE(outcome.errors.find("its body gives"), std::string::npos) << outputs << outcome.errors;
  }
}

TEST_F(RefusalTest, MalformedModels) {
  const std::pair<const char *, Edit> cases[] = {
      {"no graph", [](auto &model) { model.clear_graph(); }},
      {"no opset", [](auto &model) { model.clear_opset_import(); }},
      {"opset of the future", [](auto &model) { model.mutable_opset_import(0)->set_version(4000); }},
      {"opset before 7", [](auto &model) { model.mutable_opset_import(0)->set_version(3); }},
      {"no outputs", [](auto &model) { model.mutable_graph()->clear_output(); }},
      {"output that nobody computes",
       [](auto &model) { model.mutable_graph()->mutable_output(0)->set_name("nobody"); }},
      {"operand that nobody computes",
       [](auto &model) { model.mutable_graph()->mutable_node(1)->set_input(0, "nobody"); }},
      {"value computed twice",
       [](auto &model) {
         model.mutable_graph()->mutable_node(1)->set_output(0, model.graph().node(0).output(0));
       }},
      {"cycle",
       [](auto &model) {
         model.mutable_graph()->mutable_node(0)->set_input(0, model.graph().node(1).output(0));
       }},
      {"unknown op", [](auto &model) { model.mutable_graph()->mutable_node(1)->set_op_type("Frobnicate"); }},
      {"unknown domain",
       [](auto &model) { model.mutable_graph()->mutable_node(1)->set_domain("com.example"); }},
      {"initializer with too few bytes",
       [](auto &model) { model.mutable_graph()->mutable_initializer(0)->mutable_raw_data()->pop_back(); }},
      {"initializer with too many bytes",
       [](auto &model) {
         model.mutable_graph()->mutable_initializer(0)->mutable_raw_data()->append(64, 'x');
       }},
      {"initializer of negative size",
       [](auto &model) { model.mutable_graph()->mutable_initializer(0)->set_dims(0, -64); }},
      {"initializer whose size overflows",
       [](auto &model) {
         auto *tensor = model.mutable_graph()->mutable_initializer(0);
         tensor->clear_dims();
         for (int i = 0; i < 4; ++i)
           tensor->add_dims(int64_t(1) << 31);
       }},
      {"initializer of an unknown type",
       [](auto &model) { model.mutable_graph()->mutable_initializer(0)->set_data_type(77); }},
      {"two initializers of one name",
       [](auto &model) {
         model.mutable_graph()->mutable_initializer(1)->set_name(model.graph().initializer(0).name());
       }},
      {"external data that is missing", [](auto &model) { moveOut(model, "weights.bin"); }},
      {"external data outside the folder", [](auto &model) { moveOut(model, "../../../../etc/passwd"); }},
      {"weight whose shape does not fit",
       [](auto &model) {
         auto *tensor = model.mutable_graph()->mutable_initializer(0);
         if (tensor->dims_size() == 2) {
           tensor->set_dims(0, tensor->dims(0) * tensor->dims(1));
           tensor->set_dims(1, 1);
         } else {
           tensor->add_dims(1);
         }
       }},
      {"input without a type", [](auto &model) { model.mutable_graph()->mutable_input(0)->clear_type(); }},
      {"attribute of the wrong type",
       [](auto &model) {
         for (auto &node : *model.mutable_graph()->mutable_node())
           for (auto &attribute : *node.mutable_attribute())
             attribute.set_type(proto::AttributeProto::STRING);
       }},
  };
  for (const auto &[name, edit] : cases) {
    proto::ModelProto broken = model;
    edit(broken);
    expectRefused(broken.SerializeAsString(), name);
  }
}

// A flipped bit may leave a model that is fine, or one that is refused; nothing else.
TEST_F(RefusalTest, FlippedBitsAreRefusedOrCompiled) {
  auto flip = [](std::string &file, size_t place, size_t i) {
    place %= file.size();
    file[place] = char(file[place] ^ (1 << i % 8));
    return " byte " + std::to_string(place) + " bit " + std::to_string(i % 8);
  };
  auto check = [&](const std::string &damaged, const std::string &flips) {
    Outcome outcome = compile(damaged);
    EXPECT_TRUE(outcome.status == 0 || outcome.status == 2) << flips << ": " << outcome.status << "\n"
                                                            << outcome.errors;
    std::filesystem::remove_all(folder / "inside/artifact");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "inside"),
                            std::filesystem::directory_iterator{}),
              1)
        << flips;
  };
  for (size_t i = 0; i < 40; i += 2) {
    std::string damaged = bytes, flips = flip(damaged, (i * 7919u) % 700, i);
    check(damaged, flips);
  }
  // Most of the file is weights, where nothing can go wrong: there, five at a time.
  for (size_t first = 1; first < 40; first += 10) {
    std::string damaged = bytes, flips;
    for (size_t i = first; i < first + 10; i += 2)
      flips += flip(damaged, i * 2654435761u, i);
    check(damaged, flips);
  }
}
