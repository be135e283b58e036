// The command ortc plan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/text.h"
#include "tools/ortc/Commands.h"
#include "tools/ortc/Compiling.h"

namespace ortc::tool {

void addPlanCommand(CLI::App &app, Action &action) {
  struct State {
    CompileOptions options;
    PlanOptions planning;
    bool isFirstTarget = true;
  };
  auto state = std::make_shared<State>();
  CompileOptions &options = state->options;
  options.compileTo = "place"; // there is no artifact, so none must be named
  CommandLine line(app, "plan", "shows the memory plan of MODEL, without generating code");
  line.addPositional("MODEL", "the ONNX file", options.model);
  addModelFlags(line, options);
  addGradientFlags(line, options);
  addTrainingFlags(line, options);
  addTargetFlags(line, options, {state->isFirstTarget, state->planning.memoryUnit});
  line.addFlag("--every-entry", "details of every entry, not of the first only", state->planning.everyEntry);
  line.addValue(
      "--fit", "BYTES",
      "ends with a table of what else could be trained, and marks what fits this much persistent and "
      "transient memory: 256KiB",
      [state](const std::string &value) {
        Expected<uint64_t> bytes = parseBytes(value);
        if (bytes)
          state->planning.fit = *bytes;
        state->planning.fitUnit = host::findByteUnit(value).name;
        return bytes.getStatus();
      });
  line.addFlag("--train-choices", "ends with a table of what training fewer tensors would save",
               state->planning.trainChoices);
  line.addText("--report", "FILE.json", "writes every figure, step and buffer", options.report);
  line.addText("--html", "FILE.html", "writes a page that shows the arena over time", state->planning.page);
  line.addText("--dump-buffers", "FILE.csv", "writes the buffers in MiniMalloc's format",
               options.dumpBuffers);
  line.addText("--dump-ir", "DIR", "writes the IR after every phase", options.dumpIr);
  line.addFlag("--quiet", "prints nothing but warnings", options.quiet);
  line.setAction(action, [state] {
    Status status = checkOptions(state->options);
    return finishCompiling(status.isOk() ? plan(state->options, state->planning) : status,
                           state->options.model);
  });
}

} // namespace ortc::tool
