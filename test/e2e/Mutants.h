// Faults that the emulator of a GPU can put into the kernels of a module.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

namespace ortc::test {

struct Mutant {
  enum Kind { Barrier, Index, Alignment, StatusTest, Kinds };
  Kind kind;
  std::string text;        ///< as $ORTC_EMULATOR_MUTATE takes it
  std::string instruction; ///< of the PTX, for messages
  std::string outside;     ///< but for a barrier: the same access, to where there is no memory
};

/// All of them, kernel by kernel:
///   Barrier     a barrier of the block is removed
///   Index       a load or store goes to the element behind
///   Alignment   a load or store of more than a byte goes to the byte behind
///   StatusTest  a kernel finds that no step has failed, whatever the status is
/// The status is read by every kernel through its last parameter, without an offset.
std::vector<Mutant> listMutants(const std::string &ptx);

} // namespace ortc::test
