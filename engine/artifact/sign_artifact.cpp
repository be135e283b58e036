// Signatures of artifacts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/sign_artifact.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "compiler/artifact/FileLayout.h"
#include "engine/artifact/artifact_path.h"
#include "support/AtomicFile.h"
#include "support/Printable.h"
#include "support/Text.h"

namespace ortc::engine {

/// The file with room for a signature at its end.
static Expected<artifact::Bytes> makeRoom(const artifact::Bytes &file) {
  if (Expected<artifact::ArtifactFile> read = artifact::readArtifact(file); !read)
    return read.getStatus();
  ortc_file_header header;
  std::memcpy(&header, file.data(), sizeof header);
  std::vector<artifact::Section> sections(header.section_count);
  for (size_t i = 0; i < sections.size(); ++i) {
    ortc_file_section &row = sections[i].row;
    std::memcpy(&row, file.data() + sizeof header + i * sizeof row, sizeof row);
    sections[i].contents = std::span(file).subspan(size_t(row.offset), size_t(row.bytes));
  }
  std::erase_if(sections,
                [](const artifact::Section &section) { return section.row.kind == ORTC_SECTION_SIGNATURE; });
  artifact::Section &section = sections.emplace_back();
  section.row.kind = ORTC_SECTION_SIGNATURE;
  section.row.name = ORTC_NONE;
  section.owned.resize(sizeof(Signature));
  return artifact::layOut(header, sections);
}

static void fillRoom(artifact::Bytes &file, const SigningKey &key) {
  Signature signature =
      key.sign(file.data() + offsetof(ortc_file_header, sha256), sizeof(ortc_file_header::sha256));
  std::copy(signature.begin(), signature.end(), file.end() - signature.size());
}

Expected<artifact::Bytes> signArtifact(const artifact::Bytes &file, const SigningKey &key) {
  Expected<artifact::Bytes> result = makeRoom(file);
  if (result)
    fillRoom(*result, key);
  return result;
}

Status signArtifactFile(const std::string &path, const std::function<Expected<SigningKey>()> &getKey,
                        bool quiet) {
  std::string place;
  ORTC_TRY(findArtifactFile(path, place));
  Expected<artifact::Bytes> file = artifact::readBytes(place);
  if (!file)
    return file.getStatus();
  Expected<artifact::Bytes> result = makeRoom(*file);
  if (!result)
    return Status::failure(place + ": " + result.getStatus().getMessage());
  AtomicFile output(place);
  ORTC_TRY(output.open());
  Expected<SigningKey> key = getKey();
  if (!key)
    return key.getStatus();
  fillRoom(*result, *key);
  ORTC_TRY(output.write(result->data(), result->size()));
  ORTC_TRY(output.commit());
  if (!quiet) {
    PublicKey digest;
    std::memcpy(digest.data(), result->data() + offsetof(ortc_file_header, sha256), digest.size());
    std::printf("signed     %s\ndigest     %s\npublic key %s\n", makePrintable(place).c_str(),
                formatKey(digest).c_str(), formatKey(key->getPublicKey()).c_str());
  }
  return Status();
}

Status checkSignature(const artifact::ArtifactFile &file, const PublicKey &key) {
  const artifact::Bytes &bytes = file.artifact.signature;
  Signature signature;
  if (bytes.empty())
    return Status::refusal("has no signature; ortc sign makes one");
  if (bytes.size() != signature.size())
    return Status::refusal("has a signature of " + formatCount(int64_t(bytes.size()), "byte") +
                           ", but one of Ed25519 has " + std::to_string(signature.size()));
  std::copy(bytes.begin(), bytes.end(), signature.begin());
  if (!isSignedBy(key, file.hash, sizeof file.hash, signature))
    return Status::refusal("is not signed by " + formatKey(key) + ": another key, or a damaged signature");
  return Status();
}

} // namespace ortc::engine
