// Files that change while they are in use, things that are no files, and arrays that are not worth inflating.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "engine/artifact/artifact_path.h"
#include "engine/data/batches.h"
#include "engine/data/inflate.h"
#include "support/AtomicFile.h"
#include "support/MappedFile.h"
#include "test/engine/data_files.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

namespace {

constexpr int64_t kRows = 64, kRow = 1024; // 256 KiB of float32: 64 pages

struct Kind {
  const char *name, *file, *array;
  DataType type;
  std::string bytes;
};
void PrintTo(const Kind &kind, std::ostream *out) { *out << kind.name; }

/// Rows that are not zero anywhere.
std::vector<Kind> kinds() {
  std::string values = bytesOf(std::vector<float>(size_t(kRows * kRow), 1.5f));
  std::string shape = "(" + std::to_string(kRows) + ", " + std::to_string(kRow) + ")";
  return {{"Npz", "a.npz", "x", DataType::Float32, zip({{"x.npy", npyOf("<f4", shape, values)}})},
          {"Safetensors", "a.safetensors", "x", DataType::Float32,
           safetensors(R"({"x":{"dtype":"F32","shape":[64,1024],"data_offsets":[0,262144]}})", values)},
          {"Idx", "a-idx", "image", DataType::UInt8,
           std::string("\0\0\x08\2", 4) + big32(256) + big32(1024) + std::string(262144, '\1')}};
}

class ChangedFileTest : public testing::TestWithParam<Kind> {
protected:
  void SetUp() override {
    path = folder.write(GetParam().file, GetParam().bytes);
    std::unique_ptr<DataSource> source;
    std::vector<std::string> notes;
    ASSERT_TRUE(openData(path, source).isOk());
    int64_t batch = 16;
    ASSERT_TRUE(Batches::create(*source, {{GetParam().array, GetParam().type, {batch, kRow}, false}},
                                Remainder::Drop, batches, notes)
                    .isOk());
    ASSERT_TRUE(readAll().isOk()) << readAll().getMessage();
  }
  Status readAll() {
    Order order = batches.makeOrder(1, 2);
    std::vector<uint8_t> slice(batches.getInputBytes(0));
    for (int64_t k = 0; k < batches.getSlices(); ++k)
      for (const Order *each : {static_cast<const Order *>(nullptr), static_cast<const Order *>(&order)})
        if (Status status = batches.gather(0, k, each, slice.data()); !status.isOk())
          return status;
    return Status();
  }
  void expectChanged() {
    Status status = readAll();
    EXPECT_EQ(status.getCode(), ExitCode::Failed);
    EXPECT_EQ(status.getMessage(),
              path + ": has changed since it was opened; while a file is in use, write a new "
                     "one and rename it");
  }

  TemporaryFolder folder;
  std::string path;
  Batches batches;
};

/// The guard of programs, for one test.
struct Guarded {
  Guarded() {
    sigaction(SIGBUS, nullptr, &before);
    guardMappedFiles("tool");
  }
  ~Guarded() { sigaction(SIGBUS, &before, nullptr); }
  struct sigaction before{};
};

} // namespace

TEST_P(ChangedFileTest, ThatIsCutIsAFailure) {
  Guarded guarded;
  for (size_t bytes : {GetParam().bytes.size() - 1, size_t(100000), size_t(1), size_t(0)}) {
    std::filesystem::resize_file(path, bytes);
    expectChanged();
  }
  // Other threads have guards of their own.
  std::thread([&] { expectChanged(); }).join();
}

TEST_P(ChangedFileTest, ThatIsWrittenAnewInPlaceIsAFailure) {
  std::string other = GetParam().bytes;
  other.back() ^= 1;
  std::this_thread::sleep_for(std::chrono::milliseconds(20)); // clocks of files tick
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << other;
  expectChanged();
}

TEST_P(ChangedFileTest, ThatIsReplacedOrRemovedStaysWhatItWas) {
  std::filesystem::rename(folder.write("other", "something else"), path);
  EXPECT_TRUE(readAll().isOk()) << readAll().getMessage();
  std::filesystem::remove(path);
  EXPECT_TRUE(readAll().isOk()) << readAll().getMessage();
}

INSTANTIATE_TEST_SUITE_P(All, ChangedFileTest, testing::ValuesIn(kinds()),
                         [](const auto &info) { return std::string(info.param.name); });

/// Whoever has mapped the file, and wherever it is read.
/// Formats whose numbers are copied are compared with what they were when all of them are there.
class ParsedFileTest : public testing::TestWithParam<Kind> {};

TEST_P(ParsedFileTest, ThatChangesBetweenOpeningAndReadingIsAFailure) {
  TemporaryFolder folder;
  const std::string &bytes = GetParam().bytes;
  // As long, longer, and shorter; each of another content.
  for (const std::string &other :
       {std::string(bytes.size(), '7'), bytes + bytes, bytes.substr(0, bytes.size() / 3)}) {
    const std::string path = folder.write(GetParam().file, bytes);
    std::unique_ptr<DataSource> source;
    ASSERT_TRUE(openData(path, source).isOk());
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // the clock of file systems has steps
    const int file = ::open(path.c_str(), O_WRONLY);
    ASSERT_EQ(pwrite(file, other.data(), other.size(), 0), ssize_t(other.size()));
    if (other.size() < bytes.size())
      ASSERT_EQ(ftruncate(file, off_t(other.size() / 4096 * 4096 + 100)), 0);
    ::close(file);
    Array array;
    Status status;
    for (const std::string &name : source->getNames())
      if (status = source->load(name, array); !status.isOk())
        break;
    EXPECT_EQ(status.getCode(), ExitCode::Failed) << other.size();
    EXPECT_EQ(status.getMessage(),
              path + ": has changed since it was opened; while a file is in use, write a new "
                     "one and rename it");
    std::filesystem::remove(path);
  }
}

static std::vector<Kind> parsedKinds() {
  std::string csv = "x,label\n";
  for (int i = 0; i < 300; ++i)
    csv += std::to_string(i % 10) + "," + std::to_string(i % 2) + "\n";
  return {{"Csv", "a.csv", "x", DataType::Int64, csv},
          {"Tar", "a.tar", "x", DataType::Float32,
           tarOf({{"a.x.npy", npyOf("<f4", "(2,)", bytesOf(std::vector<float>{1, 2}))},
                  {"b.x.npy", npyOf("<f4", "(2,)", bytesOf(std::vector<float>{3, 4}))}})}};
}
INSTANTIATE_TEST_SUITE_P(All, ParsedFileTest, testing::ValuesIn(parsedKinds()),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(FileGuardTest, EndsTheProcessWithAMessage) {
  TemporaryFolder folder;
  for (const char *name : {"plain", "with a space", "with\nline"}) {
    std::string path = folder.write(name, std::string(100000, 'x')), shown = path;
    if (size_t line = shown.find('\n'); line != std::string::npos)
      shown.replace(line, 1, ".012"); // as the kernel tells it, with a backslash
    std::shared_ptr<const MappedFile> file;
    ASSERT_TRUE(MappedFile::open(path, file).isOk());
    auto cutAndRead = [&] {
      guardMappedFiles("tool");
      std::filesystem::resize_file(path, 10);
      std::thread([&] {
        const volatile uint8_t *data = file->getData();
        (void)data[99999];
      }).join();
      _exit(0);
    };
    EXPECT_EXIT(cutAndRead(), testing::ExitedWithCode(1),
                "^tool: error: " + shown + ": was cut while it was read;");
  }
}

TEST(FileGuardTest, RemovesWhatIsHalfMade) {
  TemporaryFolder folder;
  const std::string input = folder.write("input", std::string(100000, 'x')), output = folder / "output";
  std::shared_ptr<const MappedFile> mapped;
  ASSERT_TRUE(MappedFile::open(input, mapped).isOk());
  auto cutAndRead = [&] {
    guardMappedFiles("tool");
    AtomicFile file(output);
    if (!file.open().isOk())
      _exit(2);
    std::filesystem::resize_file(input, 10);
    const volatile uint8_t *data = mapped->getData();
    (void)data[99999];
    _exit(0);
  };
  EXPECT_EXIT(cutAndRead(), testing::ExitedWithCode(1), "was cut while it was read");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / ""), {}), 1) << "the input";
}

TEST(FileGuardTest, LeavesOtherFaultsAlone) {
  auto fault = [] {
    guardMappedFiles("tool");
    raise(SIGBUS);
    raise(SIGBUS);
  };
  EXPECT_EXIT(fault(), testing::KilledBySignal(SIGBUS), "^$");
}

/// Nobody writes to these pipes: to open one as usual waits for ever.
TEST(NoFileTest, IsRefusedWithoutWaiting) {
  alarm(20);
  TemporaryFolder folder;
  std::string pipe = folder / "pipe";
  for (const char *ending : {"", ".npz", ".safetensors", "-idx3-ubyte", "-idx3-ubyte.gz"}) {
    std::string path = pipe + ending;
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    std::unique_ptr<DataSource> source;
    EXPECT_EQ(openData(path, source).getMessage(), path + ": is not a regular file");
    EXPECT_EQ(openIdx(path, path, source).getMessage(), path + ": is not a regular file");
  }
  std::unique_ptr<DataSource> source;
  EXPECT_EQ(openData("/dev/zero", source).getMessage(), "/dev/zero: is not a regular file");
  std::string images = folder.write("t10k-images", std::string("\0\0\x08\1", 4) + big32(1) + "a");
  ASSERT_EQ(mkfifo((folder / "t10k-labels").c_str(), 0600), 0);
  ASSERT_TRUE(openData(images, source).isOk());
  EXPECT_EQ(source->getNames(), (std::vector<std::string>{"image"})) << "labels are no file";
  std::string file;
  EXPECT_EQ(findArtifactFile(pipe, file).getMessage(),
            pipe + ": is neither a file nor a folder; make one with ortc train MODEL.onnx -o " + pipe);
  std::filesystem::rename(pipe, folder / "model.ortc");
  EXPECT_EQ(findArtifactFile(folder / "", file).getMessage(),
            folder / "model.ortc" + ": is not a regular file");
  alarm(0);
}

/// Each of these arrays fails when its values are inflated: they are damaged behind the header. What is said
/// instead is what their headers tell.
TEST(InflateTest, WhatCannotBeUsedIsNotInflated) {
  TemporaryFolder folder;
  auto damage = [](std::string bytes, size_t from) {
    for (size_t i = bytes.size() - 40; i > from && i > bytes.size() - 400; --i)
      bytes[i] = char(0xff);
    return bytes;
  };
  std::string noise;
  for (uint32_t i = 0, state = 1; i < 40000; ++i, state = state * 1664525 + 1013904223)
    noise += char(state >> 24);
  auto refuse = [&](const std::string &path, const InputSpec &spec) {
    std::unique_ptr<DataSource> source;
    Status status = openData(path, source);
    Batches batches;
    std::vector<std::string> notes;
    if (status.isOk())
      status = Batches::create(*source, {spec}, Remainder::Drop, batches, notes);
    return status.getMessage();
  };
  std::string npy = npyOf("|u1", "(100, 400)", noise);
  std::string npz =
      folder.write("a.npz", zip({{"x.npy", npy, 8}, {"y.npy", npyOf("|u1", "(2, 3)", "abcdef"), 8}}));
  std::string bytes = readFile(npz);
  std::fill_n(bytes.begin() + 20000, 300, char(0xff));
  folder.write("a.npz", bytes);
  InputSpec other{"x", DataType::UInt8, {10, 401}, false};
  EXPECT_EQ(refuse(npz, other),
            npz + ": array 'x' has shape [100, 400] but input 'x' is [10, 401]: all dimensions "
                  "after the first must be equal");
  EXPECT_EQ(refuse(npz, {"y", DataType::UInt8, {2, 3}, false}), "") << "nobody asks for x";
  EXPECT_NE(refuse(npz, {"x", DataType::UInt8, {10, 400}, false}), "") << "x is damaged";

  std::string idx = std::string("\0\0\x08\2", 4) + big32(100) + big32(400) + noise;
  std::string images = folder.write("images.gz", gzipOf(idx));
  std::string labels = folder.write("labels.gz", damage(gzipOf(idx), 30));
  EXPECT_EQ(refuse(images + "," + labels, {"image", DataType::UInt8, {10, 400}, false}), "")
      << "nobody asks for labels";
  EXPECT_EQ(
      refuse(labels, {"image", DataType::UInt8, {10, 401}, false}),
      labels +
          ": array 'image' has shape [100, 400] but input 'image' is [10, 401]: all dimensions after the "
          "first must be equal");
  EXPECT_NE(refuse(labels, {"image", DataType::UInt8, {10, 400}, false}), "") << "they are damaged";
}

/// A size that the header and the directory agree on, above what the machine has.
TEST(InflateTest, RefusesMoreThanThereIsMemoryFor) {
  std::shared_ptr<uint8_t[]> memory;
  EXPECT_EQ(allocateInflated(SIZE_MAX / 4, memory)
                .find("inflates to 4611686018427387903 bytes, and there is no memory"),
            0u);
  EXPECT_EQ(allocateInflated(1000, memory), "");
  EXPECT_TRUE(memory);
}

TEST(InflateTest, StopsSoonWhenAsked) {
  TemporaryFolder folder;
  std::string values(64 << 20, '\1');
  std::string shape = "(" + std::to_string(values.size()) + ",)";
  std::string npz = folder.write("a.npz", zip({{"x.npy", npyOf("|u1", shape, values), 8}}));
  std::string idx = folder.write("b-idx.gz", gzipOf(std::string("\0\0\x08\1", 4) + big32(64 << 20) + values));
  for (const std::string &path : {npz, idx}) {
    std::sig_atomic_t stop = 0;
    std::unique_ptr<DataSource> source;
    Array array;
    ASSERT_TRUE(openData(path, source, &stop).isOk());
    ASSERT_TRUE(source->load(source->getNames()[0], array).isOk());
    stop = SIGINT;
    Status status = source->load(source->getNames()[0], array);
    EXPECT_TRUE(status.getMessage().ends_with("was not inflated to its end: interrupted"))
        << status.getMessage();
  }
}
