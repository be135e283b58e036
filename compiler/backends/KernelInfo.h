// What is known of a kernel's code, whatever the machine.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ortc::backends {

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

/// What the caller of a kernel must know.
struct KernelInfo {
  std::string name;                    ///< symbol of the kernel
  int64_t chunks = 1;                  ///< independent pieces of work, fixed by shape
  int64_t workspaceBytesPerWorker = 0; ///< multiple of 64; 0 = the kernel has no workspace argument
  bool isParallel = false;             ///< worth more than one thread: its step hands it to the pool
  KernelBlocking blocking;
  double seconds =
      0; ///< that a call should take where its target knows by the code, not by the work alone; else 0
  std::map<std::string, int64_t>
      steps; ///< of the main loops of functions that are products, by their symbols
};

} // namespace ortc::backends
