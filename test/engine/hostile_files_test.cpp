// Damaged and hostile data files: each is refused with the message that is written here, and nothing else happens.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "test/engine/data_files.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

namespace {

struct Case {
  const char *name; ///< of the test
  const char *file; ///< its ending tells the reader
  std::string bytes;
  const char *message; ///< after "FILE: "
};

void PrintTo(const Case &value, std::ostream *out) { *out << value.name; }

std::string zipOf(const std::string &content, int method = 0) { return zip({{"x.npy", content, method}}); }

/// A good array that damage is done to.
std::string good() { return npyOf("<f4", "(2, 2)", std::string(16, '\1')); }

std::string damaged(std::string bytes, size_t at, char value) {
  bytes[at] = value;
  return bytes;
}

/// Only the end record of a zip archive.
std::string endRecord(uint16_t count, uint32_t bytes, uint32_t offset) {
  return "PK\x05\x06" + bytesOf(uint32_t(0)) + bytesOf(count) + bytesOf(count) + bytesOf(bytes) +
         bytesOf(offset) + bytesOf(uint16_t(0));
}

std::vector<Case> cases() {
  std::string zeros(1000, '\0');
  std::string deep(10000, '['), ones;
  for (int i = 0; i < 32; ++i)
    ones += ",1";
  auto entry = [](const std::string &text) {
    return safetensors("{\"x\":" + text + "}", std::string(16, '\0'));
  };
  auto bytes = [](const std::string &range) {
    return "{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":" + range + "}";
  };
  auto pair = [&](const std::string &x, const std::string &y) {
    return safetensors("{\"x\":" + bytes(x) + ",\"y\":" + bytes(y) + "}", std::string(16, '\0'));
  };
  auto metadata = [](const std::string &text) { return safetensors("{\"__metadata__\":" + text + "}", ""); };
  std::vector<Case> list = {
      {"MetadataList", "a.safetensors", metadata("[\"a\"]"),
       "has a '__metadata__' in its header that is no JSON object of strings"},
      {"MetadataNumber", "a.safetensors", metadata("{\"a\":1}"),
       "has the key 'a' in the '__metadata__' of its header, which is no string"},
      // zip
      {"Empty", "a.npz", "", "is empty; an npz file was expected"},
      {"NotZip", "a.npz", zeros, "is no npz file or is truncated: it has no zip end record"},
      {"ZipCutShort", "a.npz", zipOf(good()).substr(0, 60),
       "is no npz file or is truncated: it has no zip end record"},
      {"DirectoryOutside", "a.npz", endRecord(1, 100, 4000000),
       "has its directory at byte 4000000 with 100 bytes, outside the file of 22"},
      {"DirectoryTooManyMembers", "a.npz", std::string(100, 'x') + endRecord(9, 100, 0),
       "claims 9 members but its directory of 100 bytes has room for 2"},
      {"DirectoryDamaged", "a.npz", std::string(100, 'x') + endRecord(1, 100, 0),
       "has a damaged directory at member 0"},
      {"Zip64WithoutLocator", "a.npz", std::string(100, 'x') + endRecord(0xffff, 100, 0),
       "has no zip64 locator although its end record asks for one"},
      {"Zip64LocatorOutside", "a.npz",
       "PK\x06\x07" + bytesOf(uint32_t(0)) + bytesOf(~uint64_t(0)) + bytesOf(uint32_t(1)) +
           endRecord(0xffff, 0, 0),
       "has no zip64 end record at byte 18446744073709551615"},
      {"MemberOutside", "a.npz", zip({{.name = "x.npy", .content = good(), .offset = 99999}}),
       "member 'x.npy' lies at byte 99999 with 86 bytes, outside the file of 194"},
      {"MemberTooLong", "a.npz",
       zip({{.name = "x.npy", .content = good(), .compressed = 4000, .uncompressed = 4000}}),
       "member 'x.npy' lies at byte 0 with 4000 bytes, outside the file of 194"},
      {"MemberWithoutZip64Sizes", "a.npz",
       zip({{.name = "x.npy", .content = good(), .uncompressed = 0xffffffff}}),
       "member 'x.npy' has no complete zip64 sizes"},
      {"MemberTwice", "a.npz", zip({{"x.npy", good()}, {"x.npy", good()}}), "has the array 'x' twice"},
      {"Encrypted", "a.npz", zip({{.name = "x.npy", .content = good(), .flags = 1}}),
       "array 'x': is encrypted"},
      {"UnknownMethod", "a.npz", zip({{.name = "x.npy", .content = good(), .method = 12}}),
       "array 'x': is compressed by zip method 12 but only stored (0) and deflated (8) are read; write it "
       "with "
       "numpy.savez_compressed"},
      {"LocalHeaderDamaged", "a.npz", damaged(zipOf(good()), 0, 'X'),
       "array 'x': has no local header at byte 0"},
      {"LocalNameTooLong", "a.npz", damaged(zipOf(good()), 27, '\1'),
       "array 'x': needs 86 bytes from byte 291 but the file has 194"},
      {"StoredSizesDiffer", "a.npz", zip({{.name = "x.npy", .content = good(), .uncompressed = 85}}),
       "array 'x': is stored but has sizes 86 and 85"},
      {"Bomb", "a.npz", zip({{.name = "x.npy", .content = good(), .method = 8, .uncompressed = 0xf0000000}}),
       "array 'x': claims 4026531840 bytes, more than its 70 compressed bytes can hold"},
      {"InflatesToLess", "a.npz",
       zip({{.name = "x.npy", .content = good(), .method = 8, .uncompressed = 90}}),
       "array 'x': inflates to 86 bytes instead of 90"},
      {"InflatesToMore", "a.npz",
       zip({{.name = "x.npy", .content = good(), .method = 8, .uncompressed = 80}}),
       "array 'x': inflates to more than 80 bytes"},
      {"DeflatedCutShort", "a.npz",
       zip({{.name = "x.npy", .content = good(), .method = 8, .compressed = 20}}),
       "array 'x': ends in the middle of its compressed data"},
      {"DeflatedDamaged", "a.npz", damaged(zipOf(good(), 8), 35, '\7'),
       "array 'x': has damaged compressed data (invalid block type)"},
      {"CrcDiffers", "a.npz", zip({{.name = "x.npy", .content = good(), .crc = 1}}),
       "array 'x': is damaged: its CRC-32 does not match"},
      // npy
      {"NpyEmpty", "a.npz", zipOf(""), "array 'x': is no npy array: its first bytes are not '\\x93NUMPY'"},
      {"NpyVersion", "a.npz", zipOf(damaged(good(), 6, '\4')),
       "array 'x': has npy version 4.0 but 1 to 3 are read; save it with numpy.savez"},
      {"NpyHeaderOutside", "a.npz", zipOf(damaged(good(), 9, '\x7f')),
       "array 'x': has a header of 32572 bytes but only 76 bytes follow"},
      {"NpyTooShort", "a.npz", zipOf(npyOf("<f4", "(2, 3)", std::string(16, '\0'))),
       "array 'x': has shape [2, 3] of float32, which is 24 bytes, but holds 16"},
      {"NpyTooLong", "a.npz", zipOf(npyOf("<f4", "(3,)", std::string(16, '\0'))),
       "array 'x': has shape [3] of float32, which is 12 bytes, but holds 16"},
      {"NpyOverflow", "a.npz", zipOf(npyOf("<f4", "(4611686018427387904, 4)", "")),
       "array 'x': has shape [4611686018427387904, 4], whose size overflows"},
      {"NpySizeTooLarge", "a.npz", zipOf(npyOf("<f4", "(99999999999999999999,)", "")),
       "array 'x': the shape is not a tuple of at most 32 whole numbers"},
      {"NpyNegative", "a.npz", zipOf(npyOf("<f4", "(-1,)", "")),
       "array 'x': the shape is not a tuple of at most 32 whole numbers"},
      {"NpyStructured", "a.npz",
       zipOf(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "abcd")),
       "array 'x': the type is not a plain string; structured arrays are not read"},
      {"NpyComplex", "a.npz", zipOf(npyOf("<c8", "(1,)", "12345678")),
       "array 'x': has elements of type '<c8' but only bool, integers and float16 to float64 are read; "
       "convert it with "
       "numpy's astype"},
      {"NpyNoDict", "a.npz", zipOf(npy("[]", "")), "array 'x': the header does not begin with '{'"},
      {"NpyNoShape", "a.npz", zipOf(npy("{'descr': '<f4', 'fortran_order': False}", "")),
       "array 'x': the header has no key 'shape'"},
      {"NpyKeyTwice", "a.npz", zipOf(npy("{'descr': '<f4', 'descr': '<f4'}", "")),
       "array 'x': the header has the key 'descr' twice"},
      {"NpyUnknownKey", "a.npz", zipOf(npy("{'code': 1}", "")),
       "array 'x': the header has an unknown key 'code'"},
      {"NpyUnended", "a.npz", zipOf(npy("{'descr': '<f4", "")),
       "array 'x': the type is not a plain string; structured arrays are not read"},
      {"NpyGoesOn", "a.npz", zipOf(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0,)} x", "")),
       "array 'x': the header goes on after '}'"},
      // safetensors
      {"SafetensorsShort", "a.safetensors", "1234", "is no safetensors file: it has 4 bytes"},
      {"SafetensorsHeaderOutside", "a.safetensors", bytesOf(uint64_t(1) << 62) + "{}",
       "claims a header of 4611686018427387904 bytes but 2 follow and 100000000 are allowed"},
      {"SafetensorsNoJson", "a.safetensors", safetensors("{\"x\":", ""),
       "has a header that is no JSON object of arrays"},
      {"SafetensorsDeep", "a.safetensors", safetensors("{\"x\":" + deep, ""),
       "has a header that is no JSON object of arrays"},
      {"SafetensorsHeaderTooLong", "a.safetensors",
       bytesOf(uint64_t(100000001)) + std::string(100000001, ' '),
       "claims a header of 100000001 bytes but 100000001 follow and 100000000 are allowed"},
      {"SafetensorsHeaderCut", "a.safetensors", safetensors("{}", "").substr(0, 9),
       "claims a header of 2 bytes but 1 follow and 100000000 are allowed"},
      {"SafetensorsNested", "a.safetensors", entry("{\"a\":{\"a\":{\"a\":{\"a\":{}}}}}"),
       "has a header that is no JSON object of arrays"},
      {"SafetensorsThreeOffsets", "a.safetensors",
       entry("{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16,16]}"),
       "array 'x': its entry needs dtype, shape and two data_offsets"},
      {"SafetensorsRank", "a.safetensors",
       entry("{\"dtype\":\"F32\",\"shape\":[4" + ones + "],\"data_offsets\":[0,16]}"),
       "array 'x': its shape is not a list of at most 32 whole numbers"},
      {"SafetensorsNoOffsets", "a.safetensors", entry("{\"dtype\":\"F32\",\"shape\":[4]}"),
       "array 'x': its entry needs dtype, shape and two data_offsets"},
      {"SafetensorsOutside", "a.safetensors",
       entry("{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]}"),
       "array 'x': lies at [0, 20) of 16 bytes of data"},
      {"SafetensorsBackwards", "a.safetensors",
       entry("{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,4]}"),
       "array 'x': lies at [8, 4) of 16 bytes of data"},
      {"SafetensorsNegative", "a.safetensors",
       entry("{\"dtype\":\"F32\",\"shape\":[-4],\"data_offsets\":[0,16]}"),
       "array 'x': its shape is not a list of at most 32 whole numbers"},
      {"SafetensorsSize", "a.safetensors", entry("{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,16]}"),
       "array 'x': has shape [3] of float32, which is 12 bytes, but holds 16"},
      {"SafetensorsOverflow", "a.safetensors",
       entry("{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,16]}"),
       "array 'x': has shape [4294967296, 4294967296], whose size overflows"},
      {"SafetensorsType", "a.safetensors",
       entry("{\"dtype\":\"F8_E4M3\",\"shape\":[16],\"data_offsets\":[0,16]}"),
       "array 'x': has elements of type 'F8_E4M3', which is not read; convert it to F32 or I64"},
      // All bytes belong to one array each.
      {"SafetensorsOverlap", "a.safetensors", pair("[0,8]", "[4,16]"),
       "arrays 'x' and 'y' overlap at byte 4 of the data"},
      {"SafetensorsSameBytes", "a.safetensors", pair("[8,16]", "[8,16]"),
       "bytes [0, 8) of the data belong to no array"},
      {"SafetensorsInside", "a.safetensors", pair("[4,8]", "[0,16]"),
       "arrays 'y' and 'x' overlap at byte 4 of the data"},
      {"SafetensorsHole", "a.safetensors", pair("[0,4]", "[12,16]"),
       "bytes [4, 12) of the data belong to no array"},
      {"SafetensorsHoleAtTheEnd", "a.safetensors", pair("[8,12]", "[0,8]"),
       "bytes [12, 16) of the data belong to no array"},
      {"SafetensorsNoArrays", "a.safetensors", safetensors("{}", "abcd"),
       "bytes [0, 4) of the data belong to no array"},
      {"SafetensorsArrayTwice", "a.safetensors",
       safetensors("{\"x\":" + bytes("[0,8]") + ",\"x\":" + bytes("[8,16]") + "}", std::string(16, '\0')),
       "has the key 'x' twice in its header"},
      {"SafetensorsFieldTwice", "a.safetensors",
       entry("{\"dtype\":\"U8\",\"shape\":[16],\"dtype\":\"F32\",\"data_offsets\":[0,16]}"),
       "has the key 'dtype' twice in its header"},
      {"SafetensorsMetadataTwice", "a.safetensors",
       safetensors(R"({"__metadata__":{"a":"1","b":"2","a":"3"}})", ""),
       "has the key 'a' twice in its header"},
      // IDX
      {"IdxType", "a-idx", std::string("\0\0\7\1", 4) + big32(1) + "x",
       "is no IDX file: it does not begin with two zero bytes and a type"},
      {"IdxRank", "a-idx", std::string("\0\0\x08\xff", 4) + zeros, "has 255 dimensions but 1 to 8 are read"},
      {"IdxCutInHeader", "a-idx", std::string("\0\0\x08\3", 4) + big32(1),
       "is truncated in its header: 8 bytes"},
      {"IdxTooShort", "a-idx", std::string("\0\0\x08\2", 4) + big32(3) + big32(4) + "abc",
       "has shape [3, 4] of uint8, which is 12 bytes, but holds 3"},
      {"IdxOverflow", "a-idx", std::string("\0\0\x0e\3", 4) + big32(~0u) + big32(~0u) + big32(~0u),
       "has shape [4294967295, 4294967295, 4294967295], whose size overflows"},
      {"IdxBomb", "a-idx.gz", gzipOf(std::string("\0\0\x08\2", 4) + big32(1u << 30) + big32(1)),
       "has shape [1073741824, 1], more than its 28 compressed bytes can hold"},
      {"IdxGzipCutShort", "a-idx.gz", gzipOf(std::string("\0\0\x08\1", 4) + big32(4) + "abcd").substr(0, 14),
       "ends in the middle of its compressed data"},
      // neither
      {"Unknown", "a.txt", "1,2,3\n", "is neither npz nor safetensors nor IDX, and no .npy, .csv or .tar"},
      {"UnknownEmpty", "a.bin", "", "is neither npz nor safetensors nor IDX, and no .npy, .csv or .tar"},
  };
  return list;
}

class HostileFileTest : public testing::TestWithParam<Case> {};

} // namespace

TEST_P(HostileFileTest, IsRefusedWithItsMessage) {
  TemporaryFolder folder;
  std::string path = folder.write(GetParam().file, GetParam().bytes);
  std::unique_ptr<DataSource> source;
  Status status = openData(path, source);
  Array array;
  if (status.isOk())
    status = source->load("x", array);
  EXPECT_EQ(status.getCode(), ExitCode::Failed);
  EXPECT_EQ(status.getMessage(), path + ": " + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(All, HostileFileTest, testing::ValuesIn(cases()),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(HostileFileTest, NamesAFileThatIsNotThere) {
  std::unique_ptr<DataSource> source;
  EXPECT_EQ(openData("/no/such/file.npz", source).getMessage(),
            "/no/such/file.npz: cannot be opened: No such file or directory");
}

TEST(HostileFileTest, NamesAFolder) {
  TemporaryFolder folder;
  std::unique_ptr<DataSource> source;
  EXPECT_EQ(openNpz(folder / "", source).getMessage(), folder / "" + ": is not a regular file");
}

TEST(HostileFileTest, SurvivesEveryTruncationAndEveryFlippedByte) {
  TemporaryFolder folder;
  std::string file = zipOf(npyOf("<i8", "(3, 2)", std::string(48, '\3')), 8);
  for (size_t i = 0; i < file.size(); ++i) {
    for (const std::string &bytes : {file.substr(0, i), damaged(file, i, char(~file[i]))}) {
      std::unique_ptr<DataSource> source;
      Array array;
      if (openData(folder.write("a.npz", bytes), source).isOk())
        for (const std::string &name : source->getNames())
          (void)(source->describe(name, array).isOk() && source->load(name, array).isOk());
    }
  }
}
