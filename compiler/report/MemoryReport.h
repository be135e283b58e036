// Memory plans as JSON, as CSV and as a page.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/report/MemoryPlan.h"

#include <nlohmann/json_fwd.hpp>

namespace ortc::report {

/// Figures, certificates and the peak: `entries[].memory` of the manifest (docs/manifest.md) and of plan.json.
nlohmann::ordered_json summarizeMemory(const MemoryPlan &plan);

/// What `ortc plan --report` writes (docs/commands/plan.md): the summary of every entry, its steps and its buffers.
nlohmann::ordered_json makePlanReport(const std::string &model, const SharedMemory &shared,
                                      const std::vector<MemoryPlan> &plans);

/// The same as one HTML page that shows the arena over time. It needs nothing but a browser.
std::string makePlanPage(nlohmann::ordered_json report);

/// The transient region in MiniMalloc's format (compiler/planning/csv/PackingCsv.h), a pool for each entry.
std::string makeBufferTable(const std::vector<MemoryPlan> &plans);

} // namespace ortc::report
