// A matrix unit for tests: that of this machine, or one in software.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A processor without tiles refuses each tile instruction with SIGILL. The handler of the unit in software carries it
// out as the processor's manual says and goes on behind it, so that kernels run as they were generated: their encoding,
// addresses, order and configuration are what is tested, not a copy of them.
#pragma once

#include "compiler/backends/cpu/Target.h"

#include <cstdint>

namespace ortc::cpu::test {

/// While one exists, this thread may run tile instructions. At most one a process at a time.
class MatrixUnit {
public:
  MatrixUnit();
  ~MatrixUnit();
  MatrixUnit(const MatrixUnit &) = delete;
  MatrixUnit &operator=(const MatrixUnit &) = delete;

  /// This machine's widest target, with the unit.
  const Target &getTarget() const { return target; }
  bool isSoftware() const { return software; }
  /// Of the unit in software: products of two tiles so far.
  uint64_t getProducts() const;
  /// Of the unit in software: whether tiles are configured, which they must not be behind a kernel.
  bool isInUse() const;

private:
  Target target;
  bool software = false;
};

} // namespace ortc::cpu::test
