// What ortc-plan does: reads a packing problem, packs each of its pools, and writes the offsets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "support/Status.h"

namespace ortc::tool {

struct PackOptions {
  std::string input, output; ///< CSV files; without an output only the figures are printed
  std::optional<uint64_t>
      capacity; ///< of every pool that has none of its own; without one: as low as possible
  std::map<uint32_t, uint64_t> capacities; ///< by number of the pool
  uint64_t work = 0;                       ///< limit of the exact search of a pool
};

/// Prints the figures of every pool. What is written has passed the validator and fits.
Status packFile(const PackOptions &options);

} // namespace ortc::tool
