// Tables of a report: runs, memory plans, profiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/page/metrics_log.h"

namespace ortc::engine {

std::string drawRuns(const std::vector<MetricsLog> &runs);
/// Of an event `profile` of a run.
std::string drawProfile(const std::string &run, const nlohmann::json &profile);
/// Of a manifest or a report, which both have `memory` and `entries`; `path` begins messages.
Status drawPlan(const std::string &path, std::string &html);

} // namespace ortc::engine
