// Views of one tensor, and random elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/EqualTensors.h"

#include "compiler/frontend/onnx.pb.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

using namespace ortc::frontend;
using ortc::proto::TensorProto;

namespace {

/// A tensor with elements of its own.
template <typename Element> struct Made {
  Made(int32_t type, std::vector<int64_t> dims, const std::vector<Element> &values)
      : bytes(values.size() * sizeof(Element), '\0') {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    data.type = type;
    data.dims = std::move(dims);
    data.bytes = bytes;
  }
  Made(const Made &) = delete;
  Made &operator=(const Made &) = delete;
  std::string bytes;
  TensorData data;
};
struct Floats : Made<float> {
  Floats(std::vector<int64_t> dims, const std::vector<float> &values)
      : Made(TensorProto::FLOAT, std::move(dims), values) {}
};

std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

/// Element `at` of a random initialization in [-0.5, 0.5), other ones for other seeds.
float randomAt(size_t at, unsigned seed) {
  auto x = static_cast<unsigned>(at) * 2654435761u + seed * 1664525u;
  x = (x ^ (x >> 15)) * 2246822519u;
  return static_cast<float>((x ^ (x >> 13)) >> 8) / 16777216.0f - 0.5f;
}
std::vector<float> randomValues(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = randomAt(i, 1);
  return values;
}

TEST(EqualTensorsTest, EveryElementOfATransposeIsCompared) {
  Floats original({2, 3}, ramp(6));
  std::vector<float> turned = {1, 4, 2, 5, 3, 6};
  auto view = findView(original.data, Floats({3, 2}, turned).data);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(view->permutation, (std::vector<int64_t>{1, 0}));
  for (size_t i = 0; i < turned.size(); ++i) {
    std::vector<float> other = turned;
    other[i] = -1;
    EXPECT_FALSE(findView(original.data, Floats({3, 2}, other).data)) << i;
  }
}

TEST(EqualTensorsTest, DimensionsOfOneAreNone) {
  // More than six with them, and a transpose either way.
  Floats original({1, 2, 1, 1, 1, 3, 1}, ramp(6)), flat({6, 1}, ramp(6));
  auto view = findView(original.data, Floats({6}, {1, 4, 2, 5, 3, 6}).data);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->shape, (std::vector<int64_t>{2, 3}));
  // Only the copy says how the original, which is flat, is cut.
  view = findView(flat.data, Floats({1, 3, 1, 1, 1, 1, 2}, {1, 4, 2, 5, 3, 6}).data);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(view->permutation, (std::vector<int64_t>{1, 0}));
}

TEST(EqualTensorsTest, TheOriginalMayBeATransposeOfTheCopy) {
  // original = copy of shape [2, 3, 4], its dimensions in the order 2, 0, 1; the original's own dimensions are merged.
  std::vector<float> copy = ramp(24), original(24);
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 3; ++j)
      for (size_t k = 0; k < 4; ++k)
        original[(k * 2 + i) * 3 + j] = copy[(i * 3 + j) * 4 + k];
  auto view = findView(Floats({24}, original).data, Floats({2, 3, 4}, copy).data);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->shape, (std::vector<int64_t>{4, 2, 3}));
  EXPECT_EQ(view->permutation, (std::vector<int64_t>{1, 2, 0}));
}

TEST(EqualTensorsTest, MoreThanSixDimensionsStayInTheirOrder) {
  std::vector<float> values = ramp(128), turned(128);
  for (size_t i = 0; i < 128; ++i)
    turned[(i & 1) << 6 | i >> 1] = values[i];
  std::vector<int64_t> twos(7, 2);
  EXPECT_FALSE(findView(Floats(twos, values).data, Floats(twos, turned).data));
  EXPECT_TRUE(findView(Floats(twos, values).data, Floats({128}, values).data));
}

/// One element that is not zero, at the end of all dimensions but this one.
std::vector<float> sparseValues(size_t rank, size_t size, size_t axis) {
  size_t count = 1, at = 0;
  for (size_t i = 0; i < rank; ++i) {
    count *= size;
    at = at * size + size - (i == axis ? 2 : 1);
  }
  std::vector<float> values(count);
  values[at] = 1;
  return values;
}

TEST(EqualTensorsTest, SparseTensorsAreComparedForABoundedTime) {
  // All permutations of four dimensions are tried, and those of six where there is little to compare.
  std::vector<int64_t> four(4, 16), six(6, 3), large(6, 8);
  EXPECT_TRUE(findView(Floats(four, sparseValues(4, 16, 3)).data, Floats(four, sparseValues(4, 16, 0)).data));
  EXPECT_TRUE(findView(Floats(six, sparseValues(6, 3, 5)).data, Floats(six, sparseValues(6, 3, 0)).data));
  // The first permutation that fits comes after 600 that differ at the end.
  EXPECT_FALSE(
      findView(Floats(large, sparseValues(6, 8, 5)).data, Floats(large, sparseValues(6, 8, 0)).data));
}

TEST(EqualTensorsTest, OneStretchOfRandomElementsIsEnough) {
  std::vector<float> values(16384, 0.0f); // four stretches
  EXPECT_FALSE(looksRandom(Floats({16384}, values).data));
  for (size_t i = 8192; i < 12288; ++i)
    values[i] = randomAt(i, 1);
  EXPECT_TRUE(looksRandom(Floats({16384}, values).data));
}

TEST(EqualTensorsTest, FewValuesAreNotRandom) {
  EXPECT_TRUE(looksRandom(Floats({4}, {0.3f, -0.2f, 0.9f, 0.11f}).data));
  EXPECT_FALSE(looksRandom(Floats({3}, {0.3f, -0.2f, 0.9f}).data));
  std::vector<float> some = randomValues(100); // repeated: two fifths of them differ
  for (size_t i = 40; i < 100; ++i)
    some[i] = some[i % 40];
  EXPECT_FALSE(looksRandom(Floats({100}, some).data));
  std::vector<float> endless = randomValues(100);
  endless[50] = INFINITY;
  EXPECT_FALSE(looksRandom(Floats({100}, endless).data));
}

TEST(EqualTensorsTest, MostGapsOfARampAreEqual) {
  std::vector<float> values = ramp(40);
  for (size_t i = 32; i < 40; ++i)
    values[i] = values[31] + 10 * randomAt(i, 3) + 6; // four fifths of the gaps are 1
  EXPECT_FALSE(looksRandom(Floats({40}, values).data));
}

/// The same numbers in the other types that weights have.
TEST(EqualTensorsTest, EveryTypeOfWeightsIsRead) {
  std::vector<double> doubles;
  std::vector<uint16_t> halves, bfloats;
  for (float value : randomValues(64)) {
    doubles.push_back(value);
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bfloats.push_back(static_cast<uint16_t>(bits >> 16));
    halves.push_back(static_cast<uint16_t>((bits >> 16 & 0x8000) | (0x3000 + (bits >> 13 & 0x7ff))));
  }
  EXPECT_TRUE(looksRandom(Made<double>(TensorProto::DOUBLE, {64}, doubles).data));
  EXPECT_TRUE(looksRandom(Made<uint16_t>(TensorProto::FLOAT16, {64}, halves).data));
  EXPECT_TRUE(looksRandom(Made<uint16_t>(TensorProto::BFLOAT16, {64}, bfloats).data));
  // 1, 2, ..., 12 are evenly spaced, which their bits as numbers of another type are not; 2^0, 2^1, 2^3, 2^6,
  // ... are not.
  std::vector<uint16_t> half, bfloat, halfPowers;
  std::vector<double> numbers;
  for (unsigned i = 1; i <= 12; ++i) {
    auto exponent = static_cast<unsigned>(std::ilogb(i));
    half.push_back(static_cast<uint16_t>((exponent + 15) << 10 | ((i << (10 - exponent)) & 1023)));
    bfloat.push_back(static_cast<uint16_t>((exponent + 127) << 7 | ((i << (7 - exponent)) & 127)));
    numbers.push_back(i);
  }
  for (unsigned power : {0u, 1u, 3u, 6u, 10u, 15u})
    halfPowers.push_back(static_cast<uint16_t>((power + 15) << 10));
  EXPECT_FALSE(looksRandom(Made<uint16_t>(TensorProto::FLOAT16, {12}, half).data));
  EXPECT_FALSE(looksRandom(Made<uint16_t>(TensorProto::BFLOAT16, {12}, bfloat).data));
  EXPECT_FALSE(looksRandom(Made<double>(TensorProto::DOUBLE, {12}, numbers).data));
  EXPECT_TRUE(looksRandom(Made<uint16_t>(TensorProto::FLOAT16, {6}, halfPowers).data));
}

} // namespace
