// The command ortc report.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/page/report_page.h"
#include "tools/ortc/Commands.h"

namespace ortc::tool {

void addReportCommand(CLI::App &app, Action &action) {
  auto options = std::make_shared<host::ReportOptions>();
  CommandLine line(app, "report", "curves of runs as one page");
  line.addPositionals("METRICS", "files that ortc run --metrics has written", options->runs);
  line.addText("-o,--output", "PAGE.html|CHARTS.svg", "the page, or its charts alone", options->output, true);
  line.addValue(
      "--plan", "FILE.json",
      "also shows this memory plan: a manifest.json, or what --report of ortc plan writes; "
      "repeatable",
      [options](const std::string &path) {
        options->plans.push_back(path);
        return Status();
      },
      true);
  line.addFlag("--quiet", "no output but errors", options->quiet);
  line.setAction(action, [options] { return finish(host::writeReportPage(*options)); });
}

} // namespace ortc::tool
