// When the parts of an artifact are hashed: tables and code by open, images before the first session.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <atomic>
#include <thread>

#include "test/runtime/ArtifactEditor.h"

namespace ortc::test {
namespace {

/// The artifact with a bit of a section flipped, under hashes of the time before.
Bytes flipped(uint32_t kind) {
  Editor editor;
  editor.file[editor.section(kind).offset + 1] ^= 4;
  return editor.file;
}

class OpeningTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Images, OpeningTest,
                         testing::Values(ORTC_SECTION_CONSTANTS, ORTC_SECTION_PERSISTENT));

TEST_P(OpeningTest, ADamagedImageIsRefusedBeforeTheFirstStep) {
  OpenProgram opened(flipped(GetParam()));
  ASSERT_EQ(opened.status, ORTC_OK) << "open hashes no images";
  for (int i = 0; i < 2; ++i) {
    ortc_session *session = nullptr;
    ortc_message message{};
    EXPECT_EQ(ortc_session_create(opened.program.get(), nullptr, &session, &message), ORTC_E_HASH);
    EXPECT_EQ(session, nullptr);
    EXPECT_EQ(message.text, "section kind " + std::to_string(GetParam()) + " does not match its hash");
  }
}

TEST_P(OpeningTest, DamageAfterOpeningIsSeen) {
  Editor editor;
  OpenProgram opened(editor.file);
  static_cast<uint8_t *>(opened.image.data())[editor.section(GetParam()).offset] ^= 1;
  ortc_session *session = nullptr;
  EXPECT_EQ(ortc_session_create(opened.program.get(), nullptr, &session, nullptr), ORTC_E_HASH);
}

TEST_P(OpeningTest, AHostThatHasVerifiedTheFileIsBelieved) {
  ortc_host host = ORTC_INIT(ortc_host);
  host.flags = ORTC_HOST_VERIFIED;
  OpenProgram opened(flipped(GetParam()), &host);
  ortc_session *session = nullptr;
  EXPECT_EQ(ortc_session_create(opened.program.get(), nullptr, &session, nullptr), ORTC_OK);
  ortc_session_destroy(session);
}

TEST(OpeningTest, AHostIsNotBelievedAboutTablesAndCode) {
  ortc_host host = ORTC_INIT(ortc_host);
  host.flags = ORTC_HOST_VERIFIED;
  for (uint32_t kind : {ORTC_SECTION_TENSORS, ORTC_SECTION_ENTRIES, ORTC_SECTION_STRINGS, ORTC_SECTION_CODE})
    EXPECT_EQ(OpenProgram(flipped(kind), &host).status, ORTC_E_HASH) << kind;
}

TEST(OpeningTest, ThreadsMayCreateTheFirstSession) {
  OpenProgram good((Editor().file)), bad(flipped(ORTC_SECTION_CONSTANTS));
  std::atomic<int> created = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      ortc_session *session = nullptr;
      created += ortc_session_create(good.program.get(), nullptr, &session, nullptr) == ORTC_OK;
      if (session)
        trainOn(session, 1);
      ortc_session_destroy(session);
      refused += ortc_session_create(bad.program.get(), nullptr, &session, nullptr) == ORTC_E_HASH;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(created, 8);
  EXPECT_EQ(refused, 8);
}

/// State that the file does not hold is zero, in fresh memory and in the caller's.
TEST(OpeningTest, TheRestOfTheRegionIsZero) {
  Artifact artifact = makeArtifact();
  artifact.persistentBytes = 8 << 20;
  Bytes file = makeFile(artifact);
  OpenProgram opened(file);
  std::vector<uint8_t> own(artifact.persistentBytes + 64, 0xff);
  ortc_session_options options = ORTC_INIT(ortc_session_options);
  options.persistent = own.data() + (64 - reinterpret_cast<uintptr_t>(own.data()) % 64) % 64;
  auto *given = static_cast<uint8_t *>(options.persistent);
  SessionHandle session = makeSession(opened.program.get(), &options);
  EXPECT_TRUE(
      std::all_of(given + 256, given + artifact.persistentBytes, [](uint8_t byte) { return byte == 0; }));
  SessionHandle fresh = makeSession(opened.program.get());
  void *place = nullptr;
  ASSERT_EQ(ortc_data(fresh.get(), "step", &place), ORTC_OK);
  EXPECT_EQ(std::memcmp(static_cast<uint8_t *>(place) - 128, given, artifact.persistentBytes), 0);
}

TEST(OpeningTest, AFolderIsNamed) {
  std::string folder = makeFolder("opening");
  ortc_program *program = nullptr;
  ortc_message message{};
  EXPECT_EQ(ortc_program_open_file(folder.c_str(), nullptr, &program, &message), ORTC_E_IO);
  EXPECT_EQ(message.text, folder + " is not a regular file");
  OpenProgram opened(makeFile());
  SessionHandle session = makeSession(opened.program.get());
  EXPECT_EQ(ortc_checkpoint_load(session.get(), folder.c_str(), nullptr), ORTC_E_IO);
  EXPECT_EQ(ortc_session_message(session.get()), folder + " is not a regular file");
}

} // namespace
} // namespace ortc::test
