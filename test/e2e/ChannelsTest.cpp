// --train REGEX:channels=: a step changes the first output channels as a step of all would, and no bit of the others;
// state, gradients and plans are of what is trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/frontend/onnx.pb.h"
#include "test/e2e/Models.h"
#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// A model, and where its parameters have their output channels; axis 0 for names that are not there.
struct Case {
  friend void PrintTo(const Case &value, std::ostream *out) { *out << value.model; }
  const char *model;
  std::map<std::string, int64_t> axes;
  bool
      bitwise; ///< filter gradients of few results are summed in other parts than those of many (decision 0013)
};

/// The axis and count of the trained channels, by rules of this test.
std::pair<int64_t, int64_t> channelsOf(const Case &model, const std::string &name,
                                       const std::vector<int64_t> &shape, double share) {
  auto found = model.axes.find(name);
  int64_t axis = found == model.axes.end() ? 0 : found->second;
  return {axis, int64_t(std::ceil(share * double(shape[axis])))};
}

/// Whether element `at` of a tensor of this shape is in the first `count` along `axis`.
bool isTrained(size_t at, const std::vector<int64_t> &shape, int64_t axis, int64_t count) {
  for (size_t i = shape.size(); i-- > size_t(axis) + 1;)
    at /= size_t(shape[i]);
  return int64_t(at % size_t(shape[axis])) < count;
}

std::vector<int64_t> shapeOf(const Session &session, const std::string &name) {
  ortc_tensor_info info{};
  info.size = sizeof info;
  EXPECT_EQ(ortc_tensor_find(session.getProgram(), name.c_str(), &info), ORTC_OK) << name;
  return {info.dims, info.dims + info.rank};
}

std::vector<float> floatsOf(const Bytes &bytes) {
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), values.size() * 4);
  return values;
}

class ChannelsTest : public testing::Test {
protected:
  void compile(const std::string &name, const std::string &model, const std::vector<std::string> &more) {
    ZooEntry entry(model);
    std::vector<std::string> flags{"train",    entry.model(), "-o",     folder / name,
                                   "--target", "native",      "--quiet"};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(flags);
  }
  TemporaryFolder folder;
};

using DeviceChannelsTest = ChannelsTest;

class ChannelsModelTest : public ChannelsTest, public testing::WithParamInterface<Case> {};

TEST_P(ChannelsModelTest, AStepIsThatOfAllTensorsWithTheOtherChannelsFrozen) {
  const Case &model = GetParam();
  ZooEntry entry(model.model);
  std::unique_ptr<engine::DataSource> data;
  ASSERT_TRUE(engine::openData(entry.data(), data).isOk());
  const std::vector<std::string> sgd{"--optimizer", "sgd:lr=0.5"};
  compile("all", model.model, sgd);
  Session all(folder / "all");
  all.writeSlice(*data, 0);
  auto initial = all.readPersistent();
  double loss = 0, partLoss = 0;
  ASSERT_EQ(ortc_train_step(all.get(), &loss), ORTC_OK) << all.message();
  auto whole = all.readPersistent();
  for (double share : {0.5, 0.2}) {
    SCOPED_TRACE(share);
    auto flags = sgd;
    flags.insert(flags.end(), {"--train", ".*:channels=" + std::to_string(share)});
    compile("part", model.model, flags);
    Session part(folder / "part");
    ASSERT_NE(part.get(), nullptr);
    part.writeSlice(*data, 0);
    ASSERT_EQ(ortc_train_step(part.get(), &partLoss), ORTC_OK) << part.message();
    EXPECT_EQ(partLoss, loss);
    auto got = part.readPersistent();
    ASSERT_EQ(got.size(), whole.size());
    int64_t moved = 0, frozen = 0;
    for (const auto &[name, bytes] : got) {
      ortc_tensor_info info{};
      info.size = sizeof info;
      ASSERT_EQ(ortc_tensor_find(part.getProgram(), name.c_str(), &info), ORTC_OK);
      if (info.role != ORTC_ROLE_PARAMETER) {
        EXPECT_TRUE(bytes == whole[name]) << name;
        continue;
      }
      std::vector<int64_t> shape(info.dims, info.dims + info.rank);
      auto [axis, count] = channelsOf(model, name, shape, share);
      std::vector<float> now = floatsOf(bytes), before = floatsOf(initial[name]),
                         wanted = floatsOf(whole[name]);
      double largest = 0;
      for (size_t i = 0; i < now.size(); ++i)
        largest = std::max(largest, std::abs(double(wanted[i]) - before[i]));
      for (size_t i = 0; i < now.size(); ++i) {
        if (!isTrained(i, shape, axis, count)) {
          ++frozen;
          ASSERT_EQ(std::memcmp(&now[i], &before[i], 4), 0) << name << " " << i;
        } else if (model.bitwise) {
          ASSERT_EQ(std::memcmp(&now[i], &wanted[i], 4), 0) << name << " " << i;
        } else {
          // Sums of some hundred numbers of about 1e-3, in another order.
          ASSERT_NEAR(now[i], wanted[i], 2e-5 * largest + 1e-6 * std::abs(wanted[i]) + 2e-8)
              << name << " " << i;
        }
        moved += now[i] != before[i];
      }
    }
    EXPECT_GT(moved, 0);
    EXPECT_GT(frozen, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, ChannelsModelTest,
    testing::Values(Case{"mlp-digits", {}, true}, Case{"lenet", {}, false},
                    Case{"mobilenetv2-tiny", {}, false},
                    Case{"autoencoder-conv", {{"6.weight", 1}, {"8.weight", 1}, {"10.weight", 1}}, false}),
    [](const auto &info) { return caseName(info.param.model); });

/// Every optimizer, with everything that has state or moves what has no gradient.
TEST_F(ChannelsTest, StateIsOfTheTrainedChannels) {
  ZooEntry entry("mlp-digits");
  for (const char *optimizer : {"sgd:momentum=0.9,weight_decay=0.1", "adam:weight_decay=0.1",
                                "adamw:weight_decay=0.1", "rmsprop:momentum=0.9,centered=1", "adagrad"}) {
    SCOPED_TRACE(optimizer);
    compile("part", "mlp-digits", {"--optimizer", optimizer, "--train", ".*weight:channels=0.25"});
    Session session(folder / "part");
    auto initial = session.readPersistent();
    mustRun({"run", folder / "part", "--data", entry.data(), "--steps", "5", "--save", folder / "five",
             "--quiet"});
    ASSERT_EQ(ortc_checkpoint_load(session.get(), (folder / "five").c_str(), nullptr), ORTC_OK)
        << session.message();
    int states = 0;
    for (const auto &[name, bytes] : session.readPersistent()) {
      std::vector<int64_t> shape = shapeOf(session, name);
      if (name.starts_with("0.weight.")) {
        EXPECT_EQ(shape, (std::vector<int64_t>{16, 64})) << name;
        ++states;
      }
      if (name != "0.weight" && name != "2.weight")
        continue;
      size_t trained = (name[0] == '0' ? 16 : 3) * 64 * 4;
      EXPECT_TRUE(std::equal(bytes.begin() + trained, bytes.end(), initial[name].begin() + trained)) << name;
      std::vector<float> now = floatsOf(bytes), before = floatsOf(initial[name]);
      for (size_t i = 0; i < trained / 4; ++i)
        ASSERT_TRUE(std::isfinite(now[i])) << name << " " << i;
      EXPECT_FALSE(std::equal(bytes.begin(), bytes.begin() + 256, initial[name].begin())) << name;
    }
    EXPECT_GT(states, 0);
    // A run that is resumed goes on with the same bits.
    mustRun({"run", folder / "part", "--data", entry.data(), "--steps", "2", "--save", folder / "two",
             "--quiet"});
    mustRun({"run", folder / "part", "--data", entry.data(), "--steps", "3", "--load", folder / "two",
             "--save", folder / "resumed", "--quiet"});
    EXPECT_EQ(readTensors(folder / "resumed"), readTensors(folder / "five"));
  }
}

/// The channels that are frozen after some steps have the bits of `initial`; others have moved. Axes are 0.
void expectFrozen(const std::map<std::string, Values> &initial, const std::map<std::string, Values> &after,
                  double share) {
  for (const auto &[name, values] : after) {
    if (!name.ends_with(".weight") && !name.ends_with(".bias"))
      continue;
    const Values &before = valuesOf(initial, name);
    size_t frozen =
        values.data.size() / size_t(values.shape[0]) * size_t(std::ceil(share * double(values.shape[0])));
    ASSERT_LT(frozen, values.data.size()) << name;
    EXPECT_TRUE(std::equal(values.data.begin() + frozen, values.data.end(), before.data.begin() + frozen))
        << name;
    EXPECT_FALSE(std::equal(values.data.begin(), values.data.begin() + frozen, before.data.begin())) << name;
  }
}

TEST_F(ChannelsTest, EveryKindOfStepLeavesTheOthersAlone) {
  ZooEntry entry("lenet");
  for (std::vector<std::string> flags : {std::vector<std::string>{"--accumulate", "2"},
                                         {"--clip-norm", "0.1", "--clip-value", "0.05", "--max-workers", "4"},
                                         {"--loss-scale", "dynamic:init=128"},
                                         {"--parameters", "bf16:stochastic"},
                                         {"--precision", "bf16"},
                                         {"--group", ".*bias:lr_scale=2,weight_decay=0.1"},
                                         {"--numerics", "portable"}}) {
    SCOPED_TRACE(flags[0]);
    flags.insert(flags.end(), {"--optimizer", "adamw:lr=0.01", "--train", ".*:channels=0.4"});
    compile("part", "lenet", flags);
    auto run = [&](const char *steps, const char *save) {
      mustRun({"run", folder / "part", "--data", entry.data(), "--steps", steps, "--lr", "0.01", "--quiet",
               "--save", folder / save});
    };
    Session session(folder / "part");
    ASSERT_EQ(ortc_checkpoint_save(session.get(), (folder / "initial").c_str(), nullptr, 0), ORTC_OK);
    run("4", "four");
    expectFrozen(loadValues(folder / "initial"), loadValues(folder / "four"), 0.4);
  }
}

/// A device's kernels work in the tensor's memory, too.
TEST_F(DeviceChannelsTest, AreThoseOfTheProcessor) {
  ZooEntry entry("lenet");
  const std::vector<std::string> flags{"--optimizer", "adam:lr=0.01,weight_decay=0.1", "--train",
                                       ".*:channels=0.4"};
  compile("cpu", "lenet", flags);
  auto forDevice = flags;
  forDevice.insert(forDevice.end(), {"--target", "sm_80"});
  ZooEntry model("lenet");
  std::vector<std::string> train{"train", model.model(), "-o", folder / "gpu", "--quiet"};
  train.insert(train.end(), model.flags.begin(), model.flags.end());
  train.insert(train.end(), forDevice.begin(), forDevice.end());
  mustRun(train);
  for (const char *name : {"cpu", "gpu"}) {
    std::vector<std::string> run{"run",          folder / name, "--data",
                                 entry.data(),   "--steps",     "2",
                                 "--no-shuffle", "--save",      folder / (name + std::string("-saved")),
                                 "--quiet"};
    if (*name == 'g')
      run.insert(run.end(), {"--device", "cuda"});
    mustRun(run);
  }
  Session session(folder / "cpu");
  ASSERT_EQ(ortc_checkpoint_save(session.get(), (folder / "initial").c_str(), nullptr, 0), ORTC_OK);
  auto initial = loadValues(folder / "initial"), cpu = loadValues(folder / "cpu-saved"),
       gpu = loadValues(folder / "gpu-saved");
  expectFrozen(initial, gpu, 0.4);
  ASSERT_EQ(cpu.size(), gpu.size());
  for (const auto &[name, values] : cpu)
    for (size_t i = 0; i < values.data.size(); ++i) // steps of 0.01, of a quotient of two averages
      ASSERT_NEAR(values.data[i], valuesOf(gpu, name).data[i], 2e-5 + 1e-4 * std::abs(values.data[i]))
          << name << " " << i;
}

/// The update works in the parameter's memory: no plan has a buffer of its size.
TEST_F(ChannelsTest, NothingIsAsLargeAsTheTensor) {
  // 2048 x 64 weights of a layer of 8 samples: 512 KiB.
  proto::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto *graph = model.mutable_graph();
  graph->set_name("wide");
  auto add = [&](const char *op, std::vector<std::string> inputs, const char *output) {
    auto *node = graph->add_node();
    node->set_op_type(op);
    for (const std::string &input : inputs)
      node->add_input(input);
    node->add_output(output);
  };
  auto weight = [&](const char *name, int64_t rows, int64_t columns) {
    auto *tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(1);
    tensor->add_dims(rows);
    tensor->add_dims(columns);
    std::string data;
    for (int64_t i = 0; i < rows * columns; ++i)
      data += engine::test::bytesOf(float(std::sin(double(i)) * 0.05));
    tensor->set_raw_data(data);
  };
  weight("first", 64, 2048); // of a MatMul: channels are its columns
  weight("second", 10, 2048);
  add("MatMul", {"x", "first"}, "hidden");
  add("Relu", {"hidden"}, "active");
  add("Transpose", {"second"}, "turned");
  add("MatMul", {"active", "turned"}, "y");
  describe(graph->add_input(), "x", 1, {8, 64});
  describe(graph->add_output(), "y", 1, {8, 10});
  std::string path = folder.write("wide.onnx", model.SerializeAsString());
  auto transientOfShare = [&](const std::string &share) {
    mustRun({"train", path, "-o", folder / "wide", "--optimizer", "adam:weight_decay=0.01", "--target",
             "native", "--quiet", "--train", ".*:channels=" + share});
    auto manifest = nlohmann::json::parse(readFile(folder / "wide/manifest.json"));
    return std::pair(transientOf(folder / "wide"), manifest["memory"]["persistent"].get<uint64_t>());
  };
  auto [all, allPersistent] = transientOfShare("1");
  auto [part, persistent] = transientOfShare("0.125");
  Session session(folder / "wide");
  EXPECT_EQ(shapeOf(session, "first.exp_avg"), (std::vector<int64_t>{64, 256}));
  EXPECT_EQ(shapeOf(session, "second.exp_avg"), (std::vector<int64_t>{2, 2048}));
  // Two averages of the seven eighths that are frozen, and of 8 of 10 rows.
  EXPECT_EQ(allPersistent - persistent, 2u * 4 * (64 * 1792 + 8 * 2048));
  // 64 KiB of gradient for the trained part, and activations of 64 KiB each; the tensor has 512 KiB.
  EXPECT_LT(part, 320u << 10);
  EXPECT_GT(all, part);
}

TEST_F(ChannelsTest, WhatHasNoChannelsIsRefused) {
  auto refusal = [&](const std::string &model, const std::vector<std::string> &more) {
    ZooEntry entry(model);
    std::vector<std::string> flags{"train", entry.model(), "-o", folder / "none", "--quiet"};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    flags.insert(flags.end(), more.begin(), more.end());
    Outcome outcome = runTool(flags);
    EXPECT_EQ(outcome.status, 2) << outcome.errors;
    std::string text = outcome.errors, prefix = entry.model() + ": ";
    if (size_t at = text.find(prefix); at != std::string::npos)
      text.erase(at, prefix.size());
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(
      refusal("fasttext", {"--train", "0.weight:channels=0.5"}),
      "ortc: error: --train ...:channels=0.5: '0.weight' has no output channels of which a part "
      "could be "
      "trained: it is read by Gather, whose output channels are no part of it; train it whole, or freeze it");
  EXPECT_EQ(refusal("mlp-digits", {"--gradients", "--train", ".*:channels=0.5"}),
            "ortc: error: --gradients gives hosts whole gradients, and --train trains channels of a tensor; "
            "leave one "
            "of both out");
  for (const char *share : {"0", "1.5", "x", ""})
    EXPECT_NE(refusal("mlp-digits", {"--train", ".*:channels=" + std::string(share)}).find("channels"),
              std::string::npos);
}

/// The first --train that matches says how much.
TEST_F(ChannelsTest, TheFirstMatchWins) {
  compile("a", "mlp-digits",
          {"--optimizer", "adam", "--train", "0.bias", "--train", ".*:channels=0.5", "--train", "2.weight"});
  Session session(folder / "a");
  EXPECT_EQ(shapeOf(session, "0.bias.exp_avg"), (std::vector<int64_t>{64}));
  EXPECT_EQ(shapeOf(session, "0.weight.exp_avg"), (std::vector<int64_t>{32, 64}));
  EXPECT_EQ(shapeOf(session, "2.weight.exp_avg"), (std::vector<int64_t>{5, 64}));
  Outcome outcome = mustRun({"train", ZooEntry("mlp-digits").model(), "-o", folder / "b", "--shape",
                             "batch=64", "--target", "native", "--train", "0.weight:channels=0.25"});
  EXPECT_NE(outcome.text.find("trained    1 tensor, 1024 of the 4810 values"), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("frozen     channels of 0.weight: 3072 values"), std::string::npos)
      << outcome.text;
}

} // namespace
