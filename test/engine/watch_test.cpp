// Watched tensors: their numbers, and that nothing is trained otherwise.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>

#include "test/engine/loop_fixture.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

namespace {

class WatchTest : public LoopTest {
protected:
  static Watch makeWatch(const std::string &text) {
    Watch watch;
    expectOk(Watch::parse(text, watch));
    return watch;
  }
  /// The numbers of a tensor of a file.
  std::vector<float> readTensor(const std::string &path, const std::string &name) {
    std::unique_ptr<DataSource> source;
    expectOk(openData(path, source));
    Array array;
    expectOk(source->load(name, array));
    std::vector<float> values(array.bytes / sizeof(float));
    std::memcpy(values.data(), array.data, array.bytes);
    return values;
  }
  static void expectStatistics(const Json &found, const std::vector<float> &values) {
    double sum = 0;
    for (float value : values)
      sum += double(value);
    EXPECT_EQ(found["min"].get<float>(), *std::min_element(values.begin(), values.end()));
    EXPECT_EQ(found["max"].get<float>(), *std::max_element(values.begin(), values.end()));
    EXPECT_NEAR(found["mean"].get<double>(), sum / double(values.size()), 1e-7); // written as float32
    EXPECT_EQ(found["nan"], 0);
  }
};

} // namespace

TEST_F(WatchTest, SaysWhatCheckpointsAndGradientsHold) {
  TrainOptions options = makeTrain(3), plain = makeTrain(3), first = makeTrain(2);
  options.watch = makeWatch("fc\\.weight.*");
  options.watchEvery = 1;
  options.metrics = folder / "watch.jsonl";
  options.save = folder / "watch.safetensors";
  plain.save = folder / "plain.safetensors";
  first.save = folder / "first.safetensors";
  expectOk(train(options, interrupted));
  expectOk(train(plain, interrupted));
  EXPECT_EQ(readFile(options.save), readFile(plain.save));
  std::vector<Json> seen = readEvents(options.metrics, "watch");
  ASSERT_EQ(seen.size(), 3u);
  ASSERT_EQ(seen[2]["values"].size(), 2u);
  for (const char *name : {"fc.weight", "fc.weight.momentum"})
    expectStatistics(seen[2]["values"][name], readTensor(options.save, name));
  // The first momentum is the first gradient.
  TrainOptions one = makeTrain(1);
  one.save = folder / "one.safetensors";
  expectOk(train(one, interrupted));
  ASSERT_EQ(seen[0]["gradients"].size(), 1u);
  expectStatistics(seen[0]["gradients"]["fc.weight"], readTensor(one.save, "fc.weight.momentum"));
}

TEST_F(WatchTest, LooksEverySoManyStepsOfTheTraining) {
  TrainOptions first = makeTrain(3), rest = makeTrain(4);
  first.watch = rest.watch = makeWatch(".*weight");
  first.watchEvery = rest.watchEvery = 2;
  first.metrics = rest.metrics = folder / "watch.jsonl";
  first.save = rest.load = folder / "first.safetensors";
  expectOk(train(first, interrupted));
  expectOk(train(rest, interrupted));
  std::vector<int> steps;
  for (const Json &event : readEvents(rest.metrics, "watch"))
    steps.push_back(event["step"]);
  EXPECT_EQ(steps, (std::vector<int>{2, 4, 6}));
}

TEST_F(WatchTest, CountsWhatIsNotANumber) {
  std::vector<float> values = {NAN, 2, -1, NAN, INFINITY};
  auto format = [&](size_t count) {
    return TensorStatistics::of(DataType::Float32, reinterpret_cast<const uint8_t *>(values.data()),
                                4 * count)
        .format();
  };
  EXPECT_EQ(format(4), R"({"min":-1,"max":2,"mean":0.5,"nan":2})");
  EXPECT_EQ(format(5), R"({"min":-1,"max":null,"mean":null,"nan":2})");
  EXPECT_EQ(format(1), R"({"min":null,"max":null,"mean":null,"nan":1})");
  EXPECT_EQ(format(0), R"({"min":null,"max":null,"mean":null,"nan":0})");
}

/// As without a watch: no parameter changes, and nothing is saved.
TEST_F(WatchTest, StopsAtALossThatIsNotFinite) {
  TrainOptions options = makeTrain(5);
  options.data = writeData("nan.npz", 8, NAN);
  options.shuffle = false;
  options.stopOnNan = true;
  options.watch = makeWatch(".*");
  options.watchEvery = 1;
  options.metrics = folder / "watch.jsonl";
  options.save = folder / "nan.safetensors";
  EXPECT_EQ(
      train(options, interrupted).getMessage(),
      "the loss is not finite (step 1, epoch 0, slice 0 of " + options.data +
          "); the input 'x' is nan in the data: sample 0 of " + options.data +
          ", element 0 of its 'x', at byte 163: leave such samples out, or repair them; no parameter was "
          "changed by this step, nothing was saved");
  EXPECT_TRUE(readEvents(options.metrics, "watch").empty());
}

TEST_F(WatchTest, RefusesNamesThatAreNot) {
  TrainOptions options = makeTrain(1);
  options.watch = makeWatch("fc\\.weigth");
  Status status = train(options, interrupted);
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  EXPECT_EQ(status.getMessage(), "--watch 'fc\\.weigth' matches no tensor; there are fc.weight and "
                                 "fc.weight.momentum; did you mean 'fc.weight'?");
  Watch watch;
  EXPECT_EQ(Watch::parse("", watch).getMessage(),
            "the regular expression has 0 bytes, but it must have 1 to 4096");
  EXPECT_EQ(Watch::parse("[", watch).getMessage(),
            "'[' is not a regular expression (ECMAScript); a plain dot is '\\.'");
}
