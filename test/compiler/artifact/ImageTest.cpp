// Images, files that are written piece by piece, and hashes of pieces.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "compiler/artifact/FileLayout.h"
#include "compiler/artifact/Image.h"
#include "runtime/src/sha256.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ortc::artifact {
namespace {

Bytes write(const Image &image, uint64_t bytes) {
  MemorySink sink;
  EXPECT_TRUE(image.write(sink, bytes).isOk());
  return sink.file;
}

const Bytes kThree{1, 2, 3};

/// Zeros, with three bytes at 2, which are viewed, and two at 8000, which are made.
Image makeImage() {
  Image image;
  image.setSize(9000);
  image.addMade(8000, 2, [](uint8_t *to) { to[0] = 7, to[1] = 0; });
  image.addView(2, kThree);
  return image;
}

TEST(ImageTest, PiecesLieAtTheirOffsetsAndZerosBetween) {
  Bytes expected(9000);
  std::copy(kThree.begin(), kThree.end(), expected.begin() + 2);
  expected[8000] = 7;
  EXPECT_EQ(makeImage().toBytes(), expected);
  EXPECT_EQ(write(makeImage(), 9000), expected);
  for (size_t bytes : {0, 1, 2, 4, 5, 6, 8001, 8002}) // within a piece and between two
    EXPECT_EQ(write(makeImage(), bytes), Bytes(expected.begin(), expected.begin() + bytes)) << bytes;
}

TEST(ImageTest, TheEndIsAfterTheLastByteThatIsNotZero) {
  EXPECT_EQ(makeImage().findEnd(), 8001u);
  Image image = makeImage();
  image.addMade(8000, 2, [](uint8_t *) {});
  EXPECT_EQ(image.findEnd(), 5u) << "a piece at the same place replaces the one before";
  EXPECT_EQ(Image().findEnd(), 0u);
  EXPECT_EQ(Image(Bytes(100)).findEnd(), 0u);
  EXPECT_EQ(Image(Bytes{0, 9, 0}).findEnd(), 2u);
}

TEST(ImageTest, BytesThatItKeepsOutliveTheirMaker) {
  Image copy;
  {
    Image image(Bytes(1 << 16, 5));
    copy = image;
  }
  EXPECT_EQ(copy.toBytes(), Bytes(1 << 16, 5));
}

/// Fails after so many bytes, as a disk does that is full.
class FullSink : public ByteSink {
public:
  explicit FullSink(size_t room) : room(room) {}
  Status write(std::span<const uint8_t> bytes) override {
    if (bytes.size() > room)
      return Status::failure("full");
    room -= bytes.size();
    return Status();
  }
  Status rewrite(uint64_t, std::span<const uint8_t>) override { return Status(); }
  size_t room;
};

TEST(ImageTest, AnErrorOfTheSinkIsGivenBack) {
  for (size_t room : {0, 3, 7999, 8001}) {
    FullSink sink(room);
    EXPECT_EQ(makeImage().write(sink, 9000).getMessage(), "full") << room;
  }
}

TEST(Sha256Test, PiecesGiveTheDigestOfTheWhole) {
  Bytes data(20000);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<uint8_t>(i * i >> 3);
  for (size_t size : {0, 1, 55, 56, 63, 64, 65, 127, 4096, 20000})
    for (size_t piece : {1, 63, 64, 65, 5000}) {
      std::array<uint8_t, 32> whole{}, pieces{};
      sha256(data.data(), size, whole.data());
      Sha256 hash;
      for (size_t at = 0; at < size; at += piece)
        hash.add(data.data() + at, std::min(piece, size - at));
      hash.finish(pieces.data());
      EXPECT_EQ(pieces, whole) << size << " bytes in pieces of " << piece;
    }
}

} // namespace
} // namespace ortc::artifact
