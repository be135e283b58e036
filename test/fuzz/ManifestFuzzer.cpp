// The manifest of an artifact: JSON that tools trust no more than the rest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/report/MemoryText.h"
#include "engine/artifact/batch_table.h"
#include "engine/artifact/kernel_table.h"
#include "engine/artifact/loss_info.h"
#include "support/Json.h"
#include "test/fuzz/Target.h"

namespace ortc::fuzz {

bool fuzzManifest(Input file) {
  std::string text(asText(file));
  std::vector<engine::LossInfo> losses;
  bool isTaken = engine::parseLosses(text, "manifest", losses).isOk();
  engine::parseKernelTable(text);
  engine::BatchTable::parse(text);
  auto manifest = parseJson<nlohmann::ordered_json>(text);
  report::describePlan(manifest);
  report::describeStack(manifest, "train/default");
  return isTaken;
}

} // namespace ortc::fuzz
