// For the files that define the driver's functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/gpu/emulator/cuda_driver.h"
#include "test/gpu/emulator/driver/Device.h"

/// Before the name of a function that the library exports.
#define ORTC_DRIVER extern "C" __attribute__((visibility("default"))) ortc_cu_result

// Every definition must have the type that the runtime calls.
#define ORTC_DECLARE(symbol, parameters) ORTC_DRIVER symbol parameters;
ORTC_CU_FUNCTIONS(ORTC_DECLARE)
#undef ORTC_DECLARE
