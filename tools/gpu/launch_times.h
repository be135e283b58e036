// Times of single launches: takes the place of graphs in the runtime's table of the driver.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "ortc/device.h"

namespace ortc::gpucheck {

/// From here on a step of the device is launched kernel by kernel, with an event before and behind each. To be called
/// before the first program is opened, for one device of a process. `library`: the driver's.
void timeLaunches(const ortc_device *device, void *library);

/// Forgets the times of the steps so far.
void forgetTimes();

/// The launches since then as an array in JSON: for each function and number of blocks how often it was launched in a
/// step, and the mean of the microseconds that it took. Steps are to be waited for before.
std::string describeTimes();

} // namespace ortc::gpucheck
