// npy files, CSV and tar as data: what is read, and what is refused with which message.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "engine/data/batches.h"
#include "test/engine/cases.h"
#include "test/engine/data_files.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

namespace {

class FormatsTest : public testing::Test {
protected:
  std::unique_ptr<DataSource> open(const std::string &text) {
    std::unique_ptr<DataSource> source;
    Status status = openData(text, source);
    EXPECT_TRUE(status.isOk()) << status.getMessage();
    return source;
  }
  /// Type, shape and numbers of an array.
  static std::string show(const DataSource &source, const std::string &name) {
    Array array, described;
    Status status = source.describe(name, described);
    if (status.isOk())
      status = source.load(name, array);
    if (!status.isOk())
      return status.getMessage();
    EXPECT_EQ(described.type, array.type);
    EXPECT_EQ(described.shape, array.shape);
    EXPECT_EQ(described.bytes, array.bytes);
    std::string text = std::string(getTypeName(array.type)) + formatShape(array.shape);
    int64_t count = 0;
    EXPECT_TRUE(countElements(array.shape, count));
    for (int64_t i = 0; i < count; ++i)
      text += (i ? ", " : " ") + formatNumber(elementOf(array, i));
    return text;
  }
  static std::string formatNumber(double value) {
    std::ostringstream text;
    text << value;
    return text.str();
  }
  /// The message without the folder.
  std::string refuse(const std::string &text, const std::string &array = "") {
    std::unique_ptr<DataSource> source;
    Status status = openData(text, source);
    if (status.isOk() && !array.empty()) {
      Array loaded;
      status = source->load(array, loaded);
    }
    std::string message = status.getMessage(), place = folder / "";
    for (size_t at; (at = message.find(place)) != std::string::npos;)
      message.erase(at, place.size());
    return message;
  }
  TemporaryFolder folder;
};

std::string pixels(float a, float b) { return npyOf("<f4", "(2,)", bytesOf(std::vector<float>{a, b})); }
std::string label(int64_t value) { return npyOf("<i8", "()", bytesOf(value)); }

std::vector<TarMember> samples() {
  return {{"data/", "", '5'},
          {"data/0001.x.npy", pixels(1, 2)},
          {"data/0001.label.npy", label(7)},
          {"data/0001.json", "{}"},
          {"0002.label.npy", label(8), '0', "data"},
          {"0002.x.npy", pixels(3, 4), '0', "data"}};
}

} // namespace

TEST_F(FormatsTest, NpyFilesAreColumns) {
  folder.write("x.npy", npyOf("<f4", "(2, 1)", bytesOf(std::vector<float>{1, 2})));
  folder.write("big.npy", npyOf(">i2", "(2,)", std::string("\0\1\1\0", 4)));
  EXPECT_EQ(show(*open(folder / "x.npy"), "x"), "float32[2, 1] 1, 2");
  EXPECT_EQ(show(*open(folder / "x.npy," + "label=" + folder / "big.npy"), "label"), "int16[2] 1, 256");
  EXPECT_EQ(open(folder / "x.npy," + folder / "big.npy")->getNames(), (std::vector<std::string>{"x", "big"}));
  EXPECT_EQ(refuse(folder / "x.npy,x=" + folder / "big.npy"),
            "big.npy: is the second file of an array 'x'; name them: NAME=FILE.npy, and shards of an array "
            "by a pattern");
  folder.write("cut.npy", npyOf("<f4", "(2, 1)", bytesOf(1.0f)));
  EXPECT_EQ(refuse(folder / "cut.npy"),
            "cut.npy: has shape [2, 1] of float32, which is 8 bytes, but holds 4");
  folder.write("cut.npy", "\x93NUMPY");
  EXPECT_EQ(refuse(folder / "cut.npy"), "cut.npy: is no npy array: its first bytes are not '\\x93NUMPY'");
}

TEST_F(FormatsTest, NpyFilesOfPatternsAreShards) {
  for (int i = 0; i < 2; ++i) {
    folder.write("x" + std::to_string(i) + ".npy", npyOf("|u1", "(2,)", std::string(2, char(i))));
    folder.write("l" + std::to_string(i) + ".npy", npyOf("|u1", "(2,)", std::string(2, char(i + 5))));
  }
  std::unique_ptr<DataSource> source = open("x=" + folder / "x*.npy,label=" + folder / "l*.npy");
  Batches batches;
  std::vector<std::string> notes;
  ASSERT_TRUE(
      Batches::create(*source,
                      {{"x", DataType::UInt8, {4}, false, true}, {"label", DataType::UInt8, {4}, true, true}},
                      Remainder::Drop, batches, notes)
          .isOk());
  std::string bytes(4, 'x');
  ASSERT_TRUE(batches.gather(1, 0, nullptr, reinterpret_cast<uint8_t *>(bytes.data())).isOk());
  EXPECT_EQ(bytes, (std::string{5, 5, 6, 6}));
}

TEST_F(FormatsTest, CsvColumnsAreArrays) {
  std::string path =
      folder.write("a.csv", "\xef\xbb\xbf\"x[1]\",label,x[0],w\r\n 2 , 1,\"1\",1\r\n\r\n+4.5,-7,3e0,2");
  std::unique_ptr<DataSource> source = open(path);
  EXPECT_EQ(source->getNames(), (std::vector<std::string>{"x", "label", "w"}));
  EXPECT_EQ(show(*source, "x"), "float64[2, 2] 1, 2, 3, 4.5");
  EXPECT_EQ(show(*source, "label"), "int64[2] 1, -7");
  Array label;
  ASSERT_TRUE(source->load("label", label).isOk());
  EXPECT_EQ(label.findLine(0), 2u);
  EXPECT_EQ(label.findLine(1), 4u) << "line 3 is empty";
  EXPECT_EQ(show(*open(path + "?label=label&f=*"), "f"), "float64[2, 3] 2, 1, 1, 4.5, 3, 2");
  EXPECT_EQ(show(*open(path + "?y=w,label&label=label"), "y"), "int64[2, 2] 1, 1, 2, -7");
  EXPECT_EQ(open(path + "?label=label&f=w")->getNames(), (std::vector<std::string>{"label", "f"}));
}

TEST_F(FormatsTest, CsvIsRefusedWithLineAndColumn) {
  auto of = [&](const std::string &text, const std::string &options = "", const std::string &array = "x") {
    folder.write("a.csv", text);
    std::string message = refuse(folder / "a.csv" + options, array);
    return message.empty() ? "" : message.substr(message.find(": ") + 2);
  };
  EXPECT_EQ(of(""), "is empty; its first line must name the columns");
  EXPECT_EQ(of("x,y\n1,2\n3,red\n", "", "y"), "line 3, column 'y': 'red' is no number");
  EXPECT_EQ(of("x,y\n1,2\n3,red\n"), "") << "nobody asks for y";
  EXPECT_EQ(of("x,y\n,2\n"), "line 2, column 'x': '' is no number");
  EXPECT_EQ(of("x\n1 2\n"), "line 2, column 'x': '1 2' is no number");
  EXPECT_EQ(of("x,y\n1,2\n3\n"), "line 3 has 1 field but the header has 2");
  EXPECT_EQ(of("x,y\n1,2,3\n"), "line 2 has 3 fields but the header has 2");
  EXPECT_EQ(of("x,x\n1,2\n"), "line 1 names the column 'x' twice");
  const std::string longName(1000, 'n'), cut = "'" + std::string(40, 'n') + "...'";
  EXPECT_EQ(of(longName + "," + longName + "\n1,2\n"), "line 1 names the column " + cut + " twice");
  EXPECT_EQ(of("x," + longName + "\n1,2\n", "?x=z"), "has no column 'z' for 'x'; it has 'x', " + cut);
  EXPECT_EQ(of("x,\n1,2\n"), "line 1 has no name for column 2");
  EXPECT_EQ(of("x\n\"1\n2\"\n"),
            "line 2 has a quote that does not end in front of a comma or the line's end");
  EXPECT_EQ(of("x[0],x[2]\n1,2\n"), "line 1 has the column 'x[2]' but no 'x[1]'");
  EXPECT_EQ(of("x[0],x[00]\n1,2\n"), "line 1 has the column 0 of 'x' twice");
  EXPECT_EQ(of("x[0],x\n1,2\n"), "line 1 has columns 'x' and 'x[...]', which would be one array");
  EXPECT_EQ(of("a,b\n1,2\n", "?x=c"), "has no column 'c' for 'x'; it has 'a', 'b'");
  EXPECT_EQ(of("a,b\n1,2\n", "?x=*&y=*"), "'x' and 'y' both ask for the column 'a' by a pattern");
  EXPECT_EQ(of("a\n1\n", "?y=a&x=*"), "has no column left for 'x'");
}

TEST_F(FormatsTest, CsvColumnsByPatternAndWithoutSome) {
  const std::string path =
      folder.write("p.csv", "id,p0,p1,q0,p10,label,a*b\nrow0,1,2,3,4,5,6\nrow1,7,8,9,10,11,12\n");
  auto of = [&](const std::string &options, const std::string &array = "x") {
    return show(*open(path + "?" + options), array);
  };
  EXPECT_EQ(of("x=p*"), "int64[2, 3] 1, 2, 4, 7, 8, 10");
  EXPECT_EQ(of("x=p*,-p1"), "int64[2, 2] 1, 4, 7, 10");
  EXPECT_EQ(of("x=*,-id,-label"), "int64[2, 5] 1, 2, 3, 4, 6, 7, 8, 9, 10, 12");
  EXPECT_EQ(of("x=*,-id,-p*&y=label"), "int64[2, 2] 3, 6, 9, 12");
  EXPECT_EQ(of("x=*0"), "int64[2, 3] 1, 3, 4, 7, 9, 10");
  EXPECT_EQ(of("x=p*0&y=p10"), "int64[2, 1] 1, 7")
      << "a name goes before a pattern, and a pattern makes rows";
  EXPECT_EQ(of("x=a*b"), "int64[2] 6, 12") << "and so it does before one that it looks like";
  EXPECT_EQ(of("x=q0,p*,q0"), "int64[2, 4] 3, 1, 2, 4, 9, 7, 8, 10");
  auto refused = [&](const std::string &options) {
    std::unique_ptr<DataSource> source;
    Status status = openData(path + "?" + options, source);
    return status.getMessage().substr(path.size() + 2);
  };
  EXPECT_EQ(refused("x=r*"),
            "has no column 'r*' for 'x'; it has 'id', 'p0', 'p1', 'q0', 'p10', 'label', 'a*b'");
  EXPECT_EQ(refused("x=labal"), "has no column 'labal' for 'x'; it has 'id', 'p0', 'p1', 'q0', 'p10', "
                                "'label', 'a*b'; did you mean 'label'?");
  EXPECT_EQ(refused("x=p0,-p*"), "has no column left for 'x'");
}

/// Spreadsheets write whole numbers with a point.
TEST_F(FormatsTest, CsvLabelsMayHaveAPoint) {
  auto create = [&](const std::string &text, DataType type, Batches &batches) {
    std::vector<std::string> notes;
    return Batches::create(*open(folder.write("l.csv", text)), {{"label", type, {2}, true, true}},
                           Remainder::Drop, batches, notes);
  };
  Batches batches;
  ASSERT_TRUE(create("label\n1.0\n-3.0\n", DataType::Int64, batches).isOk());
  std::vector<int64_t> labels(2);
  ASSERT_TRUE(batches.gather(0, 0, nullptr, reinterpret_cast<uint8_t *>(labels.data())).isOk());
  EXPECT_EQ(labels, (std::vector<int64_t>{1, -3}));
  const std::string where = folder / "l.csv" + ": array 'label' holds ";
  EXPECT_EQ(create("label\n1.0\n1.5\n", DataType::Int64, batches).getMessage(),
            where + "1.5 at element 1, which does not fit the graph's int64");
  for (const char *large : {"9223372036854775808.0", "-9223372036854777856.0", "nan", "inf"})
    EXPECT_NE(
        create("label\n1.0\n" + std::string(large) + "\n", DataType::Int64, batches).getMessage().find(where),
        std::string::npos)
        << large;
  EXPECT_TRUE(create("label\n1.0\n-9223372036854775808.0\n", DataType::Int64, batches).isOk());
  EXPECT_FALSE(create("label\n1.0\n256.0\n", DataType::UInt8, batches).isOk());
}

/// The line is not taken apart before its columns are counted: that took 80 bytes for each of them.
TEST_F(FormatsTest, CsvHeadersAreRefusedInLittleMemory) {
  std::string text;
  for (int i = 0; i < 30'000'000; ++i)
    text += "a,";
  const std::string path = folder.write("h.csv", text + "a\n1\n");
  text = std::string();
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_EQ(refuse(path, "x"), "h.csv: line 1 has 30000001 columns; at most 1048576 are read");
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 150 << 10) << "KiB, with the pages of the file";
  folder.write("h.csv", std::string(80 << 20, 'a') + ",b\n1,2\n");
  EXPECT_EQ(refuse(path, "x"),
            "h.csv: line 1 has 80.0 MiB, but names of columns may have at most 64.0 MiB in all");
  std::filesystem::remove(path);
}

/// What a file's text says is of no type: whole numbers in one shard alone are no other column.
TEST_F(FormatsTest, CsvShardsMayDifferInType) {
  folder.write("a0.csv", "x,label\n1,0\n2,1\n");
  folder.write("a1.csv", "x,label\n2.5,0\n3,1\n");
  Batches batches;
  std::vector<std::string> notes;
  Status status = Batches::create(
      *open(folder / "a*.csv"),
      {{"x", DataType::Float32, {4}, false, true}, {"label", DataType::Int64, {4}, true, true}},
      Remainder::Drop, batches, notes);
  ASSERT_TRUE(status.isOk()) << status.getMessage();
  std::vector<float> x(4);
  ASSERT_TRUE(batches.gather(0, 0, nullptr, reinterpret_cast<uint8_t *>(x.data())).isOk());
  EXPECT_EQ(x, (std::vector<float>{1, 2, 2.5f, 3}));
}

TEST_F(FormatsTest, TarMembersAreRows) {
  std::unique_ptr<DataSource> source = open(folder.write("a.tar", tarOf(samples())));
  EXPECT_EQ(source->getNames(), (std::vector<std::string>{"x", "label"}));
  EXPECT_EQ(show(*source, "x"), "float32[2, 2] 1, 2, 3, 4");
  EXPECT_EQ(show(*source, "label"), "int64[2] 7, 8");
  // Long names, as GNU and POSIX have them, and a size in binary.
  std::string folderName(150, 'd'), pax = "path=" + folderName + "/b.x.npy\n";
  pax = std::to_string(pax.size() + 4) + " " + pax;
  std::string big = std::string("\x80\0\0\0\0\0\0\0\0\0\0", 11) + char(pixels(0, 0).size());
  source = open(folder.write("b.tar", tarOf({{"././@LongLink", folderName + "/a.x.npy" + '\0', 'L'},
                                             {"cut", pixels(5, 6)},
                                             {"pax", pax, 'x'},
                                             {"cut", pixels(7, 8)},
                                             {"c.x.npy", pixels(9, 10), '0', "", big}})));
  EXPECT_EQ(show(*source, "x"), "float32[3, 2] 5, 6, 7, 8, 9, 10");
}

TEST_F(FormatsTest, TarIsRefusedWithTheOffset) {
  auto of = [&](const std::string &bytes, const std::string &array = "x") {
    folder.write("a.tar", bytes);
    std::string message = refuse(folder / "a.tar", array);
    return message.substr(message.find(": ") + 2);
  };
  std::string good = tarOf(samples());
  EXPECT_EQ(of(good.substr(0, 1090)),
            "is truncated: 'data/0001.x.npy' at byte 512 needs 76 bytes but 66 follow");
  EXPECT_EQ(of(good.substr(0, 1300)),
            "is truncated: it ends at byte 1300, without the block of zeros that ends an archive");
  EXPECT_EQ(of(good.substr(0, 1536)),
            "is truncated: it ends at byte 1536, without the block of zeros that ends an archive");
  EXPECT_EQ(of(tarOf(samples(), false)),
            "is truncated: it ends at byte 5632, without the block of zeros that ends an archive");
  EXPECT_EQ(of(""), "is truncated: it ends at byte 0, without the block of zeros that ends an archive");
  EXPECT_EQ(of(std::string(1024, '\0')), "has no member KEY.COLUMN.npy");
  std::string bad = good;
  bad[512] = 'D';
  EXPECT_EQ(of(bad).find("has no header of a member at byte 512: its checksum is "), 0u);
  std::vector<TarMember> list = samples();
  list.pop_back();
  EXPECT_EQ(of(tarOf(list)), "sample 'data/0002' at byte 3584 has no member 'x.npy'; the members of a sample "
                             "follow each other, and all samples have the same");
  list = samples();
  list.push_back(list.back());
  EXPECT_EQ(of(tarOf(list)), "sample 'data/0002' at byte 3584 has two members 'x.npy'; the members of a "
                             "sample follow each other, and all samples have the same");
  list = samples();
  list.push_back({"data/0002.y.npy", label(1)});
  EXPECT_EQ(of(tarOf(list)),
            "'data/0002.y.npy' at byte 5632 is of a column that the samples before it have not");
  list = samples();
  list.back().content = label(3);
  EXPECT_EQ(of(tarOf(list)),
            "'x.npy' at byte 5120 has shape [] of int64 but that of the first sample has [2] of float32");
  list.back().content = npyOf("<f4", "(2,)", "1234");
  EXPECT_EQ(of(tarOf(list)), "'x.npy' at byte 5120: has shape [2] of float32, which is 8 bytes, but holds 4");
  list.back().content = "";
  EXPECT_EQ(of(tarOf(list)), "'x.npy' at byte 5120 has 0 bytes, but the first sample's values alone take 8");
  list = samples();
  list[1].size = "9999999999 ";
  EXPECT_EQ(of(tarOf(list)).find("has a member at byte 512 whose size is no number"), 0u);
  list[1].size = std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
  EXPECT_EQ(of(tarOf(list)).find("has a member at byte 512 whose size is no number"), 0u);
  list[1].size = std::string("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12);
  EXPECT_EQ(of(tarOf(list)),
            "is truncated: 'data/0001.x.npy' at byte 512 needs 9223372036854775807 bytes but 5632 follow");
  list[1].size = "";
  list[1].type = 'S';
  EXPECT_EQ(of(tarOf(list)), "has the sparse file 'data/0001.x.npy' at byte 512, which is not read");
  EXPECT_EQ(of(tarOf({{"pax", "99 path=x\n", 'x'}})), "has a pax header at byte 0 that is damaged");
}

TEST_F(FormatsTest, OtherProgramsFilesAreNamed) {
  folder.write("a.parquet", "PAR1....");
  folder.write("b.data", "ARROW1..");
  folder.write("c.tar.gz", "\x1f\x8b..");
  EXPECT_EQ(refuse(folder / "a.parquet"),
            "a.parquet: is Parquet, which is read in Python alone; write its columns with "
            "numpy.savez, or train with ortc.Trainer");
  EXPECT_EQ(refuse(folder / "b.data"),
            "b.data: is Arrow, which is read in Python alone; write its columns with "
            "numpy.savez, or train with ortc.Trainer");
  EXPECT_EQ(refuse(folder / "c.tar.gz"),
            "c.tar.gz: is a compressed tar, which is not read; unpack it with gunzip");
  folder.write("d", "text");
  EXPECT_EQ(refuse(folder / "d"), "d: is neither npz nor safetensors nor IDX, and no .npy, .csv or .tar");
}
