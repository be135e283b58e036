// The code that an artifact has for devices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "ortc/device.h"

namespace ortc::test {

/// An image of a code section, with its kernels.
struct Image {
  std::string target, bytes;
  uint32_t kind = 0; ///< enum ortc_image_kind
  std::vector<std::string> kernels;
  std::vector<ortc_device_kernel> rows;
};

/// Of an artifact's file, for all its targets; damage is a failure of the test.
std::vector<Image> imagesOf(const std::string &file);

} // namespace ortc::test
