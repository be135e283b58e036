// AMD's driver interface, which is HIP's: its names and numbers, declared without its headers, and which code suits
// which GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names and numbers are those of hip/hip_runtime_api.h and hip/driver_types.h of HIP 6.3, and the same in HIP 7; what
// a function does on AMD's GPUs is taken from ROCm's CLR, where the header leaves it open. libamdhip64 has all of
// them since version 6.0.
#include "ortc/hip.h"

#include <stdio.h>

#include "runtime/device/gpu.h"

namespace ortc::device {
namespace {

constexpr char kSymbols[] =
    "hipInit\0"
    "hipDriverGetVersion\0"
    "hipDrvGetErrorString\0"
    "hipGetDeviceCount\0"
    "hipDeviceGet\0"
    "hipDeviceGetName\0"
    "hipDeviceGetAttribute\0"
    // Contexts are deprecated there: a thread has a device.
    "\0"
    "\0"
    "\0"
    "hipSetDevice\0"
    "hipGetDevicePropertiesR0600\0"
    "hipMemGetInfo\0"
    "hipMalloc\0"
    "hipFree\0"
    "hipMemAllocHost\0"
    "hipHostFree\0"
    "hipMemcpyHtoDAsync\0"
    "hipMemcpyDtoHAsync\0"
    "hipMemcpyDtoDAsync\0"
    "hipMemsetD8Async\0"
    "hipMemsetD32Async\0"
    "hipModuleLoadDataEx\0"
    "hipModuleUnload\0"
    "hipModuleGetFunction\0"
    // hipFuncSetAttribute takes functions of the host, and shared memory needs no leave.
    "\0"
    "hipModuleLaunchKernel\0"
    "hipStreamCreateWithFlags\0"
    "hipStreamDestroy\0"
    "hipStreamSynchronize\0"
    "hipStreamBeginCapture\0"
    "hipStreamEndCapture\0"
    "hipGraphInstantiateWithFlags\0"
    "hipGraphLaunch\0"
    "hipGraphExecDestroy\0"
    "hipGraphDestroy\0"
    "hipEventCreateWithFlags\0"
    "hipEventRecord\0"
    "hipEventSynchronize\0"
    "hipEventDestroy\0"
    "hipDrvPointerGetAttributes";
static_assert(countSymbols(kSymbols, sizeof kSymbols) == kDriverFunctions, "a symbol for each function");

// By enum ortc_amdgpu_feature.
constexpr char kProcessors[ORTC_AMDGPU_FEATURES][8] = {"gfx90a", "gfx942", "gfx1100"};

constexpr size_t kPropertyBytes = 1472, kName = 1160,
                 kNameBytes = 256; // of hipDeviceProp_tR0600, its gcnArchName

/// The compute capability does not tell processors apart: a gfx90a has that of a gfx900. Their names do, which stand in
/// the device's properties, behind them modes: "gfx90a:sramecc+:xnack-". Code is for each mode.
Result identify(Device &device) {
  char properties[2 * kPropertyBytes] = ""; // more than there is today
  Result result = device.driver.getProperties(properties, device.handle);
  const char *name = properties + kName;
  auto bytes = (unsigned)strnlen(name, kNameBytes);
  auto *modes = (const char *)memchr(name, ':', bytes);
  if (modes)
    bytes = (unsigned)(modes - name);
  snprintf(device.model, sizeof device.model, "a %.*s", (int)bytes, name);
  device.processor = ORTC_AMDGPU_FEATURES;
  for (int i = 0; i < ORTC_AMDGPU_FEATURES; i++)
    if (!strcmp(device.model + strlen("a "), kProcessors[i])) {
      device.processor = i;
      device.table.features = (uint64_t)1 << i;
    }
  return result;
}

/// A section has code for one processor, and the runtime has chosen that of the device.
int rateImage(const ortc_device_image &image, int) { return image.kind == ORTC_IMAGE_HSACO; }

void nameImage(const ortc_device_image &image, char text[48]) {
  strcpy(text, image.kind == ORTC_IMAGE_HSACO ? "machine code" : "an unknown kind of code");
}

constexpr Vendor kAmd = {
    "AMD",
    "ORTC_HIP_DRIVER",
    "libamdhip64.so.7\0libamdhip64.so.6\0libamdhip64.so\0",
    kSymbols,
    "a gfx90a, gfx942 or gfx1100",
    /*outOfMemory=*/2,    // hipErrorOutOfMemory
    /*noDevice=*/100,     // hipErrorNoDevice
    /*mostShared=*/74,    // hipDeviceAttributeMaxSharedMemoryPerBlock
    /*dynamicShared=*/-1, // no setAttribute
    /*memoryType=*/2,     // HIP_POINTER_ATTRIBUTE_MEMORY_TYPE
    /*deviceMemory=*/2,   // hipMemoryTypeDevice, since HIP 6
    /*options=*/0,        // all are ignored
    /*errorLog=*/0,
    /*errorLogBytes=*/0,
    ORTC_ARCH_AMDGPU,
    identify,
    rateImage,
    nameImage,
    /*isTooOld=*/nullptr,
};

} // namespace
} // namespace ortc::device

extern "C" {

ortc_status ortc_hip_open(uint32_t ordinal, const ortc_device **device, ortc_message *message) {
  return ortc::device::openDevice(ortc::device::kAmd, ordinal, device, message);
}

void ortc_hip_close(const ortc_device *device) { ortc::device::closeDevice(device); }
}
