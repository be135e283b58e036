// The manifest of an artifact: JSON that tools trust no more than the rest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/report/MemoryText.h"
#include "host/batch_table.h"
#include "host/kernel_table.h"
#include "host/loss_info.h"
#include "support/Json.h"
#include "test/fuzz/Target.h"

namespace ortc::fuzz {

bool fuzzManifest(Input file) {
  std::string text(asText(file));
  std::vector<host::LossInfo> losses;
  bool isTaken = host::parseLosses(text, "manifest", losses).isOk();
  host::parseKernelTable(text);
  host::BatchTable::parse(text);
  auto manifest = parseJson<nlohmann::ordered_json>(text);
  report::describePlan(manifest);
  report::describeStack(manifest, "train/default");
  return isTaken;
}

} // namespace ortc::fuzz
