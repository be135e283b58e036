// The commands ortc export, inspect, sign, verify.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/ExportModel.h"
#include "compiler/artifact/SignArtifact.h"
#include "compiler/report/InspectArtifact.h"
#include "tools/ortc/Commands.h"

namespace ortc::tool {

void addExportCommand(CLI::App &app, Action &action) {
  auto options = std::make_shared<artifact::ExportOptions>();
  CommandLine line(app, "export", "the ONNX graph with trained weights, for inference");
  line.addPositional("DIR", "the artifact, or a file MODEL.onnx that was exported for training",
                     options->artifact);
  line.addText("--load", "FILE.safetensors|DIR",
               "a checkpoint, or adapters in files of PEFT; default: the weights in the artifact",
               options->load);
  line.addWeights("--weights", options->weights);
  line.addText("-o,--output", "TRAINED.onnx", "where the model goes, adapters merged into its weights",
               options->output);
  line.addText("--adapter", "DIR", "where the adapters alone go, in the two files of PEFT", options->adapter);
  line.addFlag("--training", "the graph as it was compiled: what it does in training, it does there, too",
               options->isForTraining);
  line.addFlag("--quiet", "no output but errors", options->quiet);
  line.setAction(action, [options] { return finish(artifact::exportModel(*options)); });
}

void addInspectCommand(CLI::App &app, Action &action) {
  auto path = std::make_shared<std::string>();
  CommandLine line(app, "inspect", "entries, bindings, tensors, memory, targets, digests");
  line.addPositional("DIR", "the artifact", *path);
  line.setAction(action, [path] { return finish(report::inspectArtifact(*path)); });
}

void addSignCommand(CLI::App &app, Action &action) {
  struct State {
    std::string path, key, newKey;
    bool quiet = false;
  };
  auto state = std::make_shared<State>();
  CommandLine line(app, "sign", "signs an artifact, for devices that ask who made it");
  line.addPositional("DIR", "the artifact; not needed with --new-key", state->path, /*isRequired=*/false);
  line.addText("--key", "FILE",
               "the private key: PEM as openssl genpkey -algorithm ed25519 writes it, or 32 bytes in "
               "hexadecimal digits or base64",
               state->key);
  line.addText("--new-key", "FILE", "makes a key first: the private half in FILE, the public one in FILE.pub",
               state->newKey);
  line.addFlag("--quiet", "no output but errors", state->quiet);
  line.setExample("ortc sign --new-key signing.key && ortc sign artifacts/digits --key signing.key");
  line.setAction(action, [state] {
    if (state->key.empty() == state->newKey.empty() || (state->path.empty() && state->newKey.empty()))
      return reportError("sign needs DIR with --key FILE, or --new-key FILE", 2);
    auto getKey = [state]() -> Expected<host::SigningKey> {
      if (!state->newKey.empty())
        ORTC_TRY(host::makeKeyFiles(state->newKey));
      return host::readSigningKey(state->key.empty() ? state->newKey : state->key);
    };
    return finish(state->path.empty() ? getKey().getStatus()
                                      : artifact::signArtifactFile(state->path, getKey, state->quiet));
  });
}

void addVerifyCommand(CLI::App &app, Action &action) {
  struct State {
    std::string path, publicKey;
    bool quiet = false;
  };
  auto state = std::make_shared<State>();
  CommandLine line(app, "verify", "checks every digest and every section, and a signature");
  line.addPositional("DIR", "the artifact", state->path);
  line.addText("--public-key", "FILE",
               "checks the signature, too: PEM as openssl pkey -pubout writes it, or 32 bytes in "
               "hexadecimal digits or base64",
               state->publicKey);
  line.addFlag("--quiet", "no output but errors", state->quiet);
  line.setAction(action, [state] {
    return finish(report::verifyArtifact(state->path, state->publicKey, state->quiet));
  });
}

} // namespace ortc::tool
