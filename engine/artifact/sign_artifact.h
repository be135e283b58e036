// Signatures of artifacts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <string>

#include "compiler/artifact/ArtifactReader.h"
#include "engine/artifact/signing.h"

namespace ortc::engine {

/// The file with a signature as its last section, in the place of one that is there. What is signed is the digest of
/// the file as it is given back, which the runtime hands to ortc_host.verify: the hash of header and section table,
/// which have the signature's place and size, and the hashes of all other sections. So every key signs the same
/// digest. Fails where `file` is damaged.
Expected<artifact::Bytes> signArtifact(const artifact::Bytes &file, const SigningKey &key);

/// The same with the artifact at `path`, which is replaced whole or stays as it is. Asks for the key, which may be made
/// then, once the artifact is read and its folder can be written to. Prints what was signed, unless quiet.
Status signArtifactFile(const std::string &path, const std::function<Expected<SigningKey>()> &getKey,
                        bool quiet);

/// Refuses an artifact that has no signature, or none by this key.
Status checkSignature(const artifact::ArtifactFile &file, const PublicKey &key);

} // namespace ortc::engine
