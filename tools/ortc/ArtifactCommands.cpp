// The commands ortc export, inspect, sign, verify.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/inspect_artifact.h"
#include "engine/artifact/sign_artifact.h"
#include "engine/export/export_model.h"
#include "tools/ortc/Commands.h"

namespace ortc::tool {

void addExportCommand(Tool &tool) {
  auto options = std::make_shared<engine::ExportOptions>();
  CommandLine line(tool, "export");
  line.addPositional("DIR", options->artifact);
  line.addText("load", options->load);
  line.addWeights("weights", options->weights);
  line.addText("output", options->output);
  line.addText("adapter", options->adapter);
  line.addFlag("training", options->isForTraining);
  line.addFlag("quiet", options->quiet);
  line.setAction([options] { return finish(engine::exportModel(*options)); });
}

void addInspectCommand(Tool &tool) {
  auto path = std::make_shared<std::string>();
  CommandLine line(tool, "inspect");
  line.addPositional("DIR", *path);
  line.setAction([path] { return finish(engine::inspectArtifact(*path)); });
}

void addSignCommand(Tool &tool) {
  struct State {
    std::string path, key, newKey;
    bool quiet = false;
  };
  auto state = std::make_shared<State>();
  CommandLine line(tool, "sign");
  line.addPositional("DIR", state->path);
  line.addText("key", state->key);
  line.addText("new-key", state->newKey);
  line.addFlag("quiet", state->quiet);
  line.setAction([state] {
    if (state->key.empty() == state->newKey.empty() || (state->path.empty() && state->newKey.empty()))
      return reportError("sign needs DIR with --key FILE, or --new-key FILE", 2);
    auto getKey = [state]() -> Expected<engine::SigningKey> {
      if (!state->newKey.empty())
        ORTC_TRY(engine::makeKeyFiles(state->newKey));
      return engine::readSigningKey(state->key.empty() ? state->newKey : state->key);
    };
    return finish(state->path.empty() ? getKey().getStatus()
                                      : engine::signArtifactFile(state->path, getKey, state->quiet));
  });
}

void addVerifyCommand(Tool &tool) {
  struct State {
    std::string path, publicKey;
    bool quiet = false;
  };
  auto state = std::make_shared<State>();
  CommandLine line(tool, "verify");
  line.addPositional("DIR", state->path);
  line.addText("public-key", state->publicKey);
  line.addFlag("quiet", state->quiet);
  line.setAction(
      [state] { return finish(engine::verifyArtifact(state->path, state->publicKey, state->quiet)); });
}

} // namespace ortc::tool
