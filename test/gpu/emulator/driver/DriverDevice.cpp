// The driver's functions on devices, contexts and memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "test/gpu/emulator/driver/Driver.h"

using namespace ortc::emulator;

namespace {

struct ResultName {
  ortc_cu_result result;
  const char *name, *text;
};
constexpr ResultName kResultNames[] = {
    {ORTC_CU_SUCCESS, "CUDA_SUCCESS", "no error"},
    {ORTC_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {ORTC_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {ORTC_CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {ORTC_CU_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {ORTC_CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {ORTC_CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {ORTC_CU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {ORTC_CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {ORTC_CU_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for the device"},
    {ORTC_CU_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {ORTC_CU_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the PTX is of an unsupported version"},
    {ORTC_CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {ORTC_CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {ORTC_CU_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {ORTC_CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {ORTC_CU_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {ORTC_CU_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {ORTC_CU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {ORTC_CU_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {ORTC_CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {ORTC_CU_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {ORTC_CU_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {ORTC_CU_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not initiated in this stream"},
    {ORTC_CU_STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "dependency created on uncaptured work in another stream"},
    {ORTC_CU_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"}};

const ResultName *findName(ortc_cu_result result) {
  for (const ResultName &name : kResultNames)
    if (name.result == result)
      return &name;
  return nullptr;
}

/// Attributes as those of a middle-sized GPU.
int attributeOf(int attribute, int capability) {
  switch (attribute) {
  case ORTC_CU_MAX_THREADS_PER_BLOCK:
  case ORTC_CU_MAX_BLOCK_DIM_X:
  case ORTC_CU_MAX_BLOCK_DIM_Y:
    return 1024;
  case ORTC_CU_MAX_BLOCK_DIM_Z:
    return 64;
  case ORTC_CU_MAX_GRID_DIM_X:
    return INT32_MAX;
  case ORTC_CU_MAX_GRID_DIM_Y:
  case ORTC_CU_MAX_GRID_DIM_Z:
    return 65535;
  case ORTC_CU_MAX_SHARED_MEMORY_PER_BLOCK:
    return int(sharedLimit(capability, false));
  case ORTC_CU_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    return int(sharedLimit(capability, true));
  case ORTC_CU_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
    return int(sharedLimit(capability, true)) + 1024;
  case ORTC_CU_WARP_SIZE:
    return 32;
  case ORTC_CU_MAX_REGISTERS_PER_BLOCK:
  case ORTC_CU_MAX_REGISTERS_PER_MULTIPROCESSOR:
    return 65536;
  case ORTC_CU_CLOCK_RATE:
    return 1410000;
  case ORTC_CU_MULTIPROCESSOR_COUNT:
    return 108;
  case ORTC_CU_MEMORY_CLOCK_RATE:
    return 1215000;
  case ORTC_CU_GLOBAL_MEMORY_BUS_WIDTH:
    return 5120;
  case ORTC_CU_L2_CACHE_SIZE:
    return 40 << 20;
  case ORTC_CU_MAX_THREADS_PER_MULTIPROCESSOR:
    return 2048;
  case ORTC_CU_MAX_BLOCKS_PER_MULTIPROCESSOR:
    return 32;
  case ORTC_CU_COMPUTE_CAPABILITY_MAJOR:
    return capability / 10;
  case ORTC_CU_COMPUTE_CAPABILITY_MINOR:
    return capability % 10;
  default:
    return -1;
  }
}

/// Stands for the primary context.
int primaryContext;

} // namespace

ORTC_DRIVER cuInit(unsigned flags) {
  Call call(Call::Needs::Nothing);
  if (flags)
    return ORTC_CU_INVALID_VALUE;
  if (!call.device.retained)
    call.device.options = readOptions();
  call.device.isInitialized = true;
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuDriverGetVersion(int *version) {
  Call call(Call::Needs::Nothing);
  if (!version)
    return ORTC_CU_INVALID_VALUE;
  *version = call.device.isInitialized ? call.device.options.driver : readOptions().driver;
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuGetErrorName(ortc_cu_result result, const char **name) {
  const ResultName *found = findName(result);
  if (!name)
    return ORTC_CU_INVALID_VALUE;
  *name = found ? found->name : nullptr;
  return found ? ORTC_CU_SUCCESS : ORTC_CU_INVALID_VALUE;
}

ORTC_DRIVER cuGetErrorString(ortc_cu_result result, const char **text) {
  const ResultName *found = findName(result);
  if (!text)
    return ORTC_CU_INVALID_VALUE;
  *text = found ? found->text : nullptr;
  return found ? ORTC_CU_SUCCESS : ORTC_CU_INVALID_VALUE;
}

ORTC_DRIVER cuDeviceGetCount(int *count) {
  Call call(Call::Needs::Initialization);
  if (call && count)
    *count = 1;
  return call && !count ? ORTC_CU_INVALID_VALUE : call.result;
}

ORTC_DRIVER cuDeviceGet(ortc_cu_device *device, int ordinal) {
  Call call(Call::Needs::Initialization);
  if (!call)
    return call.result;
  if (ordinal || !device)
    return device ? ORTC_CU_INVALID_DEVICE : ORTC_CU_INVALID_VALUE;
  *device = 0;
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuDeviceGetName(char *name, int bytes, ortc_cu_device device) {
  Call call(Call::Needs::Initialization);
  if (!call)
    return call.result;
  if (device)
    return ORTC_CU_INVALID_DEVICE;
  if (!name || bytes < 1)
    return ORTC_CU_INVALID_VALUE;
  std::snprintf(name, size_t(bytes), "ortc emulator sm_%d", call.device.options.capability);
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuDeviceGetAttribute(int *value, int attribute, ortc_cu_device device) {
  Call call(Call::Needs::Initialization);
  if (!call)
    return call.result;
  if (device)
    return ORTC_CU_INVALID_DEVICE;
  int known = attributeOf(attribute, call.device.options.capability);
  if (!value || known < 0)
    return ORTC_CU_INVALID_VALUE;
  *value = known;
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuDeviceTotalMem_v2(size_t *bytes, ortc_cu_device device) {
  Call call(Call::Needs::Initialization);
  if (!call)
    return call.result;
  if (device || !bytes)
    return device ? ORTC_CU_INVALID_DEVICE : ORTC_CU_INVALID_VALUE;
  *bytes = call.device.options.memory;
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuDevicePrimaryCtxRetain(ortc_cu_context *context, ortc_cu_device device) {
  Call call(Call::Needs::Initialization);
  if (!call)
    return call.result;
  if (device || !context)
    return device ? ORTC_CU_INVALID_DEVICE : ORTC_CU_INVALID_VALUE;
  if (!call.device.retained)
    if (ortc_cu_result result = call.device.openContext())
      return result;
  ++call.device.retained;
  *context = reinterpret_cast<ortc_cu_context>(&primaryContext);
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuDevicePrimaryCtxRelease_v2(ortc_cu_device device) {
  Call call(Call::Needs::Initialization);
  if (!call)
    return call.result;
  if (device)
    return ORTC_CU_INVALID_DEVICE;
  if (!call.device.retained)
    return ORTC_CU_INVALID_CONTEXT;
  if (--call.device.retained == 0)
    call.device.closeContext();
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuCtxSetCurrent(ortc_cu_context context) {
  Call call(Call::Needs::Initialization);
  if (!call)
    return call.result;
  if (context && (context != reinterpret_cast<ortc_cu_context>(&primaryContext) || !call.device.retained))
    return ORTC_CU_INVALID_CONTEXT;
  currentContext = context ? call.device.contextNumber : 0;
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuCtxSynchronize(void) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  return call.device.isCapturing() ? ORTC_CU_STREAM_CAPTURE_UNSUPPORTED : call.device.drainAll();
}

ORTC_DRIVER cuMemGetInfo_v2(size_t *unused, size_t *all) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!unused || !all)
    return ORTC_CU_INVALID_VALUE;
  *all = call.device.options.memory;
  *unused = *all - call.device.memory.used();
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuMemAlloc_v2(ortc_cu_pointer *memory, size_t bytes) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!memory || !bytes)
    return ORTC_CU_INVALID_VALUE;
  if (call.device.isCapturing())
    return ORTC_CU_STREAM_CAPTURE_UNSUPPORTED;
  uint64_t address = call.device.memory.allocate(bytes);
  if (!address)
    return ORTC_CU_OUT_OF_MEMORY;
  *memory = address;
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuMemFree_v2(ortc_cu_pointer memory) {
  Call call(Call::Needs::Context);
  if (!call || !memory)
    return call.result;
  if (call.device.isCapturing())
    return ORTC_CU_STREAM_CAPTURE_UNSUPPORTED;
  if (ortc_cu_result result = call.device.drainAll()) // it waits for the device
    return result;
  return call.device.memory.release(memory) ? ORTC_CU_SUCCESS : ORTC_CU_INVALID_VALUE;
}

ORTC_DRIVER cuMemAllocHost_v2(void **memory, size_t bytes) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!memory || !bytes)
    return ORTC_CU_INVALID_VALUE;
  if (call.device.isCapturing())
    return ORTC_CU_STREAM_CAPTURE_UNSUPPORTED;
  constexpr size_t page = 4096;
  void *made = std::aligned_alloc(page, (bytes + page - 1) / page * page);
  if (!made)
    return ORTC_CU_OUT_OF_MEMORY;
  std::memset(made, 0xff, bytes);
  call.device.hostMemory[made] = bytes;
  *memory = made;
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuMemFreeHost(void *memory) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (call.device.isCapturing())
    return ORTC_CU_STREAM_CAPTURE_UNSUPPORTED;
  if (ortc_cu_result result = call.device.drainAll())
    return result;
  auto found = call.device.hostMemory.find(memory);
  if (found == call.device.hostMemory.end())
    return ORTC_CU_INVALID_VALUE;
  std::free(memory);
  call.device.hostMemory.erase(found);
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuPointerGetAttributes(unsigned count, int *attributes, void **values, ortc_cu_pointer pointer) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!count || !attributes || !values)
    return ORTC_CU_INVALID_VALUE;
  for (unsigned i = 0; i < count; i++) {
    if (!values[i] || attributes[i] != ORTC_CU_POINTER_MEMORY_TYPE)
      return ORTC_CU_INVALID_VALUE;
    // Of memory that the driver does not know it says zero.
    const bool isDevice = call.device.memory.find(pointer, 1) != nullptr;
    const bool isPinned = !isDevice && call.device.isPinned(pointer, 1);
    *static_cast<unsigned *>(values[i]) = isDevice   ? ORTC_CU_MEMORY_DEVICE
                                          : isPinned ? ORTC_CU_MEMORY_HOST
                                                     : 0;
  }
  return ORTC_CU_SUCCESS;
}
