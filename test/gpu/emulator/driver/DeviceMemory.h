// The memory of the device: a range of addresses, and what is known about its bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <map>

#include "test/gpu/emulator/run/Shadow.h"

namespace ortc::emulator {

class DeviceMemory {
public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory &) = delete;
  ~DeviceMemory() { close(); }

  /// Reserves addresses for so many bytes and the gaps between allocations; false: the host has none.
  bool open(uint64_t limit);
  void close();

  /// An address, aligned to kAlignment; 0: there is not enough memory.
  uint64_t allocate(uint64_t bytes);
  /// False: nothing begins there.
  bool release(uint64_t address);

  /// Where bytes of the host's memory stand for these; null: some of them do not exist.
  std::byte *find(uint64_t address, uint64_t bytes) const;
  /// Whether all of these were written.
  bool isWritten(uint64_t address, uint64_t bytes) const;
  void markWritten(uint64_t address, uint64_t bytes);
  /// Kernels may not write there any more.
  void markConstant(uint64_t address, uint64_t bytes);
  /// Forgets which blocks touched what, when numbers of launches begin again.
  void clearCells();

  const MemoryView &view() const { return memory; }
  uint64_t used() const { return usedBytes; }
  uint64_t peak() const { return peakBytes; }
  const std::map<uint64_t, uint64_t> &allocations() const { return sizes; }

private:
  uint64_t place(uint64_t bytes);

  MemoryView memory;
  uint64_t limit = 0, usedBytes = 0, peakBytes = 0;
  /// Where the next allocation goes; the highest address that ever existed.
  uint64_t next = 0, highest = 0;
  /// Address -> bytes.
  std::map<uint64_t, uint64_t> sizes;
};

} // namespace ortc::emulator
