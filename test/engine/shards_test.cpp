// Data in several files, and files of tokens: what is read in which order, and what is refused.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <set>
#include <unistd.h>

#include "engine/data/batches.h"
#include "test/engine/data_files.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

namespace {

/// x of [count, 2] and label of [count], numbered from `first` on.
std::vector<ZipMember> pairOf(int64_t first, int64_t count, int method = 0) {
  std::vector<float> x;
  std::vector<int64_t> label;
  for (int64_t i = first; i < first + count; ++i) {
    x.insert(x.end(), {float(i), float(i) + 0.5f});
    label.push_back(i);
  }
  std::string rows = std::to_string(count);
  return {{"x.npy", npyOf("<f4", "(" + rows + ", 2)", bytesOf(x)), method},
          {"label.npy", npyOf("<i8", "(" + rows + ",)", bytesOf(label)), method}};
}

const std::vector<InputSpec> kInputs = {{"x", DataType::Float32, {3, 2}, false, true},
                                        {"label", DataType::Int64, {3}, true, true}};

Status open(const std::string &text, Batches &batches, const std::vector<InputSpec> &inputs = kInputs,
            Remainder remainder = Remainder::Drop) {
  std::unique_ptr<DataSource> source;
  std::vector<std::string> notes;
  ORTC_TRY(openData(text, source));
  return Batches::create(*source, inputs, remainder, batches, notes);
}

template <typename T>
std::vector<T> slice(const Batches &batches, size_t input, int64_t k, const Order *order = nullptr) {
  std::vector<T> values(batches.getInputBytes(input) / sizeof(T));
  Status status = batches.gather(input, k, order, reinterpret_cast<uint8_t *>(values.data()));
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  return values;
}

/// The labels of an epoch, whose samples must have their own x.
std::vector<int64_t> readEpoch(const Batches &batches, const Order *order) {
  std::vector<int64_t> labels;
  for (int64_t k = 0; k < batches.getSlices(); ++k) {
    std::vector<float> x = slice<float>(batches, 0, k, order);
    std::vector<int64_t> label = slice<int64_t>(batches, 1, k, order);
    for (size_t i = 0; i < label.size(); ++i) {
      EXPECT_EQ(x[2 * i], float(label[i]));
      EXPECT_EQ(x[2 * i + 1], float(label[i]) + 0.5f);
    }
    labels.insert(labels.end(), label.begin(), label.end());
  }
  return labels;
}

class ShardsTest : public testing::Test {
protected:
  /// Shards of 5, 4 and 7 samples, the second one compressed.
  ShardsTest() {
    folder.write("s-0.npz", zip(pairOf(0, 5)));
    folder.write("s-1.npz", zip(pairOf(5, 4, 8)));
    folder.write("s-2.npz", zip(pairOf(9, 7)));
  }
  std::string refuse(const std::string &text, const std::vector<InputSpec> &inputs = kInputs) {
    Batches batches;
    std::string message = open(text, batches, inputs).getMessage(), place = folder / "";
    for (size_t at; (at = message.find(place)) != std::string::npos;)
      message.erase(at, place.size());
    return message;
  }
  TemporaryFolder folder;
};

} // namespace

TEST_F(ShardsTest, AreReadOneAfterTheOther) {
  std::vector<int64_t> wanted(15);
  std::iota(wanted.begin(), wanted.end(), 0);
  std::string one = folder / "s-0.npz," + folder / "s-1.npz," + folder / "s-2.npz";
  for (const std::string &text : {folder / "s-*.npz", folder / "s-[0-2].npz", folder / "s-?.npz", one}) {
    Batches batches;
    Status status = open(text, batches);
    ASSERT_TRUE(status.isOk()) << status.getMessage();
    EXPECT_EQ(batches.getSamples(), 16);
    EXPECT_EQ(batches.getDropped(), 1);
    EXPECT_EQ(readEpoch(batches, nullptr), wanted) << text;
  }
  Batches filled;
  ASSERT_TRUE(open(folder / "s-*.npz", filled, kInputs, Remainder::Repeat).isOk());
  EXPECT_EQ(slice<int64_t>(filled, 1, 5), (std::vector<int64_t>{15, 15, 15}));
}

/// An epoch has every sample, in an order that seed and epoch give. A run that begins in its middle has the rest of it.
TEST_F(ShardsTest, AreShuffledByPlaceAlone) {
  Batches batches, other;
  ASSERT_TRUE(open(folder / "s-*.npz", batches).isOk());
  ASSERT_TRUE(open(folder / "s-*.npz", other).isOk());
  Order order = batches.makeOrder(3, 0), second = batches.makeOrder(3, 1), same = other.makeOrder(3, 0);
  std::vector<int64_t> labels = readEpoch(batches, &order);
  EXPECT_EQ(std::set<int64_t>(labels.begin(), labels.end()).size(), 15u);
  EXPECT_NE(readEpoch(batches, &second), labels);
  std::vector<int64_t> third = slice<int64_t>(other, 1, 3, &same);
  EXPECT_TRUE(std::equal(third.begin(), third.end(), labels.begin() + 9));
}

TEST(OrderTest, MixesPartsAndWindows) {
  std::vector<int64_t> parts = {10, 1, 30, 7, 52};
  for (int64_t window : {1, 8, 33, 100, 1000}) {
    Order order(5, 2, parts, window);
    std::vector<int64_t> items;
    for (int64_t place = 0; place < 100; ++place)
      items.push_back(order[place]);
    std::vector<int64_t> sorted = items;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < 100; ++i)
      ASSERT_EQ(sorted[size_t(i)], i) << window;
    Order again(5, 2, parts, window);
    for (int64_t place = 99; place >= 0; --place) // and no other way to a place matters
      ASSERT_EQ(again[place], items[size_t(place)]) << window;
    if (window == 1) { // parts alone
      int64_t jumps = 0;
      for (size_t i = 1; i < 100; ++i)
        jumps += items[i] != items[i - 1] + 1;
      EXPECT_LE(jumps, 4);
      EXPECT_GE(jumps, 1);
    }
  }
}

/// Each window of a long order is mixed in its own way.
TEST(OrderTest, WindowsDiffer) {
  Order order(5, 2, {64}, 16);
  std::set<std::vector<int64_t>> windows;
  for (int64_t w = 0; w < 4; ++w) {
    std::vector<int64_t> items;
    for (int64_t i = 0; i < 16; ++i)
      items.push_back(order[w * 16 + i] - w * 16);
    windows.insert(items);
  }
  EXPECT_EQ(windows.size(), 4u);
}

/// Together the processes have what one process has, in the same step; each has as many.
TEST_F(ShardsTest, AreSharedByProcesses) {
  Batches all;
  ASSERT_TRUE(open(folder / "s-*.npz", all).isOk());
  Order order = all.makeOrder(1, 0);
  std::vector<int64_t> whole = readEpoch(all, &order);
  std::set<int64_t> seen;
  for (int64_t rank = 0; rank < 2; ++rank) {
    Batches part;
    ASSERT_TRUE(open(folder / "s-*.npz", part).isOk());
    ASSERT_TRUE(part.setShare(rank, 2).isOk());
    EXPECT_EQ(part.getSlices(), 2);
    EXPECT_EQ(part.getDropped(), 4);
    Order own = part.makeOrder(1, 0);
    std::vector<int64_t> labels = readEpoch(part, &own);
    for (size_t i = 0; i < labels.size(); ++i) {
      EXPECT_TRUE(seen.insert(labels[i]).second) << labels[i];
      EXPECT_EQ(labels[i], whole[(i / 3 * 2 + size_t(rank)) * 3 + i % 3]);
    }
  }
  Status status = all.setShare(0, 6);
  EXPECT_EQ(status.getMessage(),
            folder / "s-*.npz: an epoch has 5 steps, fewer than the 6 processes of --world");
}

TEST_F(ShardsTest, MustHaveTheSameColumns) {
  auto write = [&](const std::string &name, std::vector<ZipMember> members) {
    folder.write(name, zip(members));
  };
  std::vector<ZipMember> pair = pairOf(0, 4), more = pair, less = {pair[0]};
  more.push_back({"mask.npy", npyOf("|u1", "(1,)", "a")});
  write("t-0.npz", pair);
  write("t-1.npz", less);
  EXPECT_EQ(refuse(folder / "t-*.npz"),
            "t-1.npz: has no array 'label', which t-0.npz has; all shards need the same arrays");
  write("t-1.npz", more);
  EXPECT_EQ(refuse(folder / "t-*.npz"),
            "t-1.npz: has an array 'mask', which t-0.npz has not; all shards need the same arrays");
  write("t-1.npz", {{"x.npy", npyOf("<f8", "(1, 2)", std::string(16, 0))},
                    {"label.npy", npyOf("<i8", "(1,)", std::string(8, 0))}});
  EXPECT_EQ(
      refuse(folder / "t-*.npz"),
      "t-1.npz: array 'x' has shape [1, 2] of float64 but that of the first shard has [4, 2] of float32; all "
      "shards need the same types, and shapes of samples");
  write("t-1.npz", {{"x.npy", npyOf("<f4", "(1, 1, 2)", std::string(8, 0))},
                    {"label.npy", npyOf("<i8", "(1,)", std::string(8, 0))}});
  EXPECT_EQ(refuse(folder / "t-*.npz"), "t-1.npz: array 'x' has shape [1, 1, 2] of float32 but that of the "
                                        "first shard has [4, 2] of float32; all "
                                        "shards need the same types, and shapes of samples");
  write("t-1.npz", {{"x.npy", npyOf("<f4", "(2, 2)", std::string(16, 0))},
                    {"label.npy", npyOf("<i8", "(1,)", std::string(8, 0))}});
  EXPECT_EQ(refuse(folder / "t-*.npz"), "t-1.npz: array 'label' has 1 sample but 'x' has 2");
  EXPECT_EQ(refuse(folder / "u-*.npz"), "u-*.npz: no file has such a name");
  EXPECT_EQ(refuse(folder / "s-*.npz?a=b"), "s-0.npz: 'a=' means nothing for this kind of file");
  EXPECT_EQ(refuse(folder / "s-*.npz,"), "'s-*.npz,' names a file that has no name");
}

TEST_F(ShardsTest, MustStayAsTheyAre) {
  Batches batches;
  std::vector<std::string> names;
  std::string big(40 << 20, '\0');
  for (int i = 0; i < 8; ++i) { // 40 MiB each, so that not all stay open
    std::string path = folder / ("big-" + std::to_string(i) + ".safetensors");
    folder.write(
        "big-" + std::to_string(i) + ".safetensors",
        safetensors(R"({"x":{"dtype":"U8","shape":[40,1048576],"data_offsets":[0,41943040]}})", big));
    names.push_back(path);
  }
  ASSERT_TRUE(open(folder / "big-*.safetensors", batches, {{"x", DataType::UInt8, {1, 1 << 20}, false, true}})
                  .isOk());
  EXPECT_EQ(batches.getSlices(), 320);
  for (int64_t k = 0; k < 320; k += 20)
    slice<uint8_t>(batches, 0, k);
  auto files = [&] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  auto before = files();
  batches = Batches();
  EXPECT_EQ(before - files(), 6) << "of 40 MiB each, in 256 MiB";
  ASSERT_TRUE(open(folder / "big-*.safetensors", batches, {{"x", DataType::UInt8, {1, 1 << 20}, false, true}})
                  .isOk());
  std::filesystem::last_write_time(names[7],
                                   std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  std::vector<uint8_t> bytes(1 << 20);
  EXPECT_TRUE(batches.gather(0, 0, nullptr, bytes.data()).isOk());
  Status status = batches.gather(0, 319, nullptr, bytes.data());
  EXPECT_EQ(status.getMessage(),
            names[7] + ": has changed since it was opened first; while a file is in use, write a "
                       "new one and rename it after the end of the run");
}

TEST(IdxShardsTest, ArePairs) {
  TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) {
    folder.write("a" + std::to_string(i) + "-images",
                 std::string("\0\0\x08\2", 4) + big32(3) + big32(1) + std::string(3, char(i)));
    folder.write("a" + std::to_string(i) + "-labels",
                 std::string("\0\0\x08\1", 4) + big32(3) + std::string(3, char(i)));
  }
  std::vector<InputSpec> inputs = {{"x", DataType::UInt8, {2, 1}, false, true},
                                   {"label", DataType::Int64, {2}, true, true}};
  for (const std::string &text : {folder / "a*-images," + folder / "a*-labels", folder / "a*-images"}) {
    Batches batches;
    Status status = open(text, batches, inputs);
    ASSERT_TRUE(status.isOk()) << status.getMessage();
    EXPECT_EQ(slice<uint8_t>(batches, 0, 1), (std::vector<uint8_t>{0, 1}));
    EXPECT_EQ(slice<int64_t>(batches, 1, 1), (std::vector<int64_t>{0, 1}));
  }
  std::unique_ptr<DataSource> source;
  EXPECT_EQ(openData(folder / "a*-images," + folder / "a0-labels", source).getMessage(),
            folder / "a*-images," + folder / "a0-labels: " + folder / "a0-labels are 1 files but " +
                folder / "a*-images are 2; a shard has one of each");
}

static std::vector<InputSpec> tokenInputs(int64_t length) {
  return {{"ids", DataType::Int64, {2, length}, false, true},
          {"label", DataType::Int64, {2, length}, true, true}};
}

TEST(TokensTest, LabelsAreTheNextTokens) {
  TemporaryFolder folder;
  std::vector<uint16_t> text(17);
  std::iota(text.begin(), text.end(), uint16_t(100));
  std::vector<int32_t> header(256);
  header[0] = 20240520, header[1] = 1, header[2] = 17;
  std::vector<uint32_t> wide(text.begin(), text.end());
  std::vector<int32_t> wideHeader = header;
  wideHeader[0] = 20240801, wideHeader[1] = 7;
  folder.write("raw.bin", bytesOf(text));
  folder.write("header.bin", bytesOf(header) + bytesOf(text));
  folder.write("wide.bin", bytesOf(wideHeader) + bytesOf(wide));
  folder.write("raw32.bin", bytesOf(wide));
  for (const std::string &file :
       {folder / "raw.bin?seq=4", folder / "header.bin?seq=4", folder / "wide.bin?seq=4",
        folder / "raw32.bin?seq=4&dtype=int32", folder / "header.bin?dtype=uint16&seq=4"}) {
    Batches batches;
    Status status = open("tokens:" + file, batches, tokenInputs(4));
    ASSERT_TRUE(status.isOk()) << status.getMessage();
    EXPECT_EQ(batches.getSamples(), 4);
    EXPECT_EQ(slice<int64_t>(batches, 0, 1), (std::vector<int64_t>{108, 109, 110, 111, 112, 113, 114, 115}))
        << file;
    EXPECT_EQ(slice<int64_t>(batches, 1, 1), (std::vector<int64_t>{109, 110, 111, 112, 113, 114, 115, 116}))
        << file;
    size_t first =
        file.find("header") != std::string::npos || file.find("wide") != std::string::npos ? 1024 : 0;
    size_t element =
        file.find("wide") != std::string::npos || file.find("raw32") != std::string::npos ? 4 : 2;
    EXPECT_TRUE(batches.describeElement(1, 1, 5, {2, 4}, nullptr)
                    .ends_with("element 1 of its 'label', at byte " +
                               std::to_string(first + (3 * 4 + 1 + 1) * element)))
        << batches.describeElement(1, 1, 5, {2, 4}, nullptr);
  }
  // Windows of files do not go on in the next file.
  Batches both;
  ASSERT_TRUE(
      open("tokens:" + folder / "raw.bin," + folder / "header.bin?seq=5", both, tokenInputs(5)).isOk());
  EXPECT_EQ(both.getSamples(), 6);
  EXPECT_EQ(slice<int64_t>(both, 0, 1),
            (std::vector<int64_t>{110, 111, 112, 113, 114, 100, 101, 102, 103, 104}));
}

TEST(TokensTest, AreRefusedWithWhatIsWrong) {
  TemporaryFolder folder;
  std::vector<int32_t> header(256);
  header[0] = 20240520, header[1] = 1, header[2] = 5;
  std::string path = folder.write("a.bin", bytesOf(header) + std::string(8, 0));
  auto refuse = [&](const std::string &options, int64_t length = 2) {
    Batches batches;
    Status status = open("tokens:" + path + options, batches, tokenInputs(length));
    std::string message = status.getMessage();
    EXPECT_EQ(message.find(options.empty() || status.getCode() == ExitCode::Failed ? path : "tokens:" + path),
              0u)
        << message;
    return std::pair(status.getCode(), message.substr(message.find(": ") + 2));
  };
  auto failed = [](const std::string &text) { return std::pair(ExitCode::Failed, text); };
  EXPECT_EQ(refuse("?seq=2"),
            failed("claims 5 tokens at byte 8, which are 10 bytes, but has 8 behind its header of 1024"));
  header[2] = -1;
  folder.write("a.bin", bytesOf(header) + std::string(8, 0));
  EXPECT_EQ(
      refuse("?seq=2"),
      failed("claims -1 tokens at byte 8, which are 8589934590 bytes, but has 8 behind its header of 1024"));
  header[2] = 4;
  folder.write("a.bin", bytesOf(header) + std::string(8, 0));
  EXPECT_EQ(
      refuse("?seq=2&dtype=uint8"),
      failed("has llm.c's header 20240520, whose tokens are uint16, but dtype=uint8 is given; leave it out"));
  EXPECT_EQ(refuse("?seq=4"), failed("has 4 tokens, but a sample of seq=4 takes one more than that"));
  EXPECT_EQ(refuse("?seq=3", 2), failed("array 'tokens' has shape [1, 3] but input 'ids' is [2, 2]: all "
                                        "dimensions after the first must be equal; give seq=2"));
  header[1] = 2;
  folder.write("a.bin", bytesOf(header) + std::string(8, 0));
  EXPECT_EQ(refuse("?seq=2"),
            failed("has llm.c's header 20240520 of version 2 at byte 4, but version 1 is read"));
  folder.write("a.bin", std::string(9, 0));
  EXPECT_EQ(refuse("?seq=2"),
            failed("has 9 bytes, which is no multiple of the 2 of uint16; dtype says what tokens are"));
  folder.write("a.bin", "");
  EXPECT_EQ(refuse("?seq=2"), failed("has 0 tokens, but a sample of seq=2 takes one more than that"));
}

TEST(TokensTest, OptionsAreChecked) {
  TemporaryFolder folder;
  std::string path = folder.write("a.bin", std::string(64, 0));
  auto refuse = [&](const std::string &text) {
    std::unique_ptr<DataSource> source;
    Status status = openData(text, source);
    EXPECT_EQ(status.getCode(), ExitCode::Refused) << text;
    return status.getMessage().substr(status.getMessage().rfind(": ") + 2);
  };
  std::string tokens = "tokens:" + path;
  EXPECT_EQ(refuse(tokens), "needs ?seq=N, the tokens of a sample, for which the model was compiled");
  EXPECT_EQ(refuse(tokens + "?dtype=uint16"),
            "needs ?seq=N, the tokens of a sample, for which the model was compiled");
  EXPECT_EQ(refuse(tokens + "?seq=0"), "seq=0 must be a whole number from 1 to 16777216");
  EXPECT_EQ(refuse(tokens + "?seq=99999999999999999999"),
            "seq=99999999999999999999 must be a whole number from 1 to 16777216");
  EXPECT_EQ(refuse(tokens + "?seq=4&dtype=f4"), "dtype=f4 must be uint8, uint16, uint32, int32 or int64");
  EXPECT_EQ(refuse(tokens + "?seq=4&stride=1"), "'stride' is neither dtype nor seq");
  EXPECT_EQ(refuse(tokens + "?seq=4&seq=5"), "'seq' is given twice");
  EXPECT_EQ(refuse(tokens + "?seq=4&dtype"), "'dtype' is not key=value");
}

/// Of a sanitizer: then pages of files alone say something.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kKeepsFreedMemory = true;
#else
constexpr bool kKeepsFreedMemory = false;
#endif
#else
constexpr bool kKeepsFreedMemory = false;
#endif

/// 20 GB of which no block is on the disk. Whatever is read of it, and in whatever order, little stays.
TEST(TokensTest, StayOutOfMemory) {
  TemporaryFolder folder;
  std::string path = folder / "large.bin";
  int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  if (ftruncate(file, off_t(20'000'000'000)) != 0) {
    close(file);
    GTEST_SKIP() << "no sparse files here";
  }
  uint16_t last = 7;
  ASSERT_EQ(pwrite(file, &last, 2, off_t(20'000'000'000 - 2)), 2);
  close(file);
  auto resident = [] {
    std::ifstream statm("/proc/self/statm");
    int64_t size = 0, pages = 0, ofFiles = 0;
    statm >> size >> pages >> ofFiles;
    return (kKeepsFreedMemory ? ofFiles : pages) * sysconf(_SC_PAGESIZE);
  };
  Batches batches;
  int64_t before = resident(), most = 0;
  std::vector<InputSpec> inputs = {{"ids", DataType::Int64, {8, 1024}, false, true},
                                   {"label", DataType::Int64, {8, 1024}, true, true}};
  Status status = open("tokens:" + path + "?seq=1024", batches, inputs);
  ASSERT_TRUE(status.isOk()) << status.getMessage();
  Order order = batches.makeOrder(0, 0);
  EXPECT_EQ(batches.getSamples(), (10'000'000'000 - 1) / 1024);
  for (int64_t k = 0; k < 4000; ++k) {
    for (const Order *each : {static_cast<const Order *>(&order), static_cast<const Order *>(nullptr)})
      for (size_t input = 0; input < 2; ++input)
        slice<int64_t>(batches, input, k, each);
    most = std::max(most, resident() - before);
  }
  EXPECT_LE(most, 16 << 20) << "of 128 MiB that are read, and two windows of the order";
  RecordProperty("resident", std::to_string(most));
}
