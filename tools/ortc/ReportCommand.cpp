// The command ortc report.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/page/report_page.h"
#include "tools/ortc/Commands.h"

namespace ortc::tool {

void addReportCommand(Tool &tool) {
  auto options = std::make_shared<engine::ReportOptions>();
  CommandLine line(tool, "report");
  line.addPositionals("METRICS", options->runs);
  line.addText("output", options->output);
  line.addValue("plan", [options](const std::string &path) {
    options->plans.push_back(path);
    return Status();
  });
  line.addFlag("quiet", options->quiet);
  line.setAction([options] { return finish(engine::writeReportPage(*options)); });
}

} // namespace ortc::tool
