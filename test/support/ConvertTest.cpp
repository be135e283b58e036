// Which values of which types become which.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "support/Convert.h"
#include "support/Elements.h"
#include "test/engine/data_files.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

template <typename T> static Array makeArray(DataType type, const std::vector<T> &values) {
  auto owner = std::make_shared<std::string>(bytesOf(values));
  return {"x",           type, {int64_t(values.size())}, reinterpret_cast<const uint8_t *>(owner->data()),
          owner->size(), owner};
}

template <typename T> static std::vector<double> convertAll(const Array &array, DataType type) {
  Conversion conversion;
  Status status = planConversion(array, type, "x", conversion);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  size_t count = array.bytes / getElementBytes(array.type);
  std::vector<uint8_t> out(count * getElementBytes(type));
  EXPECT_TRUE(conversion.convert);
  if (status.isOk() && conversion.convert)
    conversion.convert(array.data, out.data(), count);
  std::vector<double> result;
  for (size_t i = 0; i < count; ++i)
    result.push_back(loadAsDouble(type, out.data() + i * getElementBytes(type)));
  return result;
}

static std::string refuse(const Array &array, DataType type) {
  Conversion conversion;
  return planConversion(array, type, "data.npz: array 'x'", conversion).getMessage();
}

TEST(ConvertTest, NarrowsIntegersThatFit) {
  EXPECT_EQ(convertAll<int32_t>(makeArray<int64_t>(DataType::Int64, {-5, 2147483647}), DataType::Int32),
            (std::vector<double>{-5, 2147483647}));
  EXPECT_EQ(convertAll<int64_t>(makeArray<uint8_t>(DataType::UInt8, {0, 255}), DataType::Int64),
            (std::vector<double>{0, 255}));
}

TEST(ConvertTest, RefusesIntegersThatDoNotFit) {
  EXPECT_EQ(refuse(makeArray<int64_t>(DataType::Int64, {1, 3000000000}), DataType::Int32),
            "data.npz: array 'x' holds 3000000000 at element 1, which does not fit the graph's int32");
  EXPECT_EQ(
      refuse(makeArray<uint64_t>(DataType::UInt64, {~uint64_t(0)}), DataType::Int64),
      "data.npz: array 'x' holds 18446744073709551615 at element 0, which does not fit the graph's int64");
  // Rounded up to 2^32, which is no value of the type any more.
  EXPECT_NE(refuse(makeArray<uint32_t>(DataType::UInt32, {0xffffffffu}), DataType::Float32), "");
  EXPECT_EQ(refuse(makeArray<int8_t>(DataType::Int8, {-1}), DataType::UInt32),
            "data.npz: array 'x' holds -1 at element 0, which does not fit the graph's uint32");
  EXPECT_EQ(refuse(makeArray<uint8_t>(DataType::UInt8, {0, 1, 2}), DataType::Bool),
            "data.npz: array 'x' holds 2 at element 2, which does not fit the graph's bool");
}

TEST(ConvertTest, ConvertsToFloatWithANote) {
  Conversion conversion;
  ASSERT_TRUE(
      planConversion(makeArray<uint8_t>(DataType::UInt8, {7}), DataType::Float32, "x", conversion).isOk());
  EXPECT_EQ(conversion.note, "x is uint8; it is converted to the graph's float32");
  EXPECT_EQ(convertAll<float>(makeArray<double>(DataType::Float64, {0.1, -2}), DataType::Float32),
            (std::vector<double>{double(0.1f), -2}));
}

TEST(ConvertTest, TakesEqualTypesAsTheyAre) {
  Conversion conversion;
  ASSERT_TRUE(
      planConversion(makeArray<float>(DataType::Float32, {1}), DataType::Float32, "x", conversion).isOk());
  EXPECT_FALSE(conversion.convert);
  EXPECT_EQ(conversion.note, "");
}

TEST(ConvertTest, RefusesWhatFloatsCannotHold) {
  EXPECT_EQ(refuse(makeArray<int32_t>(DataType::Int32, {16777217}), DataType::Float32),
            "data.npz: array 'x' holds 16777217 at element 0, which does not fit the graph's float32");
  EXPECT_EQ(refuse(makeArray<double>(DataType::Float64, {1e300}), DataType::Float32),
            "data.npz: array 'x' holds 1e+300 at element 0, which does not fit the graph's float32");
  EXPECT_EQ(refuse(makeArray<float>(DataType::Float32, {1.0f}), DataType::Int64),
            "data.npz: array 'x' is float32 but the graph wants int64; convert it with numpy's astype");
}

TEST(ConvertTest, KeepsInfinitiesAndNaN) {
  std::vector<double> values =
      convertAll<float>(makeArray<double>(DataType::Float64, {INFINITY, NAN}), DataType::Float32);
  EXPECT_TRUE(std::isinf(values[0]));
  EXPECT_TRUE(std::isnan(values[1]));
}

TEST(ConvertTest, HalfRoundTripsAllBitPatterns) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = halfToFloat(uint16_t(bits));
    bool isExact =
        std::isnan(value) ? std::isnan(halfToFloat(floatToHalf(value))) : floatToHalf(value) == bits;
    float wide = bfloatToFloat(uint16_t(bits));
    isExact &=
        std::isnan(wide) ? std::isnan(bfloatToFloat(floatToBfloat(wide))) : floatToBfloat(wide) == bits;
    ASSERT_TRUE(isExact) << bits;
  }
}

TEST(ConvertTest, HalfRoundsToNearestEven) {
  EXPECT_EQ(floatToHalf(1.0f + 0x1p-11f), 0x3c00);            // tie, down to even
  EXPECT_EQ(floatToHalf(1.0f + 3 * 0x1p-11f), 0x3c02);        // tie, up to even
  EXPECT_EQ(floatToHalf(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01); // above the tie
  EXPECT_EQ(floatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(floatToHalf(0x1p-25f), 0x0000); // tie between 0 and the smallest subnormal
  EXPECT_EQ(floatToHalf(0x1.8p-25f), 0x0001);
}
