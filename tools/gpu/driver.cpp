// Calls of NVIDIA's driver, found by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/gpu/driver.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

#include "tools/gpu/files.h"

namespace ortc::gpucheck {

double readClock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] static void fail(ortc_status status, const std::string &text) {
  std::fprintf(stderr, "gpu-run: %s\n", text.c_str());
  std::exit(status);
}

/// Calls a function of the driver by its symbol.
template <typename... Types> static void call(void *library, const char *symbol, Types... arguments) {
  auto function = reinterpret_cast<int (*)(Types...)>(dlsym(library, symbol));
  int result = function ? function(arguments...) : -1;
  if (result)
    fail(ORTC_E_INTERNAL,
         std::string(symbol) + (function ? " fails with " + std::to_string(result) : " is missing"));
}

const ortc_device *Driver::open() {
  const ortc_device *device = nullptr;
  ortc_message message{};
  if (ortc_status status = ortc_cuda_open(0, &device, &message))
    fail(status, message.text);
  const char *name = std::getenv("ORTC_CUDA_DRIVER"); // as the runtime finds it
  library = dlopen(name && *name ? name : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fail(ORTC_E_TARGET, dlerror());
  void *context = nullptr; // the primary one, which the runtime has, too
  call(library, "cuDeviceGet", &number, 0);
  call(library, "cuDevicePrimaryCtxRetain", &context, number);
  call(library, "cuCtxSetCurrent", context);
  return device;
}

void Driver::close(const ortc_device *device) const {
  if (!device)
    return;
  call(library, "cuDevicePrimaryCtxRelease_v2", number);
  ortc_cuda_close(device);
}

std::string Driver::describe() const {
  constexpr int kMajor = 75, kMinor = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_...
  int major = 0, minor = 0, version = 0;
  char name[256] = "";
  size_t bytes = 0, unused = 0;
  call(library, "cuDeviceGetName", &name[0], static_cast<int>(sizeof name), number);
  call(library, "cuDeviceGetAttribute", &major, kMajor, number);
  call(library, "cuDeviceGetAttribute", &minor, kMinor, number);
  call(library, "cuDriverGetVersion", &version);
  call(library, "cuMemGetInfo_v2", &unused, &bytes);
  return "{\"name\": " + quote(name) + ", \"processor\": " + std::to_string(10 * major + minor) +
         ", \"cuda\": " + quote(std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10)) +
         ", \"memory\": " + std::to_string(bytes) + "}";
}

double Driver::countUsed() const {
  size_t unused = 0, all = 0;
  call(library, "cuMemGetInfo_v2", &unused, &all);
  return static_cast<double>(all - unused);
}

void *Driver::allocate(size_t bytes) const {
  void *memory = nullptr; // a CUdeviceptr is 64 bits, as a pointer is
  call(library, "cuMemAlloc_v2", &memory, bytes);
  return memory;
}

void Driver::release(void *memory) const { call(library, "cuMemFree_v2", memory); }

void Driver::copyIn(void *to, const void *from, size_t bytes) const {
  call(library, "cuMemcpyHtoDAsync_v2", to, from, bytes, static_cast<void *>(nullptr));
  wait();
}

void Driver::copyWithin(void *to, const void *from, size_t bytes) const {
  call(library, "cuMemcpyDtoDAsync_v2", to, from, bytes, static_cast<void *>(nullptr));
}

void Driver::wait() const { call(library, "cuCtxSynchronize"); }

} // namespace ortc::gpucheck
