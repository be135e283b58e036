// The device of $ORTC_CUDA_DRIVER in this process, and what the emulator of a GPU is told.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

#include "ortc/cuda.h"

namespace ortc::test {

/// An environment variable while this lives. Processes that are started see it, and so does the emulator, which reads
/// its variables when a device is opened.
class EnvironmentVariable {
public:
  EnvironmentVariable(const std::string &name, const std::string &value) : name(name) {
    if (const char *before = std::getenv(name.c_str()))
      old = before, had = true;
    setenv(name.c_str(), value.c_str(), 1);
  }
  ~EnvironmentVariable() { had ? setenv(name.c_str(), old.c_str(), 1) : unsetenv(name.c_str()); }
  EnvironmentVariable(const EnvironmentVariable &) = delete;
  EnvironmentVariable &operator=(const EnvironmentVariable &) = delete;

private:
  std::string name, old;
  bool had = false;
};

/// Failures to open it are failures of the test. It outlives the sessions on it.
class Device {
public:
  Device() {
    ortc_message why{};
    EXPECT_EQ(ortc_cuda_open(0, &host.device, &why), ORTC_OK) << why.text;
  }
  ~Device() { ortc_cuda_close(host.device); }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  ortc_host host = ORTC_INIT(ortc_host);
};

} // namespace ortc::test
