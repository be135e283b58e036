// Where a compilation writes, checked before it works.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/OutputPaths.h"

namespace ortc::tool {

std::vector<NamedFile> listReports(const CompileOptions &options, const TuneOptions &tuning,
                                   const std::string &page) {
  return {{"--dump-buffers", options.dumpBuffers},
          {"--report", options.report},
          {"--html", page},
          {"--tune-cache", tuning.measures ? tuning.path() : ""}};
}

Status checkPaths(const CompileOptions &options, const std::vector<NamedFile> &reports,
                  const artifact::OutputFolder &output) {
  NamedFile folder{"-o", options.compileTo.empty() ? options.output : ""};
  Status outcome = folder.path.empty() ? Status() : output.check();
  if (outcome.isOk())
    outcome = checkOutside(folder, {"--dump-ir", options.dumpIr});
  if (outcome.isOk())
    outcome = checkOutside(folder, {"--kernel-cache", options.kernelCache});
  for (const NamedFile &file : reports)
    if (outcome.isOk())
      outcome = checkNewFile(folder, file);
  return outcome;
}

Status checkFiles(const CompileOptions &options, const TuneOptions &tuning,
                  const std::vector<NamedFile> &reports, const frontend::Model &model) {
  std::vector<NamedFile> inputs{{"the model", options.model}}, outputs;
  if (!tuning.measures)
    inputs.push_back({"the tuning cache", tuning.path()});
  for (const std::string &file : model.getExternalFiles())
    inputs.push_back({"the model's data", file});
  if (options.compileTo.empty())
    for (std::string &file : artifact::OutputFolder(options.output).listFiles())
      outputs.push_back({"-o", std::move(file)});
  outputs.insert(outputs.end(), reports.begin(), reports.end());
  return checkOutputs(inputs, outputs);
}

} // namespace ortc::tool
