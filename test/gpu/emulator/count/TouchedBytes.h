// A set of bytes of device memory: a bit each, in pages that are only looked at when something is in them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ortc::emulator {

class TouchedBytes {
public:
  TouchedBytes() = default;
  TouchedBytes(const TouchedBytes &) = delete;
  ~TouchedBytes();

  /// Makes room for bytes 0 to `bytes`; empty afterwards.
  void open(uint64_t bytes);
  /// Adds 1 to 32 bytes from a multiple of their number, rounded up to a power of two.
  void add(uint64_t first, uint32_t bytes);
  uint64_t count() const;
  /// Units of 32 bytes of which one is in it.
  uint64_t countSectors() const;
  /// From the first to the last of them, summed up over the stretches that begin at `bases`, which are sorted.
  uint64_t spread(const std::vector<uint64_t> &bases) const;
  /// Adds all of these to another one, and is empty afterwards.
  void moveTo(TouchedBytes &to);
  void clear();

private:
  void notePage(uint64_t page);
  void release();

  uint32_t *bits = nullptr;
  uint8_t *isTouched = nullptr;
  uint64_t pages = 0;
  std::vector<uint64_t> touched;
};

} // namespace ortc::emulator
