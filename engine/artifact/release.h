// Handles of the runtime that are this process's, or somebody else's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace ortc::engine {

/// Deletes a handle with `End`, unless somebody else keeps it.
template <auto End> struct Release {
  Release() : isShared(false) {}
  explicit Release(bool isShared) : isShared(isShared) {}
  bool isShared;
  template <typename Handle> void operator()(Handle *handle) const {
    if (!isShared)
      End(handle);
  }
};

} // namespace ortc::engine
