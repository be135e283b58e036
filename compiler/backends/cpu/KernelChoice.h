// How kernels are cut, as far as a measurement may decide about it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/LogicalResult.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ortc::cpu {

/// What of a kernel's plan changes none of its numbers, as whole numbers by name: "rows" and "vectors" of the register
/// tile, columns of a chunk, ... Which names there are, and what they may be, the generators say.
using KernelChoice = std::map<std::string, int64_t>;

/// Choices to take in place of the generators' own.
struct KernelChoices {
  std::map<std::string, KernelChoice> byKey; ///< of KernelBlocking
  std::string source;                        ///< where they are from, for messages
};

/// How a kernel is cut and how else it could be.
struct KernelBlocking {
  /// What the choice was made for: operation, type, sizes and strides. Kernels with the same key have the same choices.
  /// Empty where there is nothing to choose.
  std::string key;
  KernelChoice choice;
  bool isGiven = false;                 ///< taken from KernelChoices
  std::vector<KernelChoice> neighbours; ///< choices that differ in one respect
  double imbalance = 1; ///< the work of the busiest of the target's workers as a multiple of the mean
};

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
