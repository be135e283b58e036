// The command ortc check.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "check/CheckGradients.h"
#include "tools/ortc/Commands.h"
#include "tools/ortc/Compiling.h"

#include <iostream>

namespace ortc::tool {

/// "arith.mulf:0" or "arith.mulf:0:1.5".
static Expected<GradientMutation> parseMutation(const std::string &text) {
  size_t colon = text.find(':'), second = text.find(':', colon + 1);
  GradientMutation mutation;
  int64_t operand = -1;
  mutation.operation = text.substr(0, colon);
  bool isGood = colon != std::string::npos &&
                parseInteger(text.substr(colon + 1, second - colon - 1), operand) && operand >= 0 &&
                (second == std::string::npos || parseNumber(text.substr(second + 1), mutation.factor));
  if (!isGood)
    return Status::refusal("'" + text + "' is not OPERATION:OPERAND[:FACTOR]");
  mutation.operand = static_cast<unsigned>(operand);
  return mutation;
}

void addCheckCommand(Tool &tool) {
  auto options = std::make_shared<check::CheckOptions>();
  CompileOptions &compile = options->compile;
  CommandLine line(tool, "check");
  line.addPositional("MODEL", compile.model);
  addModelFlags(line, compile);
  addGradientFlags(line, compile);
  line.addText("data", options->data);
  line.addText("load", options->load);
  line.addValue("tolerance", [options](const std::string &text) {
    double value = 0;
    bool isGood = parseNumber(text, value) && value > 0;
    options->tolerance = value;
    return isGood ? Status() : Status::refusal("'" + text + "' must be a number above 0");
  });
  line.addValue("against", [options](const std::string &text) {
    options->against =
        text == "evaluator" ? check::CheckAgainst::Evaluator : check::CheckAgainst::Differences;
    return text == "evaluator" || text == "differences"
               ? Status()
               : Status::refusal("'" + text + "' is neither differences nor evaluator");
  });
  addKernelCacheFlag(line, compile);
  line.addHidden("mutate-gradient", [options](const std::string &text) {
    return parseMutation(text).moveTo(options->compile.mutation);
  });
  line.setAction([options] {
    check::CheckResult result;
    Status status = check::checkGradients(*options, result);
    printNotes(result.notes, result.warnings);
    std::cout << result.table << std::flush;
    return !status.isOk() ? finishCompiling(status, options->compile.model) : result.isGood ? 0 : 1;
  });
}

} // namespace ortc::tool
