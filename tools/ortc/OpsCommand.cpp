// The command ortc ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/OperatorList.h"
#include "tools/ortc/Commands.h"

namespace ortc::tool {

void addOpsCommand(Tool &tool) {
  struct State {
    bool json = false, markdown = false;
  };
  auto state = std::make_shared<State>();
  CommandLine line(tool, "ops");
  line.addFlag("json", state->json);
  line.addFlag("markdown", state->markdown);
  line.setAction([state] {
    if (state->json && state->markdown)
      return reportError("--json and --markdown are both given; choose one", 2);
    auto format = state->json       ? legalize::ListFormat::json
                  : state->markdown ? legalize::ListFormat::markdown
                                    : legalize::ListFormat::text;
    std::fputs(legalize::formatOperators(legalize::listOperators(), format).c_str(), stdout);
    return 0;
  });
}

} // namespace ortc::tool
