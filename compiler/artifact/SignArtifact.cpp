// Signatures of artifacts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/SignArtifact.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "compiler/artifact/FileLayout.h"
#include "engine/artifact/artifact_path.h"
#include "support/AtomicFile.h"
#include "support/Printable.h"
#include "support/Text.h"

namespace ortc::artifact {

/// The file with room for a signature at its end.
static Expected<Bytes> makeRoom(const Bytes &file) {
  if (Expected<ArtifactFile> read = readArtifact(file); !read)
    return read.getStatus();
  ortc_file_header header;
  std::memcpy(&header, file.data(), sizeof header);
  std::vector<Section> sections(header.section_count);
  for (size_t i = 0; i < sections.size(); ++i) {
    ortc_file_section &row = sections[i].row;
    std::memcpy(&row, file.data() + sizeof header + i * sizeof row, sizeof row);
    sections[i].contents = std::span(file).subspan(size_t(row.offset), size_t(row.bytes));
  }
  std::erase_if(sections, [](const Section &section) { return section.row.kind == ORTC_SECTION_SIGNATURE; });
  Section &section = sections.emplace_back();
  section.row.kind = ORTC_SECTION_SIGNATURE;
  section.row.name = ORTC_NONE;
  section.owned.resize(sizeof(engine::Signature));
  return layOut(header, sections);
}

static void fillRoom(Bytes &file, const engine::SigningKey &key) {
  engine::Signature signature =
      key.sign(file.data() + offsetof(ortc_file_header, sha256), sizeof(ortc_file_header::sha256));
  std::copy(signature.begin(), signature.end(), file.end() - signature.size());
}

Expected<Bytes> signArtifact(const Bytes &file, const engine::SigningKey &key) {
  Expected<Bytes> result = makeRoom(file);
  if (result)
    fillRoom(*result, key);
  return result;
}

Status signArtifactFile(const std::string &path, const std::function<Expected<engine::SigningKey>()> &getKey,
                        bool quiet) {
  std::string place;
  ORTC_TRY(engine::findArtifactFile(path, place));
  Expected<Bytes> file = readBytes(place);
  if (!file)
    return file.getStatus();
  Expected<Bytes> result = makeRoom(*file);
  if (!result)
    return Status::failure(place + ": " + result.getStatus().getMessage());
  AtomicFile output(place);
  ORTC_TRY(output.open());
  Expected<engine::SigningKey> key = getKey();
  if (!key)
    return key.getStatus();
  fillRoom(*result, *key);
  ORTC_TRY(output.write(result->data(), result->size()));
  ORTC_TRY(output.commit());
  if (!quiet) {
    engine::PublicKey digest;
    std::memcpy(digest.data(), result->data() + offsetof(ortc_file_header, sha256), digest.size());
    std::printf("signed     %s\ndigest     %s\npublic key %s\n", makePrintable(place).c_str(),
                engine::formatKey(digest).c_str(), engine::formatKey(key->getPublicKey()).c_str());
  }
  return Status();
}

Status checkSignature(const ArtifactFile &file, const engine::PublicKey &key) {
  const Bytes &bytes = file.artifact.signature;
  engine::Signature signature;
  if (bytes.empty())
    return Status::refusal("has no signature; ortc sign makes one");
  if (bytes.size() != signature.size())
    return Status::refusal("has a signature of " + formatCount(int64_t(bytes.size()), "byte") +
                           ", but one of Ed25519 has " + std::to_string(signature.size()));
  std::copy(bytes.begin(), bytes.end(), signature.begin());
  if (!engine::isSignedBy(key, file.hash, sizeof file.hash, signature))
    return Status::refusal("is not signed by " + engine::formatKey(key) +
                           ": another key, or a damaged signature");
  return Status();
}

} // namespace ortc::artifact
