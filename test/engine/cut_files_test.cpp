// Artifacts and checkpoints that are cut while libortc has them mapped: the guard of tools ends the process
// with a message.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/FileGuard.h"
#include "test/engine/data_files.h"
#include "test/runtime/TestArtifact.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

namespace {

class CutFileTest : public testing::Test {
protected:
  CutFileTest() { ortc::test::writeTestArtifact(artifact); }
  /// Opens the artifact in a process with the guard of tools.
  ortc_program *open() const {
    guardMappedFiles("tool");
    ortc_program *program = nullptr;
    if (ortc_program_open_file(artifact.c_str(), nullptr, &program, nullptr) != ORTC_OK)
      _exit(10);
    return program;
  }
  static ortc_session *createSession(ortc_program *program) {
    ortc_session *session = nullptr;
    if (ortc_session_create(program, nullptr, &session, nullptr) != ORTC_OK)
      _exit(11);
    return session;
  }
  static std::string messageFor(const std::string &path) {
    return "^tool: error: " + path + ": was cut while it was read; write a new file and rename it instead\n$";
  }

  TemporaryFolder folder;
  std::string artifact = folder / "model.ortc", checkpoint = folder / "saved.safetensors";
};

} // namespace

TEST_F(CutFileTest, AnArtifactEndsTheProcessWithItsName) {
  auto cutAndCreate = [&] {
    ortc_program *program = open();
    std::filesystem::resize_file(artifact, 0);
    createSession(program); // which reads the images
    _exit(12);
  };
  EXPECT_EXIT(cutAndCreate(), testing::ExitedWithCode(1), messageFor(artifact));
}

TEST_F(CutFileTest, ACheckpointEndsTheProcessWithItsName) {
  auto cutAndLoad = [&] {
    ortc_session *session = createSession(open());
    ortc_metadata note = {"note", "first"};
    if (ortc_checkpoint_save(session, checkpoint.c_str(), &note, 1) != ORTC_OK)
      _exit(12);
    ortc_load_info info = ORTC_INIT(ortc_load_info);
    info.metadata_context = &checkpoint;
    info.metadata = [](void *path, const char *, const char *) {
      std::filesystem::resize_file(*static_cast<std::string *>(path), 0);
    };
    ortc_checkpoint_load(session, checkpoint.c_str(), &info); // which has checked it all by then
    _exit(13);
  };
  EXPECT_EXIT(cutAndLoad(), testing::ExitedWithCode(1), messageFor(checkpoint));
}
