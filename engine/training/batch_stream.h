// Batches that come one after the other, of which nobody knows how many there are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "engine/artifact/artifact.h"
#include "engine/session/session.h"
#include "support/Status.h"

namespace ortc::engine {

/// Implemented by a host program that makes its batches itself (bindings/python/data.h).
class BatchStream {
public:
  virtual ~BatchStream() = default;
  /// Begins an epoch.
  virtual Status begin(int64_t epoch) = 0;
  /// Gives the session the next batch as the inputs of an entry with this role, and says that by Session::accept();
  /// nullptr where the epoch has none left.
  virtual Status next(Session &session, uint32_t role, const Entry *&entry) = 0;
};

} // namespace ortc::engine
