// NVIDIA's driver interface: its names and numbers, declared without its headers, and which code suits which GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/cuda.h"

#include <stdio.h>

#include "runtime/device/gpu.h"

namespace ortc::device {
namespace {

// Those that the library exports: headers hide the versions behind macros.
constexpr char kSymbols[] = "cuInit\0"
                            "cuDriverGetVersion\0"
                            "cuGetErrorString\0"
                            "cuDeviceGetCount\0"
                            "cuDeviceGet\0"
                            "cuDeviceGetName\0"
                            "cuDeviceGetAttribute\0"
                            "cuDevicePrimaryCtxRetain\0"
                            "cuDevicePrimaryCtxRelease_v2\0"
                            "cuCtxSetCurrent\0"
                            "\0" // no useDevice
                            "\0" // no getProperties
                            "cuMemGetInfo_v2\0"
                            "cuMemAlloc_v2\0"
                            "cuMemFree_v2\0"
                            "cuMemAllocHost_v2\0"
                            "cuMemFreeHost\0"
                            "cuMemcpyHtoDAsync_v2\0"
                            "cuMemcpyDtoHAsync_v2\0"
                            "cuMemcpyDtoDAsync_v2\0"
                            "cuMemsetD8Async\0"
                            "cuMemsetD32Async\0"
                            "cuModuleLoadDataEx\0"
                            "cuModuleUnload\0"
                            "cuModuleGetFunction\0"
                            "cuFuncSetAttribute\0"
                            "cuLaunchKernel\0"
                            "cuStreamCreate\0"
                            "cuStreamDestroy_v2\0"
                            "cuStreamSynchronize\0"
                            "cuStreamBeginCapture_v2\0"
                            "cuStreamEndCapture\0"
                            "cuGraphInstantiateWithFlags\0"
                            "cuGraphLaunch\0"
                            "cuGraphExecDestroy\0"
                            "cuGraphDestroy\0"
                            "cuEventCreate\0"
                            "cuEventRecord\0"
                            "cuEventSynchronize\0"
                            "cuEventDestroy_v2\0"
                            "cuPointerGetAttributes";

static_assert(countSymbols(kSymbols, sizeof kSymbols) == kDriverFunctions, "a symbol for each function");

Result identify(Device &device) {
  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
  constexpr int kMajor = 75, kMinor = 76;
  int major = 0, minor = 0;
  Result result = device.driver.getAttribute(&major, kMajor, device.handle);
  if (!result)
    result = device.driver.getAttribute(&minor, kMinor, device.handle);
  device.processor = 10 * major + minor;
  snprintf(device.model, sizeof device.model, "an sm_%d", device.processor);
  static const uint8_t kProcessors[] = {80, 86, 89, 90, 100, 120};
  static_assert(sizeof kProcessors == ORTC_PTX_SM_90A, "one for each bit before that");
  for (unsigned i = 0; i < sizeof kProcessors; i++)
    device.table.features |= (uint64_t)(device.processor >= kProcessors[i]) << i;
  device.table.features |= (uint64_t)(device.processor == 90) << ORTC_PTX_SM_90A;
  return result;
}

int rateImage(const ortc_device_image &image, int processor) {
  if (image.processor > (unsigned)processor)
    return 0;
  if (image.kind == ORTC_IMAGE_CUBIN && image.processor / 10 == (unsigned)processor / 10)
    return 2;
  return image.kind == ORTC_IMAGE_PTX;
}

void nameImage(const ortc_device_image &image, char text[48]) {
  const char *kind = image.kind == ORTC_IMAGE_PTX     ? "PTX"
                     : image.kind == ORTC_IMAGE_CUBIN ? "machine code"
                                                      : "an unknown kind of code";
  snprintf(text, 48, "%s for sm_%u", kind, image.processor);
}

bool isTooOld(Result result, const ortc_device_image &image, const char *data, int driverVersion,
              char text[96]) {
  if (result != 222 /*CUDA_ERROR_UNSUPPORTED_PTX_VERSION*/ || image.kind != ORTC_IMAGE_PTX)
    return false;
  // Comments, then ".version 9.0".
  char version[8];
  const char *found = strstr(data, ".version");
  if (!found || sscanf(found, ".version %7[0-9.]", version) != 1)
    strcpy(version, "?");
  snprintf(text, 96, "(CUDA %d.%d) is too old for the artifact, whose code is PTX %s", driverVersion / 1000,
           driverVersion / 10 % 100, version);
  return true;
}

constexpr Vendor kNvidia = {
    "NVIDIA",
    "ORTC_CUDA_DRIVER",
    "libcuda.so.1\0",
    kSymbols,
    "at least an sm_80",
    /*outOfMemory=*/2,
    /*noDevice=*/100,
    /*mostShared=*/97,   // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    /*dynamicShared=*/8, // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    /*memoryType=*/2,    // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    /*deviceMemory=*/2,  // CU_MEMORYTYPE_DEVICE
    /*options=*/2,
    /*errorLog=*/5,      // CU_JIT_ERROR_LOG_BUFFER
    /*errorLogBytes=*/6, // CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
    ORTC_ARCH_PTX,
    identify,
    rateImage,
    nameImage,
    isTooOld,
};

} // namespace
} // namespace ortc::device

extern "C" {

ortc_status ortc_cuda_open(uint32_t ordinal, const ortc_device **device, ortc_message *message) {
  return ortc::device::openDevice(ortc::device::kNvidia, ordinal, device, message);
}

void ortc_cuda_close(const ortc_device *device) { ortc::device::closeDevice(device); }
}
