// NVIDIA's driver beside the runtime: what the GPU check asks it itself.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ortc/cuda.h"

namespace ortc::gpucheck {

/// Seconds of a clock that never goes back.
double readClock();

/// The driver that the runtime uses, in its context. What fails ends the program with a message.
class Driver {
public:
  /// The first GPU. Its context is current in this thread from here on.
  const ortc_device *open();
  void close(const ortc_device *device) const;
  /// Name, compute capability, version of the driver and memory, as JSON.
  std::string describe() const;
  /// Bytes of device memory that are not free, whoever has them.
  double countUsed() const;

  void *allocate(size_t bytes) const;
  void release(void *memory) const;
  void copyIn(void *to, const void *from, size_t bytes) const;
  /// Does not wait.
  void copyWithin(void *to, const void *from, size_t bytes) const;
  void wait() const;
  void *getLibrary() const { return library; }

private:
  void *library = nullptr;
  int number = 0; ///< of the GPU, as the driver has it
};

} // namespace ortc::gpucheck
