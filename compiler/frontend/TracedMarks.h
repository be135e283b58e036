// Marks of gradients that PyTorch's exporter leaves in its notes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The notes on nodes have the operations of the exported program, `aten.detach` and the padding row of
// `aten.embedding` among them. The exporter's optimizer removes the nodes of `aten.detach`; the notes on their readers
// still name what they read. A value that it folded may have passed through such a node or past it, which nothing
// tells.
#pragma once

#include "compiler/frontend/GradientMarks.h"

namespace ortc::frontend {

/// Adds the marks to those of the metadata, which come first. `constants` gets initializers that are detached copies.
void readTracedMarks(const Model &model, GradientMarks &marks, std::vector<std::string> &constants,
                     MarkReport &report);

} // namespace ortc::frontend
