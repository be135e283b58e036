// Writes model.ortc. No MLIR.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "compiler/artifact/Artifact.h"
#include "support/Expected.h"

namespace ortc::artifact {

/// The bytes of the file: a function of `artifact` alone, so that equal compilations give equal files. Places
/// inputs and outputs in the io region (one place per tensor and binding), leaves out the zero tail of the
/// persistent image, and computes the model's digest. Refuses what the runtime would refuse, and duplicate
/// names, naming the culprit.
Expected<Bytes> writeArtifact(const Artifact &artifact);

/// The same to a sink: images go there piece by piece, and are never in memory as a whole.
Status writeArtifact(const Artifact &artifact, ByteSink &sink);

/// Digest of name, role, dtype and shape of the checkpointed tensors, in table order.
void modelDigest(const std::vector<Tensor> &tensors, uint8_t digest[32]);

/// SHA-256 as lower-case hexadecimal digits, for manifests and reports.
std::string sha256Hex(const void *data, size_t bytes);

} // namespace ortc::artifact
