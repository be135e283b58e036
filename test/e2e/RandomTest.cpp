// Random operators: distributions, independence, the same bits for threads and resumption, one mask for
// forward and backward.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <optional>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "test/e2e/Models.h"
#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;
using proto::AttributeProto;
using proto::TensorProto;

namespace {

using Numbers = std::vector<double>;

double meanOf(const Numbers &x) {
  double sum = 0;
  for (double value : x)
    sum += value;
  return sum / double(x.size());
}

double momentOf(const Numbers &x, int order) {
  double mean = meanOf(x), sum = 0;
  for (double value : x)
    sum += std::pow(value - mean, order);
  return sum / double(x.size());
}

double correlation(const Numbers &x, const Numbers &y) {
  double mx = meanOf(x), my = meanOf(y), sum = 0;
  for (size_t i = 0; i < x.size(); ++i)
    sum += (x[i] - mx) * (y[i] - my);
  return sum / double(x.size()) / std::sqrt(momentOf(x, 2) * momentOf(y, 2));
}

/// 64 cells of equal probability: the sum has a mean of 63 and a deviation of 11.2. `distribution` maps to [0, 1).
void expectFits(const Numbers &x, const std::function<double(double)> &distribution,
                const std::string &name) {
  Numbers cells(64);
  for (double value : x)
    cells[std::min(size_t(63), size_t(distribution(value) * 64))] += 1;
  double expected = double(x.size()) / 64, sum = 0;
  for (double count : cells)
    sum += (count - expected) * (count - expected) / expected;
  EXPECT_LT(sum, 63 + 4 * 11.2) << name;
  EXPECT_GT(sum, 63 - 4 * 11.2) << name;
}

double normalDistribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

class RandomTest : public testing::Test {
protected:
  RandomTest() {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(15);
    graph = model.mutable_graph();
    graph->set_name("g");
  }

  template <typename T>
  void addInitializer(const std::string &name, int type, const std::vector<int64_t> &dims,
                      const std::vector<T> &values) {
    TensorProto *tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    tensor->mutable_dims()->Add(dims.begin(), dims.end());
    tensor->set_raw_data(
        std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)));
  }
  void addFloats(const std::string &name, const std::vector<int64_t> &dims,
                 const std::vector<float> &values) {
    addInitializer(name, TensorProto::FLOAT, dims, values);
  }
  proto::NodeProto *addNode(const std::string &op, const std::vector<std::string> &inputs,
                            const std::string &output) {
    proto::NodeProto *node = graph->add_node();
    node->set_op_type(op);
    for (const std::string &input : inputs)
      node->add_input(input);
    node->add_output(output);
    return node;
  }
  static void setInt(proto::NodeProto *node, const std::string &name, int64_t value) {
    AttributeProto *attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(AttributeProto::INT);
    attribute->set_i(value);
  }
  static void setFloat(proto::NodeProto *node, const std::string &name, float value) {
    AttributeProto *attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(AttributeProto::FLOAT);
    attribute->set_f(value);
  }
  /// A random node without operands, whose result is an output.
  proto::NodeProto *addSource(const std::string &op, const std::string &output,
                              int type = TensorProto::FLOAT) {
    proto::NodeProto *node = addNode(op, {}, output);
    AttributeProto *shape = node->add_attribute();
    shape->set_name("shape");
    shape->set_type(AttributeProto::INTS);
    shape->add_ints(256);
    shape->add_ints(kCount / 256);
    setInt(node, "dtype", type);
    describe(graph->add_output(), output, type, {256, kCount / 256});
    return node;
  }
  void addDropout(const std::string &input, const std::string &output, float ratio, bool trains) {
    addFloats(output + ".ratio", {}, {ratio});
    addInitializer(output + ".mode", TensorProto::BOOL, {}, std::vector<uint8_t>{trains});
    addNode("Dropout", {input, output + ".ratio", output + ".mode"}, output);
  }
  /// y = sum(x * dropout(w)), w all ones.
  void buildSum(float ratio, bool trains) {
    describe(graph->add_input(), "x", TensorProto::FLOAT, {kCount});
    addFloats("w", {kCount}, std::vector<float>(kCount, 1));
    addDropout("w", "d", ratio, trains);
    addNode("Mul", {"x", "d"}, "m");
    setInt(addNode("ReduceSum", {"m"}, "y"), "keepdims", 0);
    describe(graph->add_output(), "y", TensorProto::FLOAT, {});
    std::vector<float> x(kCount);
    for (size_t i = 0; i < kCount; ++i)
      x[i] = 0.5f + float(i % 7) / 8;
    writeData({{"x", {kCount}, x}});
  }
  /// Two layers with dropout behind the first one, trained on 10 batches of 16.
  void buildNet() {
    describe(graph->add_input(), "x", TensorProto::FLOAT, {16, 24});
    std::vector<float> first(24 * 40), second(40 * 5), x(160 * 24), label(160 * 5);
    for (auto *values : {&first, &second, &x, &label})
      for (size_t i = 0; i < values->size(); ++i)
        (*values)[i] = float(std::sin(1.7 * double(i) + double(values->size()))) / 4;
    addFloats("first", {24, 40}, first);
    addFloats("second", {40, 5}, second);
    addNode("MatMul", {"x", "first"}, "p");
    addNode("Relu", {"p"}, "r");
    addDropout("r", "d", 0.3f, true);
    addNode("MatMul", {"d", "second"}, "y");
    describe(graph->add_output(), "y", TensorProto::FLOAT, {16, 5});
    writeData({{"x", {160, 24}, x}, {"label", {160, 5}, label}});
  }

  struct Array {
    std::string name;
    Shape shape;
    std::vector<float> values;
  };
  void writeData(const std::vector<Array> &arrays) {
    std::vector<engine::OutputArray> written;
    for (const Array &array : arrays) {
      std::vector<uint8_t> bytes(array.values.size() * 4);
      std::memcpy(bytes.data(), array.values.data(), bytes.size());
      written.push_back({array.name, DataType::Float32, array.shape, bytes});
    }
    ASSERT_TRUE(engine::writeNpz(folder / "data.npz", written).isOk());
  }

  std::vector<std::string> trainCommand(const std::string &name, const std::vector<std::string> &flags) {
    std::vector<std::string> arguments{"train",    folder.write("m.onnx", model.SerializeAsString()),
                                       "-o",       folder / name,
                                       "--target", "native",
                                       "--quiet"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
  }
  Outcome compile(const std::string &name, const std::vector<std::string> &flags) {
    return mustRun(trainCommand(name, flags));
  }
  std::map<std::string, Values> train(const std::string &name, const std::string &save, int steps,
                                      const std::vector<std::string> &more = {}) {
    std::vector<std::string> arguments{
        "run",    folder / name, "--data",    folder / "data.npz",        "--steps", std::to_string(steps),
        "--save", folder / save, "--metrics", folder / (save + ".jsonl"), "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    mustRun(arguments);
    return loadValues(folder / save);
  }
  std::map<std::string, Values> predict(const std::string &name, const std::vector<std::string> &more = {}) {
    std::vector<std::string> arguments{"predict", folder / name,    "--data", folder / "data.npz",
                                       "-o",      folder / "p.npz", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    mustRun(arguments);
    return loadValues(folder / "p.npz");
  }
  /// An input and an output for models whose other outputs need nothing.
  void addSlice() {
    describe(graph->add_input(), "x", TensorProto::FLOAT, {1});
    describe(graph->add_output(), "same", TensorProto::FLOAT, {1});
    addNode("Identity", {"x"}, "same");
    writeData({{"x", {1}, {1}}});
  }

  static constexpr int64_t kCount = 65536;
  const std::vector<std::string> kSum{"--loss", "output:y", "--optimizer", "sgd:lr=1"};
  const std::vector<std::string> kNet{"--loss", "mse", "--optimizer", "adamw:lr=0.01"};
  TemporaryFolder folder;
  proto::ModelProto model;
  proto::GraphProto *graph = nullptr;
};

TEST_F(RandomTest, Distributions) {
  addSlice();
  addSource("RandomNormal", "normal");
  addSource("RandomNormal", "other");
  addSource("RandomNormal", "wide", TensorProto::DOUBLE);
  proto::NodeProto *scaled = addSource("RandomNormal", "scaled");
  setFloat(scaled, "mean", 3);
  setFloat(scaled, "scale", 0.5f);
  for (auto [name, type] :
       {std::pair("uniform", TensorProto::FLOAT), std::pair("narrow", TensorProto::FLOAT16),
        std::pair("fine", TensorProto::DOUBLE)}) {
    proto::NodeProto *uniform = addSource("RandomUniform", name, type);
    setFloat(uniform, "low", -1);
    setFloat(uniform, "high", 3);
  }
  addFloats("third", {1, 1}, {0.3f});
  addInitializer("shape", TensorProto::INT64, {2}, std::vector<int64_t>{256, kCount / 256});
  addNode("Expand", {"third", "shape"}, "p");
  addNode("Bernoulli", {"p"}, "hits");
  describe(graph->add_output(), "hits", TensorProto::FLOAT, {256, kCount / 256});
  addFloats("logits", {2, 4}, {std::log(1.f), std::log(2.f), -INFINITY, std::log(5.f), 7, 7, 7, 7});
  setInt(addNode("Multinomial", {"logits"}, "classes"), "sample_size", kCount);
  describe(graph->add_output(), "classes", TensorProto::INT32, {2, kCount});
  compile("a", {"--loss", "none", "--seed", "11"});
  auto drawn = predict("a");

  const double error = 4 / std::sqrt(double(kCount));
  for (const char *name : {"normal", "other", "wide"}) {
    const Numbers &x = drawn[name].data;
    ASSERT_EQ(x.size(), size_t(kCount)) << name;
    EXPECT_NEAR(meanOf(x), 0, error) << name;
    EXPECT_NEAR(momentOf(x, 2), 1, error * std::sqrt(2)) << name;
    EXPECT_NEAR(momentOf(x, 3), 0, error * std::sqrt(15)) << name;
    EXPECT_NEAR(momentOf(x, 4), 3, error * std::sqrt(96)) << name;
    expectFits(x, normalDistribution, name);
    Numbers next(x.begin() + 1, x.end()), last(x.begin(), x.end() - 1);
    EXPECT_NEAR(correlation(next, last), 0, error) << name;
  }
  expectFits(drawn["scaled"].data, [](double x) { return normalDistribution((x - 3) / 0.5); }, "scaled");
  EXPECT_NEAR(correlation(drawn["normal"].data, drawn["other"].data), 0, error);
  for (const char *name : {"uniform", "narrow", "fine"}) {
    for (double value : drawn[name].data) {
      ASSERT_GE(value, -1) << name;
      ASSERT_LT(value, 3) << name;
    }
    if (std::string(name) != "narrow") // rounding is not even over the cells
      expectFits(drawn[name].data, [](double x) { return (x + 1) / 4; }, name);
    EXPECT_NEAR(meanOf(drawn[name].data), 1, error * 4 / std::sqrt(12)) << name;
  }
  EXPECT_NEAR(correlation(drawn["uniform"].data, drawn["fine"].data), 0, error);
  EXPECT_NEAR(meanOf(drawn["hits"].data), 0.3, error * std::sqrt(0.21));
  Numbers counts(8);
  for (size_t i = 0; i < 2 * kCount; ++i)
    counts[i / kCount * 4 + size_t(drawn["classes"].data[i])] += 1.0 / kCount;
  const double want[] = {0.125, 0.25, 0, 0.625, 0.25, 0.25, 0.25, 0.25};
  for (size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(counts[i], want[i], want[i] > 0 ? error / 2 : 0) << i;
}

/// What is drawn depends on the name and on the seed, the node's own before that of the command line, and on
/// nothing else.
TEST_F(RandomTest, KeysAreSeedAndName) {
  addSlice();
  addSource("RandomNormal", "noise");
  setFloat(addSource("RandomNormal", "seeded"), "seed", 5);
  compile("a", {"--loss", "none", "--seed", "1"});
  compile("b", {"--loss", "none", "--seed", "2"});
  auto first = predict("a"), second = predict("b");
  EXPECT_NE(first["noise"].data, second["noise"].data);
  EXPECT_NEAR(correlation(first["noise"].data, second["noise"].data), 0, 0.016);
  EXPECT_EQ(first["seeded"].data, second["seeded"].data);
  addSource("RandomUniform", "more");
  graph->mutable_node()->SwapElements(0, graph->node_size() - 1);
  compile("c", {"--loss", "none", "--seed", "1"});
  EXPECT_EQ(predict("c")["noise"].data, first["noise"].data);
}

/// With a step of 1 the weights tell the gradient: x * mask * scale.
TEST_F(RandomTest, ForwardAndBackwardHaveOneMask) {
  buildSum(0.25f, true);
  compile("a", kSum);
  Numbers before(kCount, 1), masks[3];
  for (int step = 0; step < 3; ++step) {
    std::vector<std::string> load{"--no-shuffle"};
    if (step)
      load.insert(load.end(), {"--load", folder / ("s" + std::to_string(step - 1))});
    auto after = train("a", "s" + std::to_string(step), 1, load);
    ASSERT_EQ(after["random.step"].data, Numbers{double(step + 1)});
    double loss = 0;
    for (size_t i = 0; i < kCount; ++i) {
      double gradient = before[i] - after["w"].data[i], x = 0.5 + double(i % 7) / 8;
      bool kept = gradient > x / 2;
      ASSERT_NEAR(gradient, kept ? x / 0.75 : 0, 1e-5) << i;
      masks[step].push_back(kept);
      loss += gradient * before[i];
    }
    double got = loadLosses(folder / ("s" + std::to_string(step) + ".jsonl")).at(0);
    EXPECT_NEAR(got, loss, 1e-4 * std::fabs(loss) + 1) << step;
    EXPECT_NEAR(meanOf(masks[step]), 0.75, 4 * std::sqrt(0.1875 / kCount));
    before = after["w"].data;
  }
  for (int step = 1; step < 3; ++step)
    EXPECT_NEAR(correlation(masks[0], masks[step]), 0, 4 / std::sqrt(double(kCount)));
}

TEST_F(RandomTest, PredictionAndEvaluationKeepEverything) {
  buildSum(0.25f, true);
  compile("a", kSum);
  double sum = 0;
  for (size_t i = 0; i < kCount; ++i)
    sum += 0.5 + double(i % 7) / 8;
  EXPECT_NEAR(predict("a")["y"].data.at(0), sum, 1e-4 * sum);
}

/// Noise in prediction is that of the step that training has reached, and prediction does not move it.
TEST_F(RandomTest, PredictionReadsTheStep) {
  buildSum(0.25f, true);
  addSource("RandomUniform", "noise");
  compile("a", {"--loss", "output:y", "--optimizer", "sgd:lr=0.001"});
  auto first = predict("a")["noise"].data;
  EXPECT_EQ(first, predict("a")["noise"].data);
  train("a", "s", 1);
  auto second = predict("a", {"--load", folder / "s"})["noise"].data;
  EXPECT_NEAR(correlation(first, second), 0, 0.016);
}

/// A loop, whose iterations must not all draw the same.
TEST_F(RandomTest, IterationsDrawTheirOwn) {
  addSlice();
  addInitializer("turns", TensorProto::INT64, {}, std::vector<int64_t>{3});
  addFloats("start", {kCount / 4}, std::vector<float>(kCount / 4, 0));
  proto::NodeProto *loop = addNode("Loop", {"turns", "", "start"}, "sum");
  loop->add_output("all");
  AttributeProto *attribute = loop->add_attribute();
  attribute->set_name("body");
  attribute->set_type(AttributeProto::GRAPH);
  proto::GraphProto *body = attribute->mutable_g();
  body->set_name("body");
  describe(body->add_input(), "i", TensorProto::INT64, {});
  describe(body->add_input(), "go", TensorProto::BOOL, {});
  describe(body->add_input(), "s", TensorProto::FLOAT, {kCount / 4});
  for (auto [op, inputs, output] : {std::tuple("RandomNormalLike", std::vector<std::string>{"s"}, "noise"),
                                    std::tuple("Add", std::vector<std::string>{"s", "noise"}, "next"),
                                    std::tuple("Identity", std::vector<std::string>{"go"}, "more")}) {
    proto::NodeProto *node = body->add_node();
    node->set_op_type(op);
    for (const std::string &input : inputs)
      node->add_input(input);
    node->add_output(output);
  }
  describe(body->add_output(), "more", TensorProto::BOOL, {});
  describe(body->add_output(), "next", TensorProto::FLOAT, {kCount / 4});
  describe(body->add_output(), "noise", TensorProto::FLOAT, {kCount / 4});
  describe(graph->add_output(), "all", TensorProto::FLOAT, {3, kCount / 4});
  compile("a", {"--loss", "none"});
  const Numbers all = predict("a")["all"].data;
  ASSERT_EQ(all.size(), size_t(3 * kCount / 4));
  Numbers turns[3];
  for (size_t i = 0; i < all.size(); ++i)
    turns[i / (kCount / 4)].push_back(all[i]);
  for (int turn = 0; turn < 3; ++turn) {
    expectFits(turns[turn], normalDistribution, "turn " + std::to_string(turn));
    EXPECT_NEAR(correlation(turns[turn], turns[(turn + 1) % 3]), 0, 4 / std::sqrt(double(kCount / 4)));
  }
}

TEST_F(RandomTest, SameBitsForThreadsAndResumption) {
  buildNet();
  std::vector<std::string> flags = kNet;
  flags.insert(flags.end(), {"--max-workers", "4"});
  compile("a", flags);
  auto run = [&](const std::string &save, int steps, const std::string &threads,
                 const std::vector<std::string> &more = {}) {
    std::vector<std::string> arguments{"--threads", threads};
    arguments.insert(arguments.end(), more.begin(), more.end());
    train("a", save, steps, arguments);
    return readFile(folder / save);
  };
  std::string one = run("one", 20, "1");
  EXPECT_TRUE(one == run("two", 20, "2"));
  EXPECT_TRUE(one == run("four", 20, "4"));
  run("first", 7, "2");
  EXPECT_TRUE(one == run("second", 13, "2", {"--load", folder / "first"}));
  auto losses = loadLosses(folder / "first.jsonl"), rest = loadLosses(folder / "second.jsonl");
  losses.insert(losses.end(), rest.begin(), rest.end());
  EXPECT_EQ(losses, loadLosses(folder / "one.jsonl"));
  flags.insert(flags.end(), {"--seed", "1"});
  compile("a", flags);
  EXPECT_FALSE(one == run("seeded", 20, "1"));
}

/// Cut between gradients and update a step draws the same.
TEST_F(RandomTest, SameBitsInTwoSegments) {
  buildNet();
  std::vector<std::string> flags = kNet;
  flags.push_back("--gradients");
  compile("a", flags);
  std::unique_ptr<engine::DataSource> data;
  ASSERT_TRUE(engine::openData(folder / "data.npz", data).isOk());
  Session fused(folder / "a"), cut(folder / "a");
  for (int step = 0; step < 4; ++step) {
    double fusedLoss = 0, cutLoss = 0;
    fused.writeSlice(*data, step);
    cut.writeSlice(*data, step);
    ASSERT_EQ(ortc_train_step(fused.get(), &fusedLoss), ORTC_OK) << fused.message();
    ASSERT_EQ(ortc_gradients_step(cut.get(), &cutLoss), ORTC_OK) << cut.message();
    ASSERT_EQ(ortc_update_step(cut.get()), ORTC_OK) << cut.message();
    EXPECT_EQ(fusedLoss, cutLoss);
    auto wanted = fused.readPersistent(), got = cut.readPersistent();
    for (const auto &[name, bytes] : wanted)
      ASSERT_TRUE(bytes == got[name]) << name << " in step " << step;
  }
}

TEST_F(RandomTest, GradientsAgreeWithDifferences) {
  buildNet();
  mustRun({"check", folder.write("m.onnx", model.SerializeAsString()), "--data", folder / "data.npz",
           "--loss", "mse"});
}

TEST_F(RandomTest, InferenceExportsTrainWhenAsked) {
  buildSum(0.5f, false);
  compile("a", kSum);
  EXPECT_EQ(train("a", "s", 1).count("random.step"), 0u);
  std::vector<std::string> flags = kSum;
  flags.insert(flags.end(), {"--dropout", "train"});
  compile("a", flags);
  auto after = train("a", "s", 1);
  EXPECT_EQ(after["random.step"].data, Numbers{1});
  EXPECT_NEAR(double(std::count(after["w"].data.begin(), after["w"].data.end(), 1.0)) / kCount, 0.5, 0.01);
}

/// Both halves of a step draw one mask; a seed of the host's draws others, and 0 what there was without one.
TEST_F(RandomTest, SeedsOfHosts) {
  buildSum(0.5f, true);
  compile("a", {"--cotangents", "y"});
  std::unique_ptr<engine::DataSource> data;
  ASSERT_TRUE(engine::openData(folder / "data.npz", data).isOk());
  auto draw = [&](std::optional<double> seed, int steps) {
    Session session(folder / "a");
    session.writeSlice(*data, 0);
    if (seed)
      EXPECT_EQ(ortc_set_scalar(session.get(), "random.seed", *seed), ORTC_OK) << session.message();
    const float one = 1;
    float y = 0;
    std::vector<float> gradient(kCount);
    EXPECT_EQ(ortc_write(session.get(), "y.cotangent", &one, sizeof one), ORTC_OK);
    for (int step = 0; step < steps; ++step) {
      EXPECT_EQ(ortc_step(session.get(), ORTC_ENTRY_FORWARD, nullptr), ORTC_OK) << session.message();
      EXPECT_EQ(ortc_step(session.get(), ORTC_ENTRY_BACKWARD, nullptr), ORTC_OK) << session.message();
    }
    EXPECT_EQ(ortc_read(session.get(), "y", &y, sizeof y), ORTC_OK);
    EXPECT_EQ(ortc_read_gradient(session.get(), "w", gradient.data(), kCount * sizeof(float)), ORTC_OK);
    double sum = 0; // of x where the mask is not zero, twice: y, as w is one
    for (float value : gradient)
      sum += value;
    EXPECT_NEAR(sum, y, 1e-5 * sum);
    return gradient;
  };
  auto plain = draw(std::nullopt, 1), zero = draw(0, 1), one = draw(1, 1), again = draw(1, 1),
       later = draw(1, 2);
  EXPECT_EQ(plain, zero);
  EXPECT_EQ(one, again);
  for (const auto *other : {&one, &later})
    EXPECT_NE(plain, *other);
  EXPECT_NE(one, later);
  auto dropped = [](const std::vector<float> &mask) {
    Numbers numbers(mask.size());
    std::transform(mask.begin(), mask.end(), numbers.begin(), [](float value) { return value == 0; });
    return numbers;
  };
  EXPECT_NEAR(correlation(dropped(plain), dropped(one)), 0, 4 / std::sqrt(double(kCount)));
}

TEST_F(RandomTest, NothingToDropIsSaid) {
  describe(graph->add_input(), "x", TensorProto::FLOAT, {4});
  addFloats("w", {4}, {1, 2, 3, 4});
  addNode("Mul", {"x", "w"}, "y");
  describe(graph->add_output(), "y", TensorProto::FLOAT, {4});
  auto command = trainCommand("a", {"--loss", "mse", "--dropout", "train"});
  command.erase(std::find(command.begin(), command.end(), "--quiet"));
  Outcome outcome = mustRun(command);
  EXPECT_NE((outcome.text + outcome.errors).find("the model has no Dropout node"), std::string::npos)
      << outcome.text << outcome.errors;
}

TEST_F(RandomTest, RatiosOfNothingAreSaid) {
  buildSum(0, false);
  std::vector<std::string> flags = kSum;
  flags.insert(flags.end(), {"--dropout", "train"});
  auto command = trainCommand("a", flags);
  command.erase(std::find(command.begin(), command.end(), "--quiet"));
  Outcome outcome = mustRun(command);
  EXPECT_NE((outcome.text + outcome.errors).find("no Dropout node that outputs need has a ratio above 0"),
            std::string::npos)
      << outcome.text << outcome.errors;
}

TEST_F(RandomTest, RatiosOutOfRangeAreRefused) {
  buildSum(1, true);
  Outcome outcome = runTool(trainCommand("a", kSum));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find("its ratio is 1.000000; a ratio in [0, 1) can be trained"), std::string::npos)
      << outcome.errors;
}

} // namespace
