// The artifact writer and reader: what goes in comes out, twice the same bytes, and mistakes are named.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/ArtifactReader.h"
#include "test/runtime/TestArtifact.h"

namespace ortc::test {
namespace {

using namespace ortc::artifact;

TEST(ArtifactTest, SurvivesARoundTrip) {
  Artifact a = makeArtifact();
  a.signature = {7, 8, 9};
  Bytes file = makeFile(a);
  Expected<ArtifactFile> read = readArtifact(file);
  ASSERT_TRUE(read) << read.getStatus().getMessage();
  const Artifact &b = read->artifact;
  ASSERT_EQ(b.tensors.size(), a.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(b.tensors[i].name, a.tensors[i].name);
    EXPECT_EQ(b.tensors[i].role, a.tensors[i].role);
    EXPECT_EQ(b.tensors[i].dtype, a.tensors[i].dtype);
    EXPECT_EQ(b.tensors[i].dims, a.tensors[i].dims);
    EXPECT_EQ(b.tensors[i].offset, a.tensors[i].offset);
    EXPECT_EQ(b.tensors[i].owner, a.tensors[i].owner);
    EXPECT_EQ(b.tensors[i].flags, a.tensors[i].flags);
  }
  EXPECT_EQ(b.tensors[kW].strides, (std::vector<int64_t>{4, 8}));
  EXPECT_EQ(b.bindings, a.bindings);
  ASSERT_EQ(b.entries.size(), a.entries.size());
  EXPECT_EQ(b.entries[3].name, "gradients/batch");
  ASSERT_EQ(b.entries[3].internal.size(), 2u);
  EXPECT_EQ(b.entries[3].internal[1].tensor, uint32_t(kGradient));
  EXPECT_EQ(b.entries[3].internal[1].offset, 64u);
  EXPECT_EQ(b.entries[3].loss, 2u);
  EXPECT_EQ(b.constants.toBytes(), a.constants.toBytes());
  EXPECT_EQ(b.persistentBytes, 256u);
  EXPECT_EQ(b.maxWorkers, 4u);
  EXPECT_EQ(b.checkNames, a.checkNames);
  EXPECT_EQ(b.kernelNames, a.kernelNames);
  EXPECT_EQ(b.manifest, a.manifest);
  EXPECT_EQ(b.source, a.source);
  EXPECT_EQ(b.signature, a.signature);
  ASSERT_EQ(b.codes.size(), 1u);
  EXPECT_EQ(b.codes[0].bytes, a.codes[0].bytes);
  for (const SectionReport &section : read->sections)
    EXPECT_TRUE(section.ok) << section.kindName;
  EXPECT_EQ(makeFile(b), file) << "what was read gives the same file";
}

TEST(ArtifactTest, EqualInputGivesEqualBytes) {
  EXPECT_EQ(makeFile(makeArtifact()), makeFile(makeArtifact()));
}

TEST(ArtifactTest, TheZeroTailOfThePersistentImageIsNotStored) {
  Artifact a = makeArtifact();
  size_t before = makeFile(a).size();
  a.persistentBytes = 1 << 20;
  a.persistent.setSize(1 << 20);
  EXPECT_EQ(makeFile(a).size(), before);
}

TEST(ArtifactTest, TheModelsDigestKnowsNoLayout) {
  Artifact a = makeArtifact(), b = makeArtifact(), c = makeArtifact();
  b.tensors[kW].strides.clear();
  c.tensors[kW].name = "other";
  uint8_t first[32], second[32], third[32];
  modelDigest(a.tensors, first);
  modelDigest(b.tensors, second);
  modelDigest(c.tensors, third);
  EXPECT_EQ(std::memcmp(first, second, 32), 0);
  EXPECT_NE(std::memcmp(first, third, 32), 0);
}

TEST(ArtifactTest, HashesAsTheStandardSays) {
  EXPECT_EQ(sha256Hex("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256Hex("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // 56 bytes: padding takes a block
  std::string text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  EXPECT_EQ(sha256Hex(text.data(), text.size()),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  std::string million(1000000, 'a');
  EXPECT_EQ(sha256Hex(million.data(), million.size()),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Around the sizes where the processor's instructions and the second block of padding begin. Digests by
// Python's hashlib.
TEST(ArtifactTest, HashesTheSameWithTheProcessorsInstructions) {
  struct Case {
    size_t bytes;
    const char *digest;
  };
  for (auto [bytes, digest] :
       {Case{55, "86bdf1401483a3d48aa0b853de242db9073b3e9e190bd1c8073abf0eba3d3ea7"},
        {56, "3682950d356858453c48a040cf03790b27a8a5bb541df1c7b2741140f1ca041d"},
        {64, "197a5d2e6d3bc917955f5c5f4fd66bf316cb07ee58f6110a730c08c11b5563e0"},
        {4095, "fd060479f4f387d78aa0fe1fde9ecc05853818b9fa188832c7fb0702aceb2f66"},
        {4096, "66ad3905f04032782f735166f0527e4280b1d872765a55b5df2b2a73ac3248e8"},
        {4097, "f31ad9f54d37cd14100d210ee985d5b5982a1eee821a0a30d38dbb7c7048af75"},
        {100003, "6fa4ee89b2c13838264b34cae216d74578be956051e19bf9a25ace572c188639"}}) {
    std::vector<uint8_t> data(bytes);
    for (size_t i = 0; i < bytes; ++i)
      data[i] = static_cast<uint8_t>(i * 131 + bytes);
    EXPECT_EQ(sha256Hex(data.data(), bytes), digest) << bytes << " bytes";
  }
}

struct Mistake {
  const char *name;
  void (*make)(Artifact &);
  const char *error;
};

class WriterMistakeTest : public testing::TestWithParam<Mistake> {};

TEST_P(WriterMistakeTest, IsNamed) {
  Artifact a = makeArtifact();
  GetParam().make(a);
  Expected<Bytes> file = writeArtifact(a);
  EXPECT_FALSE(file);
  const std::string &error = file.getStatus().getMessage();
  EXPECT_NE(error.find(GetParam().error), std::string::npos) << error;
}

const Mistake kMistakes[] = {
    {"duplicate_name", [](Artifact &a) { a.tensors[kMomentum].name = "fc.weight"; },
     "two tensors are called 'fc.weight'"},
    {"no_name", [](Artifact &a) { a.tensors[kX].name.clear(); }, "a tensor has no name"},
    {"rank_9", [](Artifact &a) { a.tensors[kW].dims.assign(9, 1); }, "has rank 9 but the format ends at 8"},
    {"string_tensor", [](Artifact &a) { a.tensors[kX].dtype = 8; },
     "tensor 'x' has dtype 8, which cannot be stored"},
    {"outside_its_region", [](Artifact &a) { a.tensors[kW].offset = 252; },
     "tensor 'fc.weight' reaches past its region of 256 bytes"},
    {"image_too_large", [](Artifact &a) { a.persistentBytes = 64; },
     "the persistent image has 256 bytes but its region 64"},
    {"unknown_tensor", [](Artifact &a) { a.entries[0].external[0].tensor = 99; },
     "a value of entry 'train/batch' refers to tensor 99 of 10"},
    {"two_shapes_in_a_binding", [](Artifact &a) { a.entries[1].external[0].dims = {3, 3}; },
     "value 'x' of entry 'eval/batch' has another shape or place than in another entry of its binding"},
    {"gradient_of_another_shape", [](Artifact &a) { a.entries[3].internal[1].dims = {3, 2}; },
     "is not the gradient of a parameter of its shape"},
    {"loss_past_the_transient_region", [](Artifact &a) { a.entries[0].internal[0].offset = 256; },
     "value 'loss' of entry 'train/batch' reaches past its region of 256 bytes"},
    {"loss_is_an_output", [](Artifact &a) { a.entries[0].loss = 2; },
     "entry 'train/batch' has a loss that is not one f32 or f64 of its own"},
    {"entry_without_code", [](Artifact &a) { a.entries[0].segment = 3; },
     "code 'baseline' has no step function for entry 'train/batch'"},
    {"no_such_target", [](Artifact &a) { a.entries[0].target = 1; }, "is for code 1, which does not exist"},
    {"no_such_binding", [](Artifact &a) { a.bindings.clear(); }, "has an unknown role or binding"},
};

INSTANTIATE_TEST_SUITE_P(Mistakes, WriterMistakeTest, testing::ValuesIn(kMistakes),
                         [](const auto &info) { return info.param.name; });

TEST(ArtifactTest, VerifyReportsTheSectionThatIsDamaged) {
  Bytes file = makeFile();
  Expected<ArtifactFile> good = readArtifact(file);
  ASSERT_TRUE(good);
  for (const SectionReport &section : good->sections) {
    Bytes bad = file;
    bad[section.offset] ^= 1;
    std::vector<SectionReport> reports;
    Expected<ArtifactFile> read = readArtifact(bad, &reports);
    EXPECT_FALSE(read);
    ASSERT_EQ(reports.size(), good->sections.size());
    for (size_t i = 0; i < reports.size(); ++i)
      EXPECT_EQ(reports[i].ok, reports[i].offset != section.offset) << section.kindName;
    const std::string &error = read.getStatus().getMessage();
    EXPECT_NE(error.find("(" + section.kindName + ") does not match its hash"), std::string::npos) << error;
  }
}

} // namespace
} // namespace ortc::test
