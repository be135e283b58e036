// Entries of metadata, which models, graphs and nodes of ONNX have alike.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string_view>

namespace ortc::frontend {

/// The value of the first entry with a key, a view of the message's; empty where there is none.
template <typename Message> std::string_view findMetadata(const Message &message, std::string_view key) {
  for (const auto &entry : message.metadata_props())
    if (entry.key() == key)
      return entry.value();
  return {};
}

} // namespace ortc::frontend
