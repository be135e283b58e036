// Operators that only this compiler knows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   FakeQuantize(x, minimum, maximum, [scale offset]) -> y    rounding that is trained through (FakeQuantizers.h)
//   Detach(x) -> y                                            x, through which no gradient goes
//   StraightThrough(value, input) -> y                        value; its whole gradient goes to the input, which is
//                                                             of the same shape and type
//   Embedding(table, indices) -> y                            Gather along the first axis; lookups of the row `padding`
//                                                             give the table no gradient. Negative rows count from
//                                                             the end
//   ByMode(training, inference) -> y                          the one or the other, by what the program is for; the
//                                                             second is spread to the shape of the first
#pragma once

#include "compiler/frontend/GraphEdits.h"

#include <string_view>

namespace ortc::frontend {

inline constexpr char kOwnDomain[] = "ai.ortc", kFakeQuantize[] = "FakeQuantize", kDetach[] = "Detach",
                      kStraightThrough[] = "StraightThrough", kEmbedding[] = "Embedding",
                      kByMode[] = "ByMode", kPaddingRow[] = "padding";

inline bool isOwn(const proto::NodeProto &node, std::string_view type) {
  return node.domain() == kOwnDomain && node.op_type() == type;
}

/// Imports the domain where it is not imported yet.
template <typename Importer> void importOwnDomain(Importer &importer) {
  for (const auto &import : importer.opset_import())
    if (import.domain() == kOwnDomain)
      return;
  auto *own = importer.add_opset_import();
  own->set_domain(kOwnDomain);
  own->set_version(1);
}

template <typename Importer> void dropOwnDomain(Importer &importer) {
  removeIf(*importer.mutable_opset_import(),
           [](const auto &import, int) { return import.domain() == kOwnDomain; });
}

} // namespace ortc::frontend
