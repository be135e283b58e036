// Checkpoints, into a session of the artifact that is the first seed of the target `artifact`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/session/position.h"
#include "ortc/ortc.h"
#include "test/fuzz/Target.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ortc::fuzz {
namespace {

constexpr const char *kArtifact = ORTC_TEST_DATA "/fuzz/corpus/artifact/small.ortc";

/// Opened once: no file may change what the next one meets.
ortc_session *openSession() {
  ortc_program *program = nullptr;
  ortc_session *session = nullptr;
  ortc_message message{};
  demand(ortc_program_open_file(kArtifact, nullptr, &program, &message) == ORTC_OK, kArtifact);
  demand(ortc_session_create(program, nullptr, &session, &message) == ORTC_OK, message.text);
  return session;
}

int32_t keep(void *context, const void *data, size_t bytes) {
  auto *file = static_cast<std::vector<uint8_t> *>(context);
  auto *first = static_cast<const uint8_t *>(data);
  file->insert(file->end(), first, first + bytes);
  return 0;
}

std::vector<uint8_t> write(ortc_session *session) {
  std::vector<uint8_t> file;
  demand(ortc_checkpoint_write(session, keep, &file, nullptr, 0) == ORTC_OK,
         "a checkpoint cannot be written");
  return file;
}

void note(void *context, const char *key, const char *value) {
  (*static_cast<std::map<std::string, std::string> *>(context))[key] = value;
}

} // namespace

bool fuzzCheckpoint(Input file) {
  static ortc_session *const session = openSession();
  static const std::vector<uint8_t> before = write(session);
  std::vector<uint8_t> exact(file.begin(), file.end());
  std::map<std::string, std::string> metadata;
  ortc_load_info info{};
  info.size = sizeof info;
  info.metadata = note;
  info.metadata_context = &metadata;
  bool isTaken = ortc_checkpoint_read(session, exact.data(), exact.size(), &info) == ORTC_OK;
  std::vector<uint8_t> after = write(session);
  if (!isTaken) {
    demand(after == before, "a refused checkpoint changed the session");
    return false;
  }
  std::optional<engine::Position> position;
  (void)engine::parsePosition(metadata, "checkpoint", position);
  demand(ortc_checkpoint_read(session, after.data(), after.size(), nullptr) == ORTC_OK,
         "what was taken cannot be written and read again");
  demand(write(session) == after, "what was taken is not what is written");
  demand(ortc_checkpoint_read(session, before.data(), before.size(), nullptr) == ORTC_OK, "no way back");
  return true;
}

} // namespace ortc::fuzz
