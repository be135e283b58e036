// The command ortc plan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Text.h"
#include "tools/ortc/Commands.h"
#include "tools/ortc/Compiling.h"

namespace ortc::tool {

void addPlanCommand(Tool &tool) {
  struct State {
    CompileOptions options;
    PlanOptions planning;
    bool isFirstTarget = true;
  };
  auto state = std::make_shared<State>();
  CompileOptions &options = state->options;
  options.compileTo = "place"; // there is no artifact, so none must be named
  CommandLine line(tool, "plan");
  line.addPositional("MODEL", options.model);
  addModelFlags(line, options);
  addGradientFlags(line, options);
  addTrainingFlags(line, options);
  addTargetFlags(line, options, {state->isFirstTarget, state->planning.memoryUnit});
  line.addFlag("every-entry", state->planning.everyEntry);
  line.addValue("fit", [state](const std::string &value) {
    Expected<uint64_t> bytes = parseBytes(value);
    if (bytes)
      state->planning.fit = *bytes;
    state->planning.fitUnit = findByteUnit(value).name;
    return bytes.getStatus();
  });
  line.addFlag("train-choices", state->planning.trainChoices);
  line.addText("report", options.report);
  line.addText("html", state->planning.page);
  line.addText("dump-buffers", options.dumpBuffers);
  line.addText("dump-ir", options.dumpIr);
  line.addFlag("quiet", options.quiet);
  line.setAction([state] {
    Status status = checkOptions(state->options);
    return finishCompiling(status.isOk() ? plan(state->options, state->planning) : status,
                           state->options.model);
  });
}

} // namespace ortc::tool
