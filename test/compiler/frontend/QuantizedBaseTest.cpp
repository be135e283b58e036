// Weights that stay, as integers of few bits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/QuantizedBase.h"

#include "test/compiler/frontend/ModelBuilder.h"
#include "gtest/gtest.h"

#include <cstring>
#include <limits>

using namespace ortc;
using namespace ortc::frontend;

namespace {

/// One row of 32 numbers with scale 1, as 127 or 7 is the largest.
std::vector<float> rowOf(float largest, std::initializer_list<float> begin) {
  std::vector<float> row(begin);
  row.resize(31);
  row.push_back(largest);
  return row;
}

TEST(QuantizedBaseTest, RoundsToEven) {
  PackedWeight packed =
      packWeight(rowOf(127, {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 2.51f}), {1, 32, {8, 32}}, false);
  ASSERT_EQ(packed.scales, std::vector<float>{1});
  EXPECT_EQ(std::vector<int8_t>(packed.data.begin(), packed.data.begin() + 6),
            (std::vector<int8_t>{0, 2, 2, 0, -2, 3}));
  EXPECT_EQ(packed.data[31], 127);
}

TEST(QuantizedBaseTest, PutsTwoIntegersInAByte) {
  std::vector<float> row = rowOf(-7, {3, -1});
  row[16] = -5;
  row[17] = 6;
  PackedWeight packed = packWeight(row, {1, 32, {4, 32}}, false);
  ASSERT_EQ(packed.data.size(), 16u);
  EXPECT_EQ(static_cast<uint8_t>(packed.data[0]), 0xB3);  // 3 below, -5 above
  EXPECT_EQ(static_cast<uint8_t>(packed.data[1]), 0x6F);  // -1 below, 6 above
  EXPECT_EQ(static_cast<uint8_t>(packed.data[15]), 0x90); // -7 above
  EXPECT_EQ(unpackWeight(packed.shape, false, packed.data.data(), packed.scales.data()), row);
}

/// Zeros have no scale to divide by; a row that ends within a block is filled up with zeros.
TEST(QuantizedBaseTest, HasBlocksOfZerosAndPartsOfBlocks) {
  std::vector<float> values(2 * 70, 0);
  values[69] = 14;
  PackedShape shape{2, 70, {4, 64}};
  PackedWeight packed = packWeight(values, shape, false);
  EXPECT_EQ(packed.scales, (std::vector<float>{0, 2, 0, 0}));
  EXPECT_EQ(packed.data.size(), 2u * 4 * 16);
  EXPECT_EQ(unpackWeight(shape, false, packed.data.data(), packed.scales.data()), values);
}

TEST(QuantizedBaseTest, ReadsWeightsBothWaysRound) {
  std::vector<float> rows(3 * 64), turned(3 * 64);
  for (size_t r = 0; r < 3; ++r)
    for (size_t c = 0; c < 64; ++c)
      rows[r * 64 + c] = turned[c * 3 + r] = float(r + 1) * float(int(c * 37 % 64) - 32);
  PackedShape shape{3, 64, {8, 32}};
  PackedWeight straight = packWeight(rows, shape, false), transposed = packWeight(turned, shape, true);
  EXPECT_EQ(straight.data, transposed.data);
  EXPECT_EQ(straight.scales, transposed.scales);
  std::vector<float> back = unpackWeight(shape, false, straight.data.data(), straight.scales.data()),
                     turnedBack = unpackWeight(shape, true, transposed.data.data(), transposed.scales.data());
  for (size_t r = 0; r < 3; ++r)
    for (size_t c = 0; c < 64; ++c) {
      EXPECT_EQ(back[r * 64 + c], turnedBack[c * 3 + r]);
      EXPECT_NEAR(back[r * 64 + c], rows[r * 64 + c], float(r + 1) * 32 / 127 / 2);
    }
}

/// What packBase says of the weight `w` [64, 4] of a product.
std::string refusalOf(const std::function<void(proto::GraphProto &)> &change) {
  proto::ModelProto proto = frontend::test::smallModel();
  auto *graph = proto.mutable_graph();
  graph->clear_initializer();
  graph->clear_input();
  frontend::test::setType(graph->add_input(), "x", {2, 64});
  frontend::test::addInitializer(graph, "w", {64, 4});
  change(*graph);
  std::shared_ptr<const Model> model;
  Status parsed = Model::parse(proto.SerializeAsString(), "model", "", model);
  EXPECT_TRUE(parsed.isOk()) << parsed.getMessage();
  LoraAdapter adapter;
  adapter.weight = "w";
  adapter.isTransposed = true;
  PackedWeights weights;
  Status packed = packBase(*model, {adapter}, {8, 64}, "--base int8", weights);
  EXPECT_EQ(packed.isOk(), weights.count("w") == 1);
  return packed.getMessage();
}

TEST(QuantizedBaseTest, RefusesWhatHasNoIntegers) {
  EXPECT_EQ(refusalOf([](proto::GraphProto &) {}), "");
  std::string taken =
      refusalOf([](proto::GraphProto &graph) { frontend::test::addInitializer(&graph, "w_scale", {1}); });
  EXPECT_EQ(taken, "--base int8: 'w' cannot be quantised: the name 'w_scale' is taken");
  std::string infinite = refusalOf([](proto::GraphProto &graph) {
    float infinity = std::numeric_limits<float>::infinity();
    std::memcpy(graph.mutable_initializer(0)->mutable_raw_data()->data() + 40, &infinity, sizeof infinity);
  });
  EXPECT_EQ(
      infinite,
      "--base int8: 'w' has numbers that are not finite float32 numbers, which no scale brings to integers");
}

} // namespace
