// NVIDIA's driver interface: its names and numbers, declared without its headers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/driver.h"

namespace ortc::gpu {

// Those that the library exports: headers hide the versions behind macros.
static constexpr char kSymbols[] = "cuInit\0"
                                   "cuDriverGetVersion\0"
                                   "cuGetErrorString\0"
                                   "cuDeviceGetCount\0"
                                   "cuDeviceGet\0"
                                   "cuDeviceGetName\0"
                                   "cuDeviceGetAttribute\0"
                                   "cuDevicePrimaryCtxRetain\0"
                                   "cuDevicePrimaryCtxRelease_v2\0"
                                   "cuCtxSetCurrent\0"
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
                                   "cuPointerGetAttribute";

constexpr unsigned count(const char *text, size_t bytes) {
  unsigned found = 0;
  for (size_t i = 0; i < bytes; i++)
    found += !text[i];
  return found;
}
static_assert(count(kSymbols, sizeof kSymbols) == kDriverFunctions, "a symbol for each function");

const Vendor kVendor = {
    "ORTC_CUDA_DRIVER",  "libcuda.so.1", kSymbols, "NVIDIA",
    /*outOfMemory=*/2,
    /*noDevice=*/100,
    /*oldImage=*/222, // CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    /*major=*/75,
    /*minor=*/76,
    /*mostShared=*/97,   // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    /*dynamicShared=*/8, // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    /*memoryType=*/2,    // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    /*errorLog=*/5,
    /*errorLogBytes=*/6,
    /*deviceMemory=*/2,  ORTC_ARCH_PTX,
};

uint64_t getFeatures(int processor) {
  static const uint8_t kProcessors[] = {80, 86, 89, 90, 100, 120};
  static_assert(sizeof kProcessors == ORTC_PTX_FEATURES, "one for each bit");
  uint64_t features = 0;
  for (unsigned i = 0; i < sizeof kProcessors; i++)
    features |= (uint64_t)(processor >= kProcessors[i]) << i;
  return features;
}

int rateImage(const ortc_device_image &image, int processor) {
  if (image.processor > (unsigned)processor)
    return 0;
  if (image.kind == ORTC_IMAGE_CUBIN && image.processor / 10 == (unsigned)processor / 10)
    return 2;
  return image.kind == ORTC_IMAGE_PTX;
}

} // namespace ortc::gpu
