// What the runtime declares of AMD's driver, compared with its headers where a machine has them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#if __has_include(<hip/hip_runtime_api.h>)
#define __HIP_PLATFORM_AMD__
#define __HIP_DISABLE_CPP_FUNCTIONS__ // overloads of what is compared
#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <string>

#include "runtime/hip/hip_symbols.cpp" // its numbers are its own

namespace ortc::device {
namespace {

using Properties = hipDeviceProp_tR0600;
static_assert(kPropertyBytes == sizeof(Properties) && kName == offsetof(Properties, gcnArchName) &&
              kNameBytes == sizeof(Properties::gcnArchName));
static_assert(kAmd.outOfMemory == hipErrorOutOfMemory && kAmd.noDevice == hipErrorNoDevice);
static_assert(kAmd.mostShared == hipDeviceAttributeMaxSharedMemoryPerBlock);
static_assert(kAmd.memoryType == HIP_POINTER_ATTRIBUTE_MEMORY_TYPE &&
              kAmd.deviceMemory == hipMemoryTypeDevice);
// Written as numbers, because they are those of both vendors.
static_assert(hipStreamNonBlocking == 1 && hipEventDisableTiming == 2 &&
              hipStreamCaptureModeThreadLocal == 1);

/// Whether a function takes and returns as many bytes as the table says.
template <typename Header, typename Own> constexpr bool kAgrees = false;
template <typename HeaderResult, typename OwnResult, typename... Header, typename... Own>
constexpr bool kAgrees<HeaderResult (*)(Header...), OwnResult (*)(Own...)> = [] {
  if constexpr (sizeof...(Header) == sizeof...(Own))
    return sizeof(HeaderResult) == sizeof(OwnResult) && ((sizeof(Header) == sizeof(Own)) && ...);
  return false;
}();

TEST(HipHeaderTest, EachSymbolIsWhatTheTableDeclares) {
  std::string names;
#define NONE(function) names += '\0';
#define NAME(function, symbol)                                                                               \
  static_assert(kAgrees<decltype(&::symbol), decltype(Driver::function)>);                                   \
  (names += #symbol) += '\0';
  NAME(initialise, hipInit)
  NAME(getVersion, hipDriverGetVersion)
  NAME(describe, hipDrvGetErrorString)
  NAME(countDevices, hipGetDeviceCount)
  NAME(getDevice, hipDeviceGet)
  NAME(nameDevice, hipDeviceGetName)
  NAME(getAttribute, hipDeviceGetAttribute)
  NONE(retainContext)
  NONE(releaseContext)
  NONE(useContext)
  NAME(useDevice, hipSetDevice)
  NAME(getProperties, hipGetDevicePropertiesR0600)
  NAME(countMemory, hipMemGetInfo)
  NAME(allocate, hipMalloc)
  NAME(release, hipFree)
  NAME(allocatePinned, hipMemAllocHost)
  NAME(releasePinned, hipHostFree)
  NAME(copyIn, hipMemcpyHtoDAsync)
  NAME(copyOut, hipMemcpyDtoHAsync)
  NAME(copyWithin, hipMemcpyDtoDAsync)
  NAME(fillBytes, hipMemsetD8Async)
  NAME(fillWords, hipMemsetD32Async)
  NAME(loadImage, hipModuleLoadDataEx)
  NAME(unloadImage, hipModuleUnload)
  NAME(getFunction, hipModuleGetFunction)
  NONE(setAttribute)
  NAME(launch, hipModuleLaunchKernel)
  NAME(createStream, hipStreamCreateWithFlags)
  NAME(destroyStream, hipStreamDestroy)
  NAME(awaitStream, hipStreamSynchronize)
  NAME(beginCapture, hipStreamBeginCapture)
  NAME(endCapture, hipStreamEndCapture)
  NAME(instantiate, hipGraphInstantiateWithFlags)
  NAME(launchGraph, hipGraphLaunch)
  NAME(destroyGraphCode, hipGraphExecDestroy)
  NAME(destroyGraph, hipGraphDestroy)
  NAME(createEvent, hipEventCreateWithFlags)
  NAME(recordEvent, hipEventRecord)
  NAME(awaitEvent, hipEventSynchronize)
  NAME(destroyEvent, hipEventDestroy)
  NAME(getPointerAttributes, hipDrvPointerGetAttributes)
  EXPECT_EQ(names, std::string(kSymbols, sizeof kSymbols));
}

} // namespace
} // namespace ortc::device

#else

TEST(HipHeaderTest, EachSymbolIsWhatTheTableDeclares) {
  GTEST_SKIP() << "there is no hip/hip_runtime_api.h: it comes with ROCm";
}

#endif
