// Signed artifacts, opened with libortc_verify as the host's hook: what is changed in them is refused.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/sign_artifact.h"
#include "ortc/verify.h"
#include "test/runtime/ArtifactEditor.h"

namespace ortc::test {
namespace {

engine::SigningKey makeKey(uint8_t seed) {
  uint8_t bytes[32] = {seed};
  Expected<engine::SigningKey> key = engine::SigningKey::make(bytes);
  EXPECT_TRUE(key) << key.getStatus().getMessage();
  return *key;
}

class SignedArtifactTest : public testing::Test {
protected:
  SignedArtifactTest() : key(makeKey(1)), publicKey(key.getPublicKey()), file(sign(makeFile(), key)) {
    host.context = this;
    host.verify = [](void *context, const uint8_t digest[32], const void *signature, size_t bytes) {
      return static_cast<SignedArtifactTest *>(context)->verify(digest, signature, bytes);
    };
  }
  static Bytes sign(const Bytes &file, const engine::SigningKey &key) {
    Expected<Bytes> result = engine::signArtifact(file, key);
    EXPECT_TRUE(result) << result.getStatus().getMessage();
    return result ? *result : Bytes();
  }
  /// libortc_verify, which takes a millisecond, so that what was found good is not asked again.
  int32_t verify(const uint8_t digest[32], const void *signature, size_t bytes) {
    Bytes asked(publicKey.begin(), publicKey.end());
    asked.insert(asked.end(), digest, digest + 32);
    asked.insert(asked.end(), static_cast<const uint8_t *>(signature),
                 static_cast<const uint8_t *>(signature) + bytes);
    if (asked == good)
      return 0;
    int32_t result = ortc_verify_signature(publicKey.data(), digest, signature, bytes);
    if (!result)
      good = asked;
    return result;
  }
  /// Whether it opens, and a session is made of it.
  bool runs(const Bytes &artifact) {
    OpenProgram opened(artifact, &host);
    ortc_session *session = nullptr;
    if (opened.status == ORTC_OK)
      ortc_session_create(opened.program.get(), nullptr, &session, nullptr);
    return SessionHandle(session) != nullptr;
  }

  engine::SigningKey key;
  engine::PublicKey publicKey;
  Bytes file, good;
  ortc_host host = ORTC_INIT(ortc_host);
};

TEST_F(SignedArtifactTest, OpensAndStepsAsTheOneWithoutSignature) {
  OpenProgram opened(file, &host), plain(makeFile());
  ASSERT_EQ(opened.status, ORTC_OK) << opened.message.text;
  SessionHandle session = makeSession(opened.program.get()), other = makeSession(plain.program.get());
  trainOn(session.get(), 1);
  trainOn(other.get(), 1);
  EXPECT_EQ(stateOf(session.get()), stateOf(other.get()));
  ortc_program_info one = ORTC_INIT(ortc_program_info), two = ORTC_INIT(ortc_program_info);
  ortc_program_get_info(opened.program.get(), &one);
  ortc_program_get_info(plain.program.get(), &two);
  EXPECT_EQ(std::memcmp(one.model, two.model, 32), 0) << "checkpoints pass between them";
  EXPECT_NE(std::memcmp(one.digest, two.digest, 32), 0) << "its table has a row more";
}

TEST_F(SignedArtifactTest, IsWhatTheWriterMakesOfASignature) {
  Artifact artifact = makeArtifact();
  artifact.signature.assign(file.end() - 64, file.end());
  EXPECT_EQ(makeFile(artifact), file);
}

TEST_F(SignedArtifactTest, SigningAgainReplacesTheSignatureAlone) {
  EXPECT_EQ(sign(file, key), file);
  Bytes again = sign(file, makeKey(2));
  ASSERT_EQ(again.size(), file.size());
  EXPECT_TRUE(std::equal(file.begin(), file.end() - 64, again.begin()));
  EXPECT_FALSE(runs(again));
  publicKey = makeKey(2).getPublicKey();
  EXPECT_TRUE(runs(again));
  EXPECT_FALSE(runs(file));
}

TEST_F(SignedArtifactTest, KeepsSectionsThatItDoesNotKnow) {
  Editor editor;
  editor.section(ORTC_SECTION_SOURCE).kind = 77;
  editor.seal();
  Bytes result = sign(editor.file, key);
  EXPECT_TRUE(runs(result));
  editor.file = result;
  EXPECT_EQ(editor.section(77).bytes, 3u);
  EXPECT_EQ(result[editor.section(77).offset], 1);
}

TEST_F(SignedArtifactTest, DamagedArtifactsAreNotSigned) {
  Editor editor;
  editor.file[editor.section(ORTC_SECTION_SOURCE).offset] ^= 1; // which the runtime never reads
  Expected<Bytes> result = engine::signArtifact(editor.file, key);
  ASSERT_FALSE(result);
  EXPECT_NE(result.getStatus().getMessage().find("(source) does not match its hash"), std::string::npos);
  EXPECT_FALSE(engine::signArtifact(Bytes(editor.file.begin(), editor.file.end() - 1), key));
  EXPECT_FALSE(engine::signArtifact({}, key));
}

TEST_F(SignedArtifactTest, MissingAndOtherSignaturesAreRefused) {
  OpenProgram plain(makeFile(), &host);
  EXPECT_EQ(plain.status, ORTC_E_HASH);
  EXPECT_STREQ(plain.message.text, "not trusted by host");
  for (size_t bytes : {1, 63, 65, 128}) {
    Artifact artifact = makeArtifact();
    artifact.signature.assign(bytes, 3);
    EXPECT_FALSE(runs(makeFile(artifact))) << bytes;
  }
}

/// The runtime hashes header, section table, tables and the code that it takes when it opens a file, and the two images
/// before the first session. The rest is read by nobody, or hashed when it is asked for.
TEST_F(SignedArtifactTest, AFlippedBitIsRefusedWhereverTheRuntimeReads) {
  Editor editor;
  editor.file = file;
  std::vector<bool> isRead(file.size());
  auto mark = [&](size_t offset, size_t bytes) {
    std::fill_n(isRead.begin() + std::ptrdiff_t(offset), bytes, true);
  };
  mark(0, sizeof(ortc_file_header) + editor.header().section_count * sizeof(ortc_file_section));
  for (uint32_t i = 0; i < editor.header().section_count; i++)
    if (const ortc_file_section &row = editor.row(i);
        row.kind != ORTC_SECTION_MANIFEST && row.kind != ORTC_SECTION_SOURCE)
      mark(row.offset, row.bytes);
  size_t read = size_t(std::count(isRead.begin(), isRead.end(), true));
  EXPECT_GT(read, 4000u);
  ASSERT_TRUE(runs(file));
  for (size_t at = 0; at < file.size(); at++) {
    if (!isRead[at] && at % 16) // zeros between sections, most of them
      continue;
    editor.file[at] ^= uint8_t(1 << at % 8);
    EXPECT_EQ(runs(editor.file), !isRead[at]) << at;
    // The tool's reader sees the rest, too, but for the signature itself.
    EXPECT_TRUE(isRead[at] || !artifact::readArtifact(editor.file)) << at;
    editor.file[at] ^= uint8_t(1 << at % 8);
  }
  for (size_t bit = 0; bit < 64 * 8; bit++) { // every bit of the signature
    editor.file[file.size() - 64 + bit / 8] ^= uint8_t(1 << bit % 8);
    EXPECT_FALSE(runs(editor.file)) << bit;
    editor.file[file.size() - 64 + bit / 8] ^= uint8_t(1 << bit % 8);
  }
}

TEST_F(SignedArtifactTest, HashesThatAreMadeRightAgainAreRefused) {
  Editor editor;
  editor.file = file;
  editor.file[editor.section(ORTC_SECTION_PERSISTENT).offset] ^= 1;
  Bytes signature(file.end() - 64, file.end());
  editor.seal();
  std::copy(signature.begin(), signature.end(), editor.file.end() - 64);
  EXPECT_FALSE(runs(editor.file));
  host.verify = nullptr;
  EXPECT_TRUE(runs(editor.file)) << "but for the signature";
}

} // namespace
} // namespace ortc::test
