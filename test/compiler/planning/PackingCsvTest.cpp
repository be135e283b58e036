// MiniMalloc's CSV both ways, and hostile files with the message they get.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/planning/Packings.h"

#include "compiler/planning/csv/PackingCsv.h"

#include <gtest/gtest.h>

namespace ortc::planning {
namespace {

/// What is written for what was read.
std::string rewrite(std::string_view text) {
  Expected<PackingFile> read = readPacking(text);
  return read ? writePacking(*read) : read.getStatus().getMessage();
}

TEST(PackingCsvTest, ReadsColumnsInAnyOrder) {
  Expected<PackingFile> read =
      readPacking("size,id,lower,upper,alignment,offset\n8,a,0,3,4,16\n4,b,2,5,1,\n");
  ASSERT_TRUE(read) << read.getStatus().getMessage();
  EXPECT_EQ(read->ids, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read->problem.items[0].fixed, 16u);
  EXPECT_EQ(read->problem.items[1].fixed, kAnywhere);
  EXPECT_EQ(read->problem.items[0].alignment, 4u);
  EXPECT_EQ(read->problem.items[1].pieces[0].end, 5u);
  EXPECT_EQ(read->problem.sections, 5u);
  EXPECT_EQ(writePacking(*read, {16, 0}),
            "id,lower,upper,size,alignment,offset\na,0,3,8,4,16\nb,2,5,4,1,0\n");
}

TEST(PackingCsvTest, EndsAreInclusiveInGapsToo) {
  EXPECT_EQ(rewrite("buffer_id,start,end,size,gaps\nx,0,9,8,3-4\n"),
            "id,lower,upper,size,gaps\nx,0,10,8,3-5\n");
  EXPECT_EQ(rewrite("buffer,begin,upper,size\nx,0,9,8\n"), "id,lower,upper,size\nx,0,9,8\n");
}

TEST(PackingCsvTest, GapsCutTheLifetime) {
  Expected<PackingFile> read = readPacking("id,lower,upper,size,gaps\nx,0,20,8,12-16@2:5 4-6\n");
  ASSERT_TRUE(read) << read.getStatus().getMessage();
  const std::vector<Piece> &pieces = read->problem.items[0].pieces;
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[1].begin, 6u);
  EXPECT_EQ(pieces[2].begin, 12u);
  EXPECT_EQ(pieces[2].low, 2u);
  EXPECT_EQ(pieces[2].size, 3u);
  EXPECT_EQ(writePacking(*read), "id,lower,upper,size,gaps\nx,0,20,8,4-6 12-16@2:5\n");
}

TEST(PackingCsvTest, GapsAtTheEndsKeepTheLifetime) {
  const char *text = "id,lower,upper,size,gaps\nx,0,20,8,0-3 19-20\ny,0,20,8,\n";
  EXPECT_EQ(rewrite(text), text);
}

TEST(PackingCsvTest, HintsAndPools) {
  EXPECT_EQ(rewrite("id,lower,upper,size,hint,pool,comment\na,0,2,8,64,1,x\nb,0,2,8,-1,,y\nc,0,2,8,,0,z\n"),
            "id,lower,upper,size,hint,pool\na,0,2,8,64,1\nb,0,2,8,-1,0\nc,0,2,8,-1,0\n");
}

TEST(PackingCsvTest, FixedOffsetsOfTwoPoolsMayBeEqual) {
  EXPECT_EQ(rewrite("id,lower,upper,size,pool,offset\na,0,2,8,1,0\nb,0,2,8,2,0\n"),
            "id,lower,upper,size,pool,offset\na,0,2,8,1,0\nb,0,2,8,2,0\n");
}

TEST(PackingCsvTest, ChainsOfFallingSizeAreWindows) {
  PackingFile file;
  file.problem.sections = 6;
  file.problem.items = {{{{0, 2, 8}, {2, 6, 3}}, 1}};
  std::string text = writePacking(file);
  EXPECT_EQ(text, "id,lower,upper,size,gaps\n0,0,6,8,2-6@0:3\n");
  EXPECT_EQ(rewrite(text), text);
}

TEST(PackingCsvTest, RandomProblemsSurviveTheRoundTrip) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::PackingFeatures features{seed % 2 == 0, seed % 3 == 0, seed % 5 != 0, seed % 7 != 0};
    PackingFile file;
    file.problem = test::randomPacking(seed, 1 + seed % 12, 10, features);
    std::string text = writePacking(file);
    Expected<PackingFile> read = readPacking(text);
    ASSERT_TRUE(read) << read.getStatus().getMessage() << "\n" << text;
    EXPECT_EQ(writePacking(*read), text);
    for (size_t i = 0; i < file.problem.items.size(); ++i) {
      EXPECT_EQ(read->problem.items[i].fixed, file.problem.items[i].fixed);
      EXPECT_EQ(read->problem.items[i].pieces.size(), file.problem.items[i].pieces.size());
    }
  }
}

TEST(PackingCsvTest, DamagedFilesNeverCrash) {
  std::mt19937 random(5);
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    PackingFile file;
    file.problem = test::randomPacking(seed, 4, 6, {true, true, true, true});
    std::string text = writePacking(file);
    for (uint32_t i = test::draw(random, 1, 4); i > 0; --i)
      text[random() % text.size()] = "0123456789,-@: \n\"ax"[random() % 20];
    Expected<PackingFile> read = readPacking(text);
    if (!read || read->problem.sections > 100'000)
      continue;
    PackingOptions options;
    options.work = options.exactWork = 10'000;
    Packing packing = pack(read->problem, options);
    Status status = validatePacking(read->problem, packing.offsets, packing.height);
    EXPECT_TRUE(!read->pools.empty() || status.isOk()) << text << status.getMessage();
  }
}

struct Hostile {
  const char *name, *text, *message;
};

void PrintTo(const Hostile &hostile, std::ostream *out) { *out << hostile.name; }

class HostilePackingTest : public testing::TestWithParam<Hostile> {};

TEST_P(HostilePackingTest, IsRefused) {
  Expected<PackingFile> read = readPacking(GetParam().text);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.getStatus().getMessage(), GetParam().message);
}

#define HEAD "id,lower,upper,size"
INSTANTIATE_TEST_SUITE_P(
    PackingCsv, HostilePackingTest,
    testing::Values(
        Hostile{"Empty", "", "line 1: the file is empty"},
        Hostile{"NoSize", "id,lower,upper\n", "line 1: the header has no column 'size'"},
        Hostile{"ColumnTwice", HEAD ",start\n", "line 1: column 'start' is there twice"},
        Hostile{"Width", HEAD "\n1,2\n", "line 2: there are 2 fields but the header has 4"},
        Hostile{"Negative", HEAD "\n1,-5,5,8\n", "line 2: lower '-5' is not a number"},
        Hostile{"Backwards", HEAD "\n1,5,5,8\n", "line 2: the buffer ends at 5, not after it begins at 5"},
        Hostile{"NoBytes", HEAD "\n1,5,6,0\n", "line 2: the buffer has no bytes"},
        Hostile{"Alignment", HEAD ",alignment\n1,5,6,8,3\n", "line 2: alignment 3 is not a power of two"},
        Hostile{"AlignmentTooLarge", HEAD ",alignment\n1,5,6,8,2097152\n",
                "line 2: alignment 2097152 is above 1048576"},
        Hostile{"OffsetMisaligned", HEAD ",alignment,offset\n1,5,6,8,4,6\n",
                "line 2: offset 6 breaks the alignment of 4"},
        Hostile{"Overflow", HEAD "\n1,0,1,4611686018427387904\n2,0,1,1\n",
                "line 3: the sum of all sizes is above 4611686018427387904"},
        Hostile{"SizeTooLarge", HEAD "\n1,0,1,18446744073709551615\n",
                "line 2: size 18446744073709551615 is above 4611686018427387904"},
        Hostile{"OffsetTooLarge", HEAD ",offset\n1,0,1,8,4611686018427387904\n",
                "the sum of all sizes on top of the highest offset, 4611686018427387904, is above "
                "4611686018427387904"},
        Hostile{"LateTime", HEAD "\n1,0,99999999999,1\n", "line 2: upper 99999999999 is above 4294967294"},
        Hostile{"LateInclusiveTime", "id,start,end,size\n1,0,4294967294,1\n",
                "line 2: upper 4294967294 is above 4294967293"},
        Hostile{"LongNumber", HEAD "\n1,0,11111111111111111111111111111111111111111111111111111111111,1\n",
                "line 2: upper 1111111111111111111111111111111111111111 is above 4294967294"},
        Hostile{"GapWithoutEnd", HEAD ",gaps\n1,0,9,8,4\n",
                "line 2: gap '4' is not of the form FROM-TO or FROM-TO@LOW:HIGH"},
        Hostile{"GapWithoutWindow", HEAD ",gaps\n1,0,9,8,4-5@1\n",
                "line 2: gap '4-5@1' is not of the form FROM-TO or FROM-TO@LOW:HIGH"},
        Hostile{"GapOutside", HEAD ",gaps\n1,2,9,8,1-3\n",
                "line 2: gap '1-3' is empty or not within the lifetime of the buffer"},
        Hostile{"GapEmpty", HEAD ",gaps\n1,2,9,8,4-4\n",
                "line 2: gap '4-4' is empty or not within the lifetime of the buffer"},
        Hostile{"WindowOutside", HEAD ",gaps\n1,2,9,8,4-5@2:9\n",
                "line 2: gap '4-5@2:9' has a window that is empty or not within the 8 bytes of the buffer"},
        Hostile{"GapsOverlap", HEAD ",gaps\n1,2,9,8,4-6 5-7\n", "line 2: two gaps overlap at time 5"},
        Hostile{"OnlyGaps", HEAD ",gaps\n1,2,9,8,2-9\n",
                "line 2: the gaps leave no time at which the buffer has its 8 bytes"},
        Hostile{"Hint", HEAD ",hint\n1,2,9,8,-2\n", "line 2: hint '-2' is not a number"},
        Hostile{"FixedOverlap", HEAD ",offset\n1,0,3,8,0\n2,2,9,8,7\n",
                "items 0 and 1 have fixed offsets at which they overlap at time 2"},
        Hostile{"FixedOverlapInPool", HEAD ",offset,pool\n0,0,3,8,0,0\n1,0,3,8,0,7\n2,2,9,8,7,7\n",
                "pool 7: items 0 and 1 have fixed offsets at which they overlap at time 2"}),
    [](const testing::TestParamInfo<Hostile> &info) { return std::string(info.param.name); });

} // namespace
} // namespace ortc::planning
