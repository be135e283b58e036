// What `--device` names: this processor, or a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <ortc/ortc.h>
#include <string>

#include "support/Status.h"

namespace ortc::engine {

/// What steps run on. Artifacts that were opened on one must not outlive it.
class Device {
public:
  /// Opens what parseDevice() knows.
  static Status open(const std::string &name, Device &device);

  /// nullptr: this processor.
  const ortc_device *get() const { return device.get(); }
  const std::string &getName() const { return name; } ///< as it was given

private:
  struct Close {
    void operator()(const ortc_device *device) const;
  };
  std::string name = "cpu";
  std::unique_ptr<const ortc_device, Close> device;
};

/// Says what an artifact has code for where that is not the device ("" where the file cannot be read).
std::string explainTarget(const std::string &path, const Device &device);

} // namespace ortc::engine
