// Written files read back, and failures leave nothing behind.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <filesystem>
#include <gtest/gtest.h>

#include "engine/data/writers.h"
#include "support/AtomicFile.h"
#include "test/engine/data_files.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

static OutputArray makeArray(const std::string &name, DataType type, const Shape &shape) {
  size_t bytes = 0;
  EXPECT_TRUE(countBytes(shape, type, bytes));
  OutputArray array{name, type, shape, std::vector<uint8_t>(bytes)};
  for (size_t i = 0; i < bytes; ++i)
    array.data[i] = uint8_t(i & 1);
  return array;
}

static void expectRead(const std::string &path, const std::vector<OutputArray> &arrays) {
  std::unique_ptr<DataSource> source;
  Status status = openData(path, source);
  ASSERT_TRUE(status.isOk()) << status.getMessage();
  ASSERT_EQ(source->getNames().size(), arrays.size());
  for (const OutputArray &wanted : arrays) {
    Array array;
    status = source->load(wanted.name, array);
    ASSERT_TRUE(status.isOk()) << status.getMessage();
    EXPECT_EQ(array.type, wanted.type);
    EXPECT_EQ(array.shape, wanted.shape);
    EXPECT_EQ(std::vector<uint8_t>(array.data, array.data + array.bytes), wanted.data);
  }
}

static const DataType kTypes[] = {DataType::Bool,  DataType::UInt8,   DataType::Int8,    DataType::UInt16,
                                  DataType::Int16, DataType::UInt32,  DataType::Int32,   DataType::UInt64,
                                  DataType::Int64, DataType::Float16, DataType::Float32, DataType::Float64};

TEST(WritersTest, NpzReadsBackInEveryTypeAndShape) {
  TemporaryFolder folder;
  std::vector<OutputArray> arrays;
  for (DataType type : kTypes)
    arrays.push_back(makeArray(std::string("a/") + getTypeName(type), type, {2, 3}));
  arrays.push_back(makeArray("scalar", DataType::Float32, {}));
  arrays.push_back(makeArray("row", DataType::Float32, {5}));
  arrays.push_back(makeArray("empty", DataType::Float32, {0, 4}));
  std::string path = folder / "out.npz";
  ASSERT_TRUE(writeNpz(path, arrays).isOk());
  expectRead(path, arrays);
  std::string first = readFile(path);
  ASSERT_TRUE(writeNpz(path, arrays).isOk());
  EXPECT_EQ(readFile(path), first);
}

TEST(WritersTest, NpzWritesBfloat16AsFloat32) {
  TemporaryFolder folder;
  OutputArray array{"x", DataType::BFloat16, {2}, {0x80, 0x3f, 0x00, 0xc0}}; // 1, -2
  ASSERT_TRUE(writeNpz(folder / "out.npz", {array}).isOk());
  expectRead(folder / "out.npz", {{"x", DataType::Float32, {2}, {0, 0, 0x80, 0x3f, 0, 0, 0x00, 0xc0}}});
}

TEST(WritersTest, SafetensorsReadsBack) {
  TemporaryFolder folder;
  std::vector<OutputArray> arrays;
  for (DataType type : kTypes)
    arrays.push_back(makeArray(getTypeName(type), type, {3, 2}));
  arrays.push_back(makeArray("a \"quoted\" name", DataType::BFloat16, {}));
  std::string path = folder / "out.safetensors";
  ASSERT_TRUE(writeSafetensors(path, arrays, {{"loss", "1.5"}}).isOk());
  expectRead(path, arrays);
  EXPECT_NE(readFile(path).find("{\"__metadata__\":{\"loss\":\"1.5\"},"), std::string::npos);
}

TEST(WritersTest, AFailureLeavesTheOldFile) {
  TemporaryFolder folder;
  std::string path = folder.write("out.npz", "old");
  {
    AtomicFile file(path);
    ASSERT_TRUE(file.open().isOk());
    ASSERT_TRUE(file.write("half").isOk());
  }
  EXPECT_EQ(readFile(path), "old");
  EXPECT_EQ(
      std::distance(std::filesystem::directory_iterator(folder / ""), std::filesystem::directory_iterator{}),
      1);
}

TEST(WritersTest, NamesAFolderThatIsNotThere) {
  EXPECT_EQ(writeNpz("/no/such/folder/out.npz", {}).getMessage(),
            "/no/such/folder/out.npz: cannot be written: No such file or directory");
}
