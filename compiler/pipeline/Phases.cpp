// The phases of the compiler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/pipeline/Phases.h"

#include "llvm/ADT/STLExtras.h"

namespace ortc::pipeline {

static constexpr Phase kPhases[] = {{"import", "reading the model"},
                                    {"legalize", "legalizing the graph"},
                                    {"simplify", "simplifying"},
                                    {"loss", "adding the loss"},
                                    {"differentiate", "differentiating"},
                                    {"update", "adding the optimizer"},
                                    {"entries", "composing the entries"},
                                    {"fuse", "fusing kernels"},
                                    {"place", "ordering the steps and placing their buffers"},
                                    {"code", "linking the code"}};

llvm::ArrayRef<Phase> getPhases() { return kPhases; }

size_t findPhase(llvm::StringRef name) {
  return llvm::find_if(kPhases, [&](const Phase &phase) { return name == phase.name; }) - std::begin(kPhases);
}

} // namespace ortc::pipeline
