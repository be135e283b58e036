// How kernels are cut, as far as a measurement may decide about it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/KernelInfo.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/LogicalResult.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ortc::cpu {

using backends::KernelBlocking;
using backends::KernelChoice;
using backends::KernelChoices;

/// The choice for `key`; null without. `choices` may be null.
inline const KernelChoice *findChoice(const KernelChoices *choices, const std::string &key) {
  if (!choices)
    return nullptr;
  auto found = choices->byKey.find(key);
  return found == choices->byKey.end() ? nullptr : &found->second;
}

/// KernelBlocking::imbalance where chunks are handed to whoever is free, in order.
double findImbalance(const std::vector<int64_t> &chunks, int64_t workers);
/// The same for `chunks` equal ones.
double findImbalance(int64_t chunks, int64_t workers);

/// "rows 6, vectors 2".
std::string describe(const KernelChoice &choice);

/// Fails with a diagnostic: the choice for this key is impossible.
llvm::LogicalResult refuseChoice(mlir::MLIRContext *context, const KernelChoices &choices,
                                 const std::string &key);

} // namespace ortc::cpu
