// `ortc report`: runs, plans and profiles as one page that needs no scripts and loads nothing, or its charts as SVG.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "support/Status.h"

namespace ortc::engine {

struct ReportOptions {
  std::vector<std::string> runs;  ///< files of --metrics
  std::vector<std::string> plans; ///< a manifest.json, or a report of `ortc plan`
  std::string output;             ///< .html, .htm, .svg; without an end: a page
  bool quiet = false;
};

Status writeReportPage(const ReportOptions &options);

} // namespace ortc::engine
