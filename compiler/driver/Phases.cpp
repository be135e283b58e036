// The names of the phases.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Phases.h"

namespace ortc::driver {

const char *const kPhaseNames[] = {"import",  "legalize", "simplify", "loss", "differentiate", "update",
                                   "entries", "fuse",     "place",    "code", nullptr};

const char *const kPhaseWork[] = {"reading the model",
                                  "legalizing the graph",
                                  "simplifying",
                                  "adding the loss",
                                  "differentiating",
                                  "adding the optimizer",
                                  "composing the entries",
                                  "fusing kernels",
                                  "ordering the steps and placing their buffers",
                                  "making code"};

bool checkPhase(const CompileOptions &options, bool measures, std::string &error) {
  if (options.compileTo.empty())
    return true;
  std::string known;
  for (size_t i = 0; kPhaseNames[i]; ++i) {
    std::string name = kPhaseNames[i];
    if (options.compileTo != name) {
      known += (i ? ", " : "") + name;
      continue;
    }
    if (measures && name != "code")
      error = "--tune measures code, and --compile-to " + name + " ends before it";
    else if (name != "place" && name != "code" && !options.dumpBuffers.empty())
      error = "--dump-buffers shows the memory plan, and --compile-to " + name +
              " ends before it; compile to place or further";
    return error.empty();
  }
  error = "--compile-to '" + options.compileTo + "' is not a phase; phases are " + known;
  return false;
}

} // namespace ortc::driver
