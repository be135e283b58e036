// The functions of a GPU's driver that the runtime calls, under names of no vendor.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The logic of this folder knows the driver by this table alone. runtime/cuda/cuda_symbols.cpp and
// runtime/hip/hip_symbols.cpp say how a vendor names the functions, numbers the constants and tells processors apart;
// types are those of NVIDIA's interface, which AMD's follows.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ortc/device.h"

namespace ortc::device {

/// What every function returns; the numbers differ by vendor.
using Result = int;
using Address = uint64_t; ///< of device memory
using Context = struct ContextTag *;
using Image = struct ImageTag *; ///< a loaded module
using Function = struct FunctionTag *;
using Stream = struct StreamTag *;
using Event = struct EventTag *;
using Graph = struct GraphTag *;
using GraphCode = struct GraphCodeTag *; ///< a graph that can be launched

// X(name, parameters), in the order of the vendor's symbols. A vendor has either contexts or useDevice.
#define ORTC_DRIVER_FUNCTIONS(X)                                                                             \
  X(initialise, (unsigned flags))                                                                            \
  X(getVersion, (int *version))                                                                              \
  X(describe, (Result result, const char **text))                                                            \
  X(countDevices, (int *count))                                                                              \
  X(getDevice, (int *device, int ordinal))                                                                   \
  X(nameDevice, (char *name, int bytes, int device))                                                         \
  X(getAttribute, (int *value, int attribute, int device))                                                   \
  X(retainContext, (Context * context, int device))                                                          \
  X(releaseContext, (int device))                                                                            \
  X(useContext, (Context context))                                                                           \
  X(useDevice, (int device))                                                                                 \
  X(getProperties, (void *properties, int device))                                                           \
  X(countMemory, (size_t *unused, size_t *all))                                                              \
  X(allocate, (Address * memory, size_t bytes))                                                              \
  X(release, (Address memory))                                                                               \
  X(allocatePinned, (void **memory, size_t bytes))                                                           \
  X(releasePinned, (void *memory))                                                                           \
  X(copyIn, (Address to, const void *from, size_t bytes, Stream stream))                                     \
  X(copyOut, (void *to, Address from, size_t bytes, Stream stream))                                          \
  X(copyWithin, (Address to, Address from, size_t bytes, Stream stream))                                     \
  X(fillBytes, (Address to, unsigned char value, size_t count, Stream stream))                               \
  X(fillWords, (Address to, unsigned value, size_t count, Stream stream))                                    \
  X(loadImage, (Image * image, const void *data, unsigned count, int *options, void **values))               \
  X(unloadImage, (Image image))                                                                              \
  X(getFunction, (Function * function, Image image, const char *name))                                       \
  X(setAttribute, (Function function, int attribute, int value))                                             \
  X(launch,                                                                                                  \
    (Function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,    \
     unsigned blockZ, unsigned sharedBytes, Stream stream, void **parameters, void **extra))                 \
  X(createStream, (Stream * stream, unsigned flags))                                                         \
  X(destroyStream, (Stream stream))                                                                          \
  X(awaitStream, (Stream stream))                                                                            \
  X(beginCapture, (Stream stream, int mode))                                                                 \
  X(endCapture, (Stream stream, Graph * graph))                                                              \
  X(instantiate, (GraphCode * code, Graph graph, unsigned long long flags))                                  \
  X(launchGraph, (GraphCode code, Stream stream))                                                            \
  X(destroyGraphCode, (GraphCode code))                                                                      \
  X(destroyGraph, (Graph graph))                                                                             \
  X(createEvent, (Event * event, unsigned flags))                                                            \
  X(recordEvent, (Event event, Stream stream))                                                               \
  X(awaitEvent, (Event event))                                                                               \
  X(destroyEvent, (Event event))                                                                             \
  X(getPointerAttributes,                                                                                    \
    (unsigned count, int *attributes, void **values, Address pointer)) /* may be missing */

struct Driver {
#define ORTC_DRIVER_FIELD(name, parameters) Result(*name) parameters;
  ORTC_DRIVER_FUNCTIONS(ORTC_DRIVER_FIELD)
#undef ORTC_DRIVER_FIELD
};
constexpr unsigned kDriverFunctions = sizeof(Driver) / sizeof(void *);

/// How many texts end within these bytes: a vendor's symbols are as many as there are functions.
constexpr unsigned countSymbols(const char *text, size_t bytes) {
  unsigned found = 0;
  for (size_t i = 0; i < bytes; i++)
    found += !text[i];
  return found;
}

struct Device;

/// What a vendor calls, numbers and does in its own way.
struct Vendor {
  const char *name;     ///< of the company
  const char *variable; ///< of the environment, that names the library
  const char *library;  ///< names to try in turn, each terminated, an empty one behind them
  const char *symbols;  ///< of the functions, each terminated; empty where there is none and none is needed
  const char *least;    ///< what processor is needed, in words
  // Results.
  int outOfMemory, noDevice;
  // Attributes of devices, functions and pointers.
  int mostShared, dynamicShared, memoryType;
  int deviceMemory; ///< value of memoryType
  // Options of loadImage(), where it knows any.
  unsigned options;
  int errorLog, errorLogBytes;
  uint32_t architecture; ///< enum ortc_architecture

  /// Asks the driver which processor the device has: `processor`, `model` and the features of its table, none where it
  /// is none of those that code is for.
  Result (*identify)(Device &device);
  /// How well an image suits a processor: 0 not at all, the best 2.
  int (*rateImage)(const ortc_device_image &image, int processor);
  /// An image in words.
  void (*nameImage)(const ortc_device_image &image, char text[48]);
  /// Whether a result says that the driver is too old for an image, and what it is and needs. nullptr: none says so.
  bool (*isTooOld)(Result result, const ortc_device_image &image, const char *data, int driverVersion,
                   char text[96]);
};

} // namespace ortc::device
