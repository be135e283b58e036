// Artifacts in the tools that take them apart.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/inspect_artifact.h"
#include "test/fuzz/Target.h"

namespace ortc::fuzz {

bool fuzzInspect(Input file) {
  MemoryFile onDisk(file);
  bool isGood = engine::verifyArtifact(onDisk.getPath(), /*publicKey=*/"", /*quiet=*/true).isOk();
  demand(engine::inspectArtifact(onDisk.getPath()).isOk() == isGood, "verify and inspect disagree");
  return isGood;
}

} // namespace ortc::fuzz
