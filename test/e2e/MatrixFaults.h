// Faults for kernels that multiply matrices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

namespace ortc::test {

/// A fault, as $ORTC_EMULATOR_MUTATE takes it, and the instruction for messages.
struct Fault {
  std::string text, instruction;
};

/// Of all kernels that have products on tensor cores: waits, barriers, copies, swizzles, fragments, products, sums and
/// exchanges, each broken by itself. Of what is there many times, some.
std::vector<Fault> listMatrixFaults(const std::string &ptx);

} // namespace ortc::test
