// Faults in kernels for AMD GPUs, put into the code that fibres run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace ortc::fibres {

/// One instruction of a kind, broken.
struct Fault {
  enum Kind {
    barrier, ///< of the block: left out
    product, ///< of a matrix core: left out, so that its sums stay
    sum,     ///< of floating point: the first operand alone
    part,    ///< what a rounded number leaves of a number: all of it
    swizzle, ///< a place without its exclusive or
    load,    ///< from shared memory, 16 bytes further
    store    ///< to shared memory, 16 bytes further
  };
  Kind kind;
  size_t number; ///< of all instructions of its kind in the module

  std::string name() const;
};

/// All that `module` can have; of a kind that is there many times, some, spread evenly.
std::vector<Fault> listFaults(const llvm::Module &module);

void putFault(llvm::Module &module, const Fault &fault);

} // namespace ortc::fibres
