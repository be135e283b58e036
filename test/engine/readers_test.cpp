// Readers against files that numpy, zipfile, gzip and safetensors wrote (data/make.py).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <ctime>
#include <gtest/gtest.h>

#include "support/Elements.h"
#include "test/engine/data_files.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

static std::string dataPath(const std::string &name) {
  return std::string(ORTC_TEST_DATA) + "/engine/data/" + name;
}

static std::unique_ptr<DataSource> open(const std::string &path) {
  std::unique_ptr<DataSource> source;
  Status status = openData(path, source);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  return source;
}

static std::vector<double> values(const Array &array) {
  std::vector<double> result;
  for (size_t at = 0; at < array.bytes; at += getElementBytes(array.type))
    result.push_back(loadAsDouble(array.type, array.data + at));
  return result;
}

class NpzTest : public testing::TestWithParam<const char *> {};

TEST_P(NpzTest, ReadsEveryType) {
  auto source = open(dataPath(GetParam()));
  ASSERT_TRUE(source);
  const std::pair<const char *, DataType> kinds[] = {
      {"bool", DataType::Bool},  {"u1", DataType::UInt8},   {"u2", DataType::UInt16},
      {"u4", DataType::UInt32},  {"u8", DataType::UInt64},  {"i1", DataType::Int8},
      {"i2", DataType::Int16},   {"i4", DataType::Int32},   {"i8", DataType::Int64},
      {"f2", DataType::Float16}, {"f4", DataType::Float32}, {"f8", DataType::Float64}};
  for (auto [kind, type] : kinds) {
    Array array;
    Status status = source->load(std::string("all_") + kind, array);
    ASSERT_TRUE(status.isOk()) << status.getMessage();
    EXPECT_EQ(array.type, type);
    EXPECT_EQ(array.shape, (Shape{2, 3}));
    std::vector<double> wanted = {0, 1, 2, 3, 4, 5};
    if (type == DataType::Bool)
      wanted = {0, 1, 1, 1, 1, 1};
    EXPECT_EQ(values(array), wanted) << kind;
  }
}

TEST_P(NpzTest, ReadsFortranOrderAndBigEndian) {
  auto source = open(dataPath(GetParam()));
  ASSERT_TRUE(source);
  std::vector<double> wanted(24);
  for (size_t i = 0; i < 24; ++i)
    wanted[i] = double(i);
  for (const char *name : {"fortran", "big", "big_fortran"}) {
    Array array;
    ASSERT_TRUE(source->load(name, array).isOk());
    EXPECT_EQ(array.shape, (Shape{4, 3, 2}));
    EXPECT_EQ(values(array), wanted) << name;
  }
}

TEST_P(NpzTest, ReadsScalarAndRefusesTextOnlyWhenAsked) {
  auto source = open(dataPath(GetParam()));
  ASSERT_TRUE(source);
  Array array;
  ASSERT_TRUE(source->load("scalar", array).isOk());
  EXPECT_TRUE(array.shape.empty());
  EXPECT_EQ(values(array), std::vector<double>{2.5});
  Status status = source->load("text", array);
  EXPECT_EQ(status.getMessage(), dataPath(GetParam()) +
                                     ": array 'text': has elements of type '<U6' but only bool, "
                                     "integers and float16 to float64 are read; convert it with "
                                     "numpy's astype");
}

INSTANTIATE_TEST_SUITE_P(StoredAndDeflated, NpzTest, testing::Values("stored.npz", "deflated.npz"),
                         [](const auto &info) { return std::string(info.param).substr(0, 6); });

TEST(NpzVersionsTest, ReadsHeadersOfAllVersionsZip64AndComments) {
  auto source = open(dataPath("versions.npz"));
  ASSERT_TRUE(source);
  EXPECT_EQ(source->getNames(), (std::vector<std::string>{"v1", "v2", "v3"}));
  for (const std::string &name : source->getNames()) {
    Array array;
    Status status = source->load(name, array);
    ASSERT_TRUE(status.isOk()) << status.getMessage();
    EXPECT_EQ(values(array), (std::vector<double>{0, 1, 2, 3, 4}));
  }
}

TEST(SafetensorsTest, ReadsArraysInOrder) {
  auto source = open(dataPath("small.safetensors"));
  ASSERT_TRUE(source);
  Array array;
  ASSERT_TRUE(source->load("x", array).isOk());
  EXPECT_EQ(array.shape, (Shape{2, 3}));
  EXPECT_EQ(values(array), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  ASSERT_TRUE(source->load("label", array).isOk());
  EXPECT_EQ(array.type, DataType::Int64);
  EXPECT_EQ(values(array), (std::vector<double>{1, 0}));
}

TEST(SafetensorsTest, TakesLinearTimeForManyArrays) {
  // 0.4 s of a core of an AMD EPYC, some seconds with sanitizers; looking through all arrays for each took 45 s. Time
  // of the processor: others are at work on it, too.
  constexpr int kArrays = 40000;
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
  for (int i = 0; i < kArrays; ++i)
    header += ",\"layers." + std::to_string(i) +
              ".weight\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[" + std::to_string(i) + "," +
              std::to_string(i + 1) + "]}";
  TemporaryFolder folder;
  const std::clock_t begin = std::clock();
  auto source = open(folder.write("many.safetensors", safetensors(header + "}", std::string(kArrays, '\7'))));
  ASSERT_TRUE(source);
  EXPECT_EQ(source->getNames().size(), size_t(kArrays));
  for (int i = 0; i < kArrays; i += 997) {
    Array array;
    ASSERT_TRUE(source->load("layers." + std::to_string(i) + ".weight", array).isOk());
    EXPECT_EQ(values(array), std::vector<double>{7});
  }
  EXPECT_LT(std::clock() - begin, 8 * CLOCKS_PER_SEC);
}

TEST(IdxTest, FindsLabelsBesideImagesGzippedOrNot) {
  auto source = open(dataPath("t-images-idx3-ubyte"));
  ASSERT_TRUE(source);
  Array image, label;
  ASSERT_TRUE(source->load("image", image).isOk());
  ASSERT_TRUE(source->load("label", label).isOk());
  EXPECT_EQ(image.shape, (Shape{5, 2, 3}));
  EXPECT_EQ(image.data[29], 29);
  EXPECT_EQ(values(label), (std::vector<double>{3, 1, 4, 1, 5}));
}

TEST(IdxTest, TakesAPairOfNamedFiles) {
  auto source = open(dataPath("z-images-idx3-ubyte.gz") + "," + dataPath("t-labels-idx1-ubyte.gz"));
  ASSERT_TRUE(source);
  Array image;
  ASSERT_TRUE(source->load("image", image).isOk());
  EXPECT_EQ(image.shape, (Shape{5, 2, 3}));
  EXPECT_TRUE(source->has("label"));
}

TEST(IdxTest, SwapsTheBytesOfWideElements) {
  auto source = open(dataPath("shorts-idx"));
  ASSERT_TRUE(source);
  Array array;
  ASSERT_TRUE(source->load("image", array).isOk());
  EXPECT_EQ(array.type, DataType::Int16);
  EXPECT_EQ(values(array), (std::vector<double>{1, -2, 300}));
  EXPECT_FALSE(source->has("label"));
  EXPECT_EQ(source->getHint(), "name the labels after a comma: --data IMAGES,LABELS");
}
