// The commands ortc export, inspect, verify.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/ExportModel.h"
#include "compiler/report/InspectArtifact.h"
#include "tools/ortc/Commands.h"

namespace ortc::tool {

void addExportCommand(CLI::App &app, Action &action) {
  auto options = std::make_shared<artifact::ExportOptions>();
  CommandLine line(app, "export", "the original ONNX graph with trained weights");
  line.addPositional("DIR", "the artifact", options->artifact);
  line.addText("--load", "FILE.safetensors|DIR",
               "a checkpoint, or adapters in files of PEFT; default: the weights in the artifact",
               options->load);
  line.addText("-o,--output", "TRAINED.onnx", "where the model goes, adapters merged into its weights",
               options->output);
  line.addText("--adapter", "DIR", "where the adapters alone go, in the two files of PEFT", options->adapter);
  line.addFlag("--quiet", "no output but errors", options->quiet);
  line.setAction(action, [options] { return finish(artifact::exportModel(*options)); });
}

void addInspectCommand(CLI::App &app, Action &action) {
  auto path = std::make_shared<std::string>();
  CommandLine line(app, "inspect", "entries, bindings, tensors, memory, targets, digests");
  line.addPositional("DIR", "the artifact", *path);
  line.setAction(action, [path] { return finish(report::inspectArtifact(*path)); });
}

void addVerifyCommand(CLI::App &app, Action &action) {
  struct State {
    std::string path;
    bool quiet = false;
  };
  auto state = std::make_shared<State>();
  CommandLine line(app, "verify", "checks every digest and every section");
  line.addPositional("DIR", "the artifact", state->path);
  line.addFlag("--quiet", "no output but errors", state->quiet);
  line.setAction(action, [state] { return finish(report::verifyArtifact(state->path, state->quiet)); });
}

} // namespace ortc::tool
