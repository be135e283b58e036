// --qat: quantised layers against those of torch.ao.quantization (test/qat/make-qat.py).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// The least tolerances of test/zoo: losses, and what they are computed from as shares of the largest element. A value
/// that lies half way between two integers would be off by more; the steps of the goldens meet none that float32 does
/// not decide alike, and the sums of portable numerics are the same on all machines.
constexpr double kLossTolerance = 2e-6, kTolerance = 1e-5;

proto::ModelProto loadModel(const std::string &path) {
  proto::ModelProto model;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(model.ParseFromIstream(&file)) << path;
  return model;
}

/// The floats of an initializer.
std::vector<double> floatsOf(const proto::GraphProto &graph, const std::string &name) {
  for (const auto &tensor : graph.initializer()) {
    if (tensor.name() != name)
      continue;
    std::vector<float> values(tensor.raw_data().size() / sizeof(float));
    std::memcpy(values.data(), tensor.raw_data().data(), values.size() * sizeof(float));
    return {values.begin(), values.end()};
  }
  ADD_FAILURE() << "no initializer " << name;
  return {};
}

class QatTest : public testing::Test {
protected:
  std::string source(const std::string &name) const { return sourcePath("qat/" + name); }
  std::vector<std::string> trainFlags(const std::string &model, const std::vector<std::string> &more) const {
    std::vector<std::string> flags{"train",    model,           "-o",         folder / "artifact",
                                   "--loss",   "cross_entropy", "--numerics", "portable",
                                   "--target", "native",        "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    if (std::find(more.begin(), more.end(), "--optimizer") == more.end())
      flags.insert(flags.end(), {"--optimizer", "sgd:lr=0.02,momentum=0.9"});
    return flags;
  }
  void compile(const std::string &net, const std::vector<std::string> &more) {
    mustRun(trainFlags(source(net + "/model.onnx"), more));
  }
  /// The checkpoint after some steps.
  std::string train(const std::string &net, int steps, const std::string &save,
                    const std::vector<std::string> &more = {}) {
    std::vector<std::string> flags{
        "run",          folder / "artifact", "--data",    source(net + "/data.npz"),
        "--no-shuffle", "--quiet",           "--steps",   std::to_string(steps),
        "--save",       folder / save,       "--metrics", folder / (save + ".jsonl")};
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(flags);
    return folder / save;
  }
  Values predict(const std::string &net, const std::string &artifact, const std::vector<std::string> &more) {
    std::vector<std::string> flags{
        "predict", folder / artifact, "--data", source(net + "/data.npz"), "--steps", "1",
        "-o",      folder / "p.npz",  "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(flags);
    return valuesOf(loadValues(folder / "p.npz"), "output");
  }
  proto::ModelProto exportModel(const std::string &checkpoint) {
    mustRun({"export", folder / "artifact", "--load", checkpoint, "-o", folder / "q.onnx", "--quiet"});
    return loadModel(folder / "q.onnx");
  }
  /// A model of test/qat with a change, as a file.
  std::string edited(const std::function<void(proto::ModelProto &)> &change) {
    proto::ModelProto model = loadModel(source("conv/model.onnx"));
    change(model);
    std::ofstream file(folder / "edited.onnx", std::ios::binary);
    EXPECT_TRUE(model.SerializeToOstream(&file));
    return folder / "edited.onnx";
  }
  /// The data of the convolutional model with another first number.
  void writeWith(float first, const std::string &path) {
    std::unique_ptr<engine::DataSource> data;
    ASSERT_TRUE(engine::openData(source("conv/data.npz"), data).isOk());
    std::vector<engine::OutputArray> arrays;
    for (const std::string &name : data->getNames()) {
      Array from;
      ASSERT_TRUE(data->load(name, from).isOk());
      arrays.push_back({name, from.type, from.shape, {from.data, from.data + from.bytes}});
      if (from.type == DataType::Float32)
        std::memcpy(arrays.back().data.data(), &first, sizeof first);
    }
    ASSERT_TRUE(engine::writeNpz(path, arrays).isOk());
  }
  void expectRefusal(const std::vector<std::string> &flags, const std::string &message) {
    Outcome outcome = runTool(flags);
    EXPECT_EQ(outcome.status, 2) << message;
    EXPECT_NE(outcome.errors.find(message), std::string::npos) << "wanted: " << message << "\n"
                                                               << outcome.errors;
  }

  TemporaryFolder folder;
};

void expectNear(const std::vector<double> &got, const std::vector<double> &wanted, const std::string &what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  double span = 1e-6;
  for (double value : wanted)
    span = std::max(span, std::abs(value));
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i], kTolerance * span) << what << " at " << i;
}

struct Case {
  std::string name, net, optimizer, settings;
};

const char *const kAdam = "adam:lr=0.003,epsilon=1e-6";

const Case kCases[] = {
    {"default", "conv", "", ""},
    {"adam", "conv", kAdam, ""},
    {"frozen", "conv", "", ":observe=3"},
    {"minmax", "conv", "", ":per=tensor,observer=minmax"},
    {"four", "conv", "", ":bits=4"},
    {"learned", "conv", "", ":learned=1,observe=2"},
    {"text", "text", "", ""},
    {"text-adam", "text", kAdam, ":averaging=0.25"},
    {"text-learned", "text", "", ":learned=1,per=tensor"},
};

class QatGoldenTest : public QatTest, public testing::WithParamInterface<Case> {
protected:
  /// What is exported is of the standard alone, and computes what `predict` does: both round alike.
  void expectExported(const Case &each, const proto::ModelProto &exported, const std::string &saved);
  /// The scale that an exported layer has for what it reads, or for its weight.
  std::vector<double> scaleOf(const proto::GraphProto &graph, const std::string &layer, bool isWeight) {
    for (const auto &node : graph.node()) {
      bool isLayer = node.op_type() == "Conv" || node.op_type() == "Gemm" || node.op_type() == "MatMul";
      if (!isLayer || !node.name().starts_with("/" + layer + "/"))
        continue;
      std::string value = node.input(isWeight ? 1 : 0);
      for (;;) {
        const auto *found = std::find_if(graph.node().begin(), graph.node().end(), [&](const auto &each) {
                              return each.output(0) == value;
                            }).operator->();
        if (found->op_type() == "DequantizeLinear")
          return floatsOf(graph, found->input(1));
        if (found->op_type() != "Transpose")
          break;
        value = found->input(0);
      }
    }
    ADD_FAILURE() << "layer " << layer << " reads no integers";
    return {};
  }
};

TEST_P(QatGoldenTest, TrainsAsPyTorchDoesAndExportsIt) {
  const Case &each = GetParam();
  std::vector<std::string> flags{"--qat", ".*weight" + each.settings, "--group",
                                 ".*scale_offset:lr_scale=0.1"};
  if (!each.optimizer.empty())
    flags.insert(flags.end(), {"--optimizer", each.optimizer});
  compile(each.net, flags);
  std::string saved = train(each.net, 6, "saved");
  auto golden = loadValues(source(each.net + "/golden.npz")), state = loadValues(saved);
  proto::ModelProto exported = exportModel(saved);
  const std::vector<double> &losses = valuesOf(golden, each.name + "/loss").data;
  std::vector<double> got = loadLosses(saved + ".jsonl");
  ASSERT_EQ(got.size(), losses.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], losses[i], kLossTolerance) << "step " << i;
  size_t compared = 0;
  for (const auto &[key, values] : golden) {
    if (!key.starts_with(each.name + "/"))
      continue;
    std::string kind = key.substr(each.name.size() + 1, 3), name = key.substr(key.rfind('/') + 1);
    bool isWeight = name.ends_with(".weight");
    std::string layer = name.substr(0, name.rfind('.'));
    if (kind == "par")
      expectNear(valuesOf(state, name).data, values.data, key);
    else if ((kind == "min" || kind == "max") && isWeight)
      expectNear(valuesOf(state, name + "." + kind).data, values.data, key);
    else if (kind == "sca")
      expectNear(scaleOf(exported.graph(), layer, isWeight), values.data, key);
    else if (kind == "out")
      expectNear(predict(each.net, "artifact", {"--load", saved}).data, values.data, key);
    else
      continue;
    ++compared;
  }
  EXPECT_GE(compared, 30u);
  expectExported(each, exported, saved);
}

void QatGoldenTest::expectExported(const Case &each, const proto::ModelProto &exported,
                                   const std::string &saved) {
  for (const auto &node : exported.graph().node())
    EXPECT_EQ(node.domain(), "") << node.name();
  for (const auto &import : exported.opset_import())
    EXPECT_EQ(import.domain(), "");
  size_t integers = 0;
  for (const auto &tensor : exported.graph().initializer()) {
    integers += tensor.data_type() == proto::TensorProto::INT8 && tensor.dims_size() > 1;
    EXPECT_FALSE(tensor.name().ends_with(".min") || tensor.name().ends_with(".scale_offset"))
        << tensor.name();
  }
  EXPECT_EQ(integers, each.net == "conv" ? 5u : 7u);
  mustRun({"train", folder / "q.onnx", "-o", folder / "plain", "--loss", "none", "--target", "native",
           "--numerics", "portable", "--quiet"});
  expectNear(predict(each.net, "plain", {}).data, predict(each.net, "artifact", {"--load", saved}).data,
             "output");
}

INSTANTIATE_TEST_SUITE_P(Qat, QatGoldenTest, testing::ValuesIn(kCases),
                         [](const auto &info) { return caseName(info.param.name); });

/// Ranges are state: a run in two parts, and any number of threads, give the same bits. Three steps observe, so that
/// the second part learns.
TEST_F(QatTest, SameBitsForThreadsAndResumption) {
  compile("conv", {"--qat", ".*weight:learned=1,observe=3", "--max-workers", "4"});
  std::string one = readTensors(train("conv", 6, "one", {"--threads", "1"}));
  EXPECT_TRUE(one == readTensors(train("conv", 6, "two", {"--threads", "2"})));
  EXPECT_TRUE(one == readTensors(train("conv", 6, "four", {"--threads", "4"})));
  std::string first = train("conv", 2, "first", {"--threads", "2"});
  EXPECT_TRUE(one == readTensors(train("conv", 4, "second", {"--threads", "2", "--load", first})));
}

/// A batch whose gradients wait is observed like others.
TEST_F(QatTest, EveryBatchOfAGroupIsObserved) {
  compile("conv", {"--qat", ".*weight:observe=3", "--accumulate", "2"});
  auto one = loadValues(train("conv", 1, "one")), two = loadValues(train("conv", 2, "two"));
  EXPECT_EQ(valuesOf(two, "first.weight").data == valuesOf(one, "first.weight").data, false);
  EXPECT_EQ(valuesOf(two, "random.step").bits, std::vector<uint64_t>{2});
  EXPECT_NE(valuesOf(two, "x.min").data, valuesOf(one, "x.min").data);
}

/// Nothing has been observed before the first step: the model computes what it did, and has no integers to export.
TEST_F(QatTest, BeginsWithTheModel) {
  compile("conv", {"--qat", ".*weight"});
  mustRun({"train", source("conv/model.onnx"), "-o", folder / "plain", "--loss", "none", "--target", "native",
           "--numerics", "portable", "--quiet"});
  expectNear(predict("conv", "artifact", {}).data, predict("conv", "plain", {}).data, "output");
  expectRefusal({"export", folder / "artifact", "-o", folder / "q.onnx"},
                "no training step has seen ranges to quantise by; train at least one");
  EXPECT_TRUE(readFile(folder / "q.onnx").empty());
}

/// Evaluation rounds by the ranges and leaves them as they are.
TEST_F(QatTest, EvaluationObservesNothing) {
  compile("conv", {"--qat", ".*weight"});
  std::string saved = train("conv", 2, "saved");
  auto before = predict("conv", "artifact", {"--load", saved}).data;
  mustRun({"run", folder / "artifact", "--data", source("conv/data.npz"), "--load", saved, "--steps", "0",
           "--eval-data", source("conv/data.npz"), "--save", folder / "after", "--quiet"});
  EXPECT_EQ(predict("conv", "artifact", {"--load", folder / "after"}).data, before);
  EXPECT_NE(predict("conv", "artifact", {}).data, before);
}

/// What is not finite moves no range of its own. Infinities are cut to the range before; NaN comes through to the
/// gradients, so that loss scaling skips the step and the next one is as if it had not been.
TEST_F(QatTest, NumbersThatAreNotFiniteMoveNoRange) {
  auto isOfActivation = [](const std::string &name) {
    return (name.ends_with(".min") || name.ends_with(".max")) && name.find(".weight.") == std::string::npos;
  };
  for (const char *observer : {"minmax", "moving_average"}) {
    compile("conv", {"--qat", std::string(".*weight:observer=") + observer, "--loss-scale", "dynamic"});
    for (bool isNan : {false, true}) {
      std::string data = folder / "data.npz", metrics = folder / (std::to_string(isNan) + observer);
      writeWith(isNan ? NAN : INFINITY, data);
      std::map<std::string, Values> after[4];
      for (int steps : {0, 1, 3}) {
        std::string saved = folder / "saved";
        mustRun({"run", folder / "artifact", "--data", data, "--no-shuffle", "--steps", std::to_string(steps),
                 "--eval-data", source("conv/data.npz"), "--metrics", metrics + std::to_string(steps),
                 "--save", saved, "--quiet"});
        after[steps] = loadValues(saved);
      }
      size_t still = 0, moved = 0;
      for (const auto &[name, values] : after[0])
        if (isOfActivation(name)) {
          still += valuesOf(after[1], name).data == values.data;
          moved += valuesOf(after[3], name).data != values.data;
        }
      EXPECT_EQ(valuesOf(after[1], "x.min").data, valuesOf(after[0], "x.min").data);
      EXPECT_EQ(still, isNan ? 10u : 2u);
      EXPECT_EQ(moved, 10u);
      for (int steps : {1, 3})
        EXPECT_EQ(valuesOf(after[steps], "loss_scale.skipped").bits, std::vector<uint64_t>{isNan ? 1u : 0u});
      std::string lines = readFile(metrics + "3"), lost = R"("loss":null)";
      size_t second = lines.find(R"("step":2)");
      ASSERT_NE(second, std::string::npos) << lines;
      EXPECT_EQ(lines.find(lost) < second, isNan) << lines;
      EXPECT_EQ(lines.find(lost, second), std::string::npos) << lines;
    }
  }
}

/// Gradients of quantised filters are float32 where products are narrow.
TEST_F(QatTest, TrainsWithNarrowProducts) {
  for (const char *precision : {"bf16", "f16"}) {
    compile("conv", {"--qat", ".*weight", "--precision", precision});
    train("conv", 4, "saved");
    for (double loss : loadLosses(folder / "saved.jsonl"))
      EXPECT_TRUE(std::isfinite(loss)) << precision;
  }
}

TEST_F(QatTest, FrozenScalesAreNotLearned) {
  for (const char *frozen : {"head.bias", ".*scale_offset"}) {
    compile("conv", {"--qat", ".*weight:learned=1", "--freeze", frozen});
    size_t states = 0;
    for (const auto &[name, values] : loadValues(train("conv", 1, "saved")))
      states += name.ends_with("scale_offset.momentum_buffer");
    EXPECT_EQ(states > 0, std::string(frozen) == "head.bias");
  }
}

TEST_F(QatTest, ManifestListsQuantizers) {
  compile("text", {"--qat", "(query|value).weight:bits=6", "--qat", "head.weight:per=tensor,learned=1"});
  std::string manifest = readFile(folder / "artifact/manifest.json");
  for (const char *wanted :
       {R"("tensor": "query.weight")", R"("minimum": "query.weight.min")", R"("bits": 6)",
        R"("scale_offset": "head.weight.scale_offset")", R"("kind": "activation")"})
    EXPECT_NE(manifest.find(wanted), std::string::npos) << wanted;
  EXPECT_EQ(manifest.find(R"("tensor": "key.weight")"), std::string::npos);
}

TEST_F(QatTest, SaysHowMuchIsQuantised) {
  auto note = [&](const std::string &qat) {
    return mustRun({"train", source("conv/model.onnx"), "-o", folder / "artifact", "--loss", "cross_entropy",
                    "--target", "native", "--qat", qat})
        .errors;
  };
  EXPECT_NE(note("head.weight").find("1 weight and 1 value that its layer reads are quantised"),
            std::string::npos);
  EXPECT_NE(note(".*weight").find("5 weights and 5 values that their layers read are quantised"),
            std::string::npos)
      << note(".*weight");
}

TEST_F(QatTest, RefusesWhatCannotBe) {
  struct Bad {
    std::string qat, message;
  };
  const Bad cases[] = {
      {"heads.weight", "--qat heads.weight: no initializer has a name that it matches whole"},
      {"heads.weight", "closest: 'head.weight'"},
      {"first.bias",
       "'first.bias': no MatMul, Gemm, Conv or ConvTranspose of the main graph computes with it"},
      {".*weight:bits=9", "bits is 9 but must be from 2 to 8"},
      {".*weight:bits=1", "bits is 1 but must be from 2 to 8"},
      {".*weight:bits=x", "bits is 'x' but must be a whole number"},
      {".*weight:per=row", "per is 'row' but must be one of channel, tensor"},
      {".*weight:observer=histogram", "observer is 'histogram' but must be one of moving_average, minmax"},
      {".*weight:averaging=2", "averaging is '2' but must be a number from 0 to 1"},
      {".*weight:observer=minmax,averaging=0.1", "averaging is of observer=moving_average; leave it out"},
      {".*weight:observe=-1", "observe is -1 but must be 0 or more"},
      {".*weight:learned=2", "learned is '2' but must be 0 or 1"},
      {".*weight:bit=8", "has no option 'bit'; it takes bits, per, observer, averaging, observe, learned"},
      {"(", "is not a regular expression"},
  };
  std::string model = source("conv/model.onnx");
  for (const Bad &each : cases)
    expectRefusal(trainFlags(model, {"--qat", each.qat}), each.message);
  expectRefusal(trainFlags(model, {"--qat", ".*weight", "--lora", "head.weight"}),
                "--qat and --lora do not go together");
  expectRefusal({"train", model, "-o", folder / "artifact", "--loss", "none", "--qat", ".*weight"},
                "--qat needs a loss");
  expectRefusal({"check", model, "--qat", ".*weight"}, "--qat rounds, and differences of losses do not show");
  EXPECT_TRUE(readFile(folder / "artifact/manifest.json").empty());
}

TEST_F(QatTest, RefusesModelsThatDoNotFit) {
  auto refuse = [&](const std::string &settings, const std::string &message,
                    const std::function<void(proto::ModelProto &)> &change) {
    expectRefusal(trainFlags(edited(change), {"--qat", ".*weight" + settings}), message);
  };
  refuse("", "the model is quantised already, by node 'q' (QuantizeLinear)", [](proto::ModelProto &model) {
    auto &node = *model.mutable_graph()->add_node();
    node.set_name("q");
    node.set_op_type("QuantizeLinear");
    node.add_input("x");
    node.add_input("first.bias");
    node.add_output("integers");
  });
  refuse("", "what is exported of per=channel needs opset 13, and the model has opset 12",
         [](proto::ModelProto &model) { model.mutable_opset_import(0)->set_version(12); });
  refuse(":per=tensor", "what is exported of per=tensor needs opset 10, and the model has opset 9",
         [](proto::ModelProto &model) { model.mutable_opset_import(0)->set_version(9); });
  refuse(":per=tensor,bits=4", "what is exported of per=tensor needs opset 11, and the model has opset 10",
         [](proto::ModelProto &model) { model.mutable_opset_import(0)->set_version(10); });
  for (auto [type, name, bytes] : {std::tuple(proto::TensorProto::FLOAT16, "FLOAT16", 2),
                                   std::tuple(proto::TensorProto::INT8, "INT8", 1)})
    refuse("",
           "'first.weight' cannot be quantised: it is " + std::string(name) + ", and only weights of FLOAT",
           [type = type, bytes = bytes](proto::ModelProto &model) {
             for (auto &tensor : *model.mutable_graph()->mutable_initializer())
               if (tensor.name() == "first.weight") {
                 tensor.set_data_type(type);
                 tensor.mutable_raw_data()->resize(tensor.raw_data().size() / 4 * static_cast<size_t>(bytes));
               }
           });
  refuse("",
         "has its channels along axis 0 of it and node 'again' (Gemm) along axis 1; per=tensor gives it one "
         "range",
         [](proto::ModelProto &model) {
           auto &node = *model.mutable_graph()->add_node(); // reads the last weight the other way round
           node.set_op_type("Gemm");
           node.add_input("output");
           node.add_input("head.weight");
           node.add_output("again");
         });
}

/// A weight with another reader is a weight for its layers alone, and is exported for the other reader as it is.
TEST_F(QatTest, OtherReadersKeepTheWeight) {
  std::string model = edited([](proto::ModelProto &model) {
    auto &node = *model.mutable_graph()->add_node();
    node.set_op_type("ReduceSum");
    node.set_name("total");
    node.add_input("head.weight");
    node.add_output("total");
    auto &output = *model.mutable_graph()->add_output();
    output.set_name("total");
    output.mutable_type()->mutable_tensor_type()->set_elem_type(proto::TensorProto::FLOAT);
  });
  mustRun(trainFlags(model, {"--qat", "head.weight", "--loss-input", "output"}));
  std::string saved = train("conv", 1, "saved");
  proto::ModelProto exported = exportModel(saved);
  for (const auto &node : exported.graph().node())
    if (node.name() == "total")
      EXPECT_EQ(node.input(0), "head.weight");
  EXPECT_EQ(floatsOf(exported.graph(), "head.weight"), valuesOf(loadValues(saved), "head.weight").data);
}

} // namespace
