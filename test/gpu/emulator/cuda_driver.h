/* The part of NVIDIA's driver interface (libcuda.so.1) that the emulator offers, declared without its headers.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * ORTC_CU_FUNCTIONS(X) expands to X(symbol, (parameters)) for every function; each returns an ortc_cu_result. Symbols
 * are those that the library exports, which often end in _v2 where cuda.h hides that behind a macro. The types are
 * checked against cuda.h where a toolkit is installed (test/gpu/emulator/tests/HeaderTest.cpp). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORTC_CU_LIBRARY "libcuda.so.1"

typedef int ortc_cu_device;
/* An address of device memory. */
typedef unsigned long long ortc_cu_pointer;
typedef struct ortc_cu_context_s *ortc_cu_context;
typedef struct ortc_cu_module_s *ortc_cu_module;
typedef struct ortc_cu_kernel_s *ortc_cu_kernel;
/* The null stream is NULL. */
typedef struct ortc_cu_stream_s *ortc_cu_stream;
typedef struct ortc_cu_event_s *ortc_cu_event;
typedef struct ortc_cu_graph_s *ortc_cu_graph;
typedef struct ortc_cu_graph_node_s *ortc_cu_graph_node;
typedef struct ortc_cu_graph_exec_s *ortc_cu_graph_exec;

/* CUresult */
typedef enum ortc_cu_result {
  ORTC_CU_SUCCESS = 0,
  ORTC_CU_INVALID_VALUE = 1,
  ORTC_CU_OUT_OF_MEMORY = 2,
  ORTC_CU_NOT_INITIALIZED = 3,
  ORTC_CU_DEINITIALIZED = 4,
  ORTC_CU_NO_DEVICE = 100,
  ORTC_CU_INVALID_DEVICE = 101,
  ORTC_CU_INVALID_IMAGE = 200,
  ORTC_CU_INVALID_CONTEXT = 201,
  ORTC_CU_NO_BINARY_FOR_GPU = 209,
  ORTC_CU_INVALID_PTX = 218,
  ORTC_CU_UNSUPPORTED_PTX_VERSION = 222,
  ORTC_CU_INVALID_HANDLE = 400,
  ORTC_CU_NOT_FOUND = 500,
  ORTC_CU_NOT_READY = 600,
  ORTC_CU_ILLEGAL_ADDRESS = 700,
  ORTC_CU_LAUNCH_OUT_OF_RESOURCES = 701,
  ORTC_CU_MISALIGNED_ADDRESS = 716,
  ORTC_CU_LAUNCH_FAILED = 719,
  ORTC_CU_NOT_PERMITTED = 800,
  ORTC_CU_NOT_SUPPORTED = 801,
  ORTC_CU_STREAM_CAPTURE_UNSUPPORTED = 900,
  ORTC_CU_STREAM_CAPTURE_INVALIDATED = 901,
  ORTC_CU_STREAM_CAPTURE_UNMATCHED = 903,
  ORTC_CU_STREAM_CAPTURE_IMPLICIT = 906,
  ORTC_CU_UNKNOWN = 999
} ortc_cu_result;

/* CUdevice_attribute */
enum {
  ORTC_CU_MAX_THREADS_PER_BLOCK = 1,
  ORTC_CU_MAX_BLOCK_DIM_X = 2,
  ORTC_CU_MAX_BLOCK_DIM_Y = 3,
  ORTC_CU_MAX_BLOCK_DIM_Z = 4,
  ORTC_CU_MAX_GRID_DIM_X = 5,
  ORTC_CU_MAX_GRID_DIM_Y = 6,
  ORTC_CU_MAX_GRID_DIM_Z = 7,
  ORTC_CU_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  ORTC_CU_WARP_SIZE = 10,
  ORTC_CU_MAX_REGISTERS_PER_BLOCK = 12,
  ORTC_CU_CLOCK_RATE = 13, /* kHz */
  ORTC_CU_MULTIPROCESSOR_COUNT = 16,
  ORTC_CU_MEMORY_CLOCK_RATE = 36,       /* kHz */
  ORTC_CU_GLOBAL_MEMORY_BUS_WIDTH = 37, /* bits */
  ORTC_CU_L2_CACHE_SIZE = 38,
  ORTC_CU_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  ORTC_CU_COMPUTE_CAPABILITY_MAJOR = 75,
  ORTC_CU_COMPUTE_CAPABILITY_MINOR = 76,
  ORTC_CU_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  ORTC_CU_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  ORTC_CU_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  ORTC_CU_MAX_BLOCKS_PER_MULTIPROCESSOR = 106
};

/* CUfunction_attribute */
enum {
  ORTC_CU_FUNC_MAX_THREADS_PER_BLOCK = 0,
  ORTC_CU_FUNC_SHARED_SIZE_BYTES = 1,
  ORTC_CU_FUNC_CONST_SIZE_BYTES = 2,
  ORTC_CU_FUNC_LOCAL_SIZE_BYTES = 3,
  ORTC_CU_FUNC_NUM_REGS = 4,
  ORTC_CU_FUNC_PTX_VERSION = 5,
  ORTC_CU_FUNC_BINARY_VERSION = 6,
  ORTC_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  ORTC_CU_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT = 9
};

/* CUjit_option */
enum {
  ORTC_CU_JIT_MAX_REGISTERS = 0,
  ORTC_CU_JIT_INFO_LOG_BUFFER = 3,
  ORTC_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
  ORTC_CU_JIT_ERROR_LOG_BUFFER = 5,
  ORTC_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  ORTC_CU_JIT_OPTIMIZATION_LEVEL = 7
};

/* CUstream_flags, CUevent_flags, CUstreamCaptureMode, CUmemorytype */
enum { ORTC_CU_STREAM_DEFAULT = 0, ORTC_CU_STREAM_NON_BLOCKING = 1 };
enum { ORTC_CU_EVENT_DEFAULT = 0, ORTC_CU_EVENT_BLOCKING_SYNC = 1, ORTC_CU_EVENT_DISABLE_TIMING = 2 };
enum { ORTC_CU_CAPTURE_GLOBAL = 0, ORTC_CU_CAPTURE_THREAD_LOCAL = 1, ORTC_CU_CAPTURE_RELAXED = 2 };
enum { ORTC_CU_MEMORY_HOST = 1, ORTC_CU_MEMORY_DEVICE = 2 };

/* CUpointer_attribute: an unsigned of CUmemorytype */
enum { ORTC_CU_POINTER_MEMORY_TYPE = 2 };

/* Ends the array `extra` of a launch whose parameters come as one buffer. */
#define ORTC_CU_LAUNCH_PARAM_END ((void *)0)
#define ORTC_CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define ORTC_CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

/* CUDA_MEMCPY2D: `height` rows of `width` bytes. */
typedef struct ortc_cu_memcpy2d {
  size_t src_x, src_y;
  int src_type;
  const void *src_host;
  ortc_cu_pointer src_device;
  void *src_array;
  size_t src_pitch;
  size_t dst_x, dst_y;
  int dst_type;
  void *dst_host;
  ortc_cu_pointer dst_device;
  void *dst_array;
  size_t dst_pitch;
  size_t width, height;
} ortc_cu_memcpy2d;

/* CUDA_KERNEL_NODE_PARAMS_v2 */
typedef struct ortc_cu_kernel_node {
  ortc_cu_kernel kernel;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void **params, **extra;
  void *library_kernel;
  ortc_cu_context context;
} ortc_cu_kernel_node;

#define ORTC_CU_FUNCTIONS(X)                                                                                 \
  X(cuInit, (unsigned flags))                                                                                \
  X(cuDriverGetVersion, (int *version))                                                                      \
  X(cuGetErrorName, (ortc_cu_result result, const char **name))                                              \
  X(cuGetErrorString, (ortc_cu_result result, const char **text))                                            \
  X(cuDeviceGetCount, (int *count))                                                                          \
  X(cuDeviceGet, (ortc_cu_device * device, int ordinal))                                                     \
  X(cuDeviceGetName, (char *name, int bytes, ortc_cu_device device))                                         \
  X(cuDeviceGetAttribute, (int *value, int attribute, ortc_cu_device device))                                \
  X(cuDeviceTotalMem_v2, (size_t *bytes, ortc_cu_device device))                                             \
  X(cuDevicePrimaryCtxRetain, (ortc_cu_context * context, ortc_cu_device device))                            \
  X(cuDevicePrimaryCtxRelease_v2, (ortc_cu_device device))                                                   \
  X(cuCtxSetCurrent, (ortc_cu_context context))                                                              \
  X(cuCtxSynchronize, (void))                                                                                \
  X(cuMemGetInfo_v2, (size_t *unused, size_t *all))                                                          \
  X(cuMemAlloc_v2, (ortc_cu_pointer * memory, size_t bytes))                                                 \
  X(cuMemFree_v2, (ortc_cu_pointer memory))                                                                  \
  X(cuMemAllocHost_v2, (void **memory, size_t bytes))                                                        \
  X(cuMemFreeHost, (void *memory))                                                                           \
  X(cuPointerGetAttributes, (unsigned count, int *attributes, void **values, ortc_cu_pointer pointer))       \
  X(cuMemcpyHtoDAsync_v2, (ortc_cu_pointer to, const void *from, size_t bytes, ortc_cu_stream stream))       \
  X(cuMemcpyDtoHAsync_v2, (void *to, ortc_cu_pointer from, size_t bytes, ortc_cu_stream stream))             \
  X(cuMemcpyDtoDAsync_v2, (ortc_cu_pointer to, ortc_cu_pointer from, size_t bytes, ortc_cu_stream stream))   \
  X(cuMemcpy2DAsync_v2, (const ortc_cu_memcpy2d *copy, ortc_cu_stream stream))                               \
  X(cuMemsetD8Async, (ortc_cu_pointer to, unsigned char value, size_t count, ortc_cu_stream stream))         \
  X(cuMemsetD32Async, (ortc_cu_pointer to, unsigned value, size_t count, ortc_cu_stream stream))             \
  X(cuModuleLoadDataEx,                                                                                      \
    (ortc_cu_module * module, const void *image, unsigned count, int *options, void **values))               \
  X(cuModuleUnload, (ortc_cu_module module))                                                                 \
  X(cuModuleGetFunction, (ortc_cu_kernel * kernel, ortc_cu_module module, const char *name))                 \
  X(cuFuncGetAttribute, (int *value, int attribute, ortc_cu_kernel kernel))                                  \
  X(cuFuncSetAttribute, (ortc_cu_kernel kernel, int attribute, int value))                                   \
  X(cuLaunchKernel, (ortc_cu_kernel kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,               \
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,            \
                     ortc_cu_stream stream, void **params, void **extra))                                    \
  X(cuStreamCreate, (ortc_cu_stream * stream, unsigned flags))                                               \
  X(cuStreamDestroy_v2, (ortc_cu_stream stream))                                                             \
  X(cuStreamSynchronize, (ortc_cu_stream stream))                                                            \
  X(cuStreamWaitEvent, (ortc_cu_stream stream, ortc_cu_event event, unsigned flags))                         \
  X(cuStreamBeginCapture_v2, (ortc_cu_stream stream, int mode))                                              \
  X(cuStreamEndCapture, (ortc_cu_stream stream, ortc_cu_graph * graph))                                      \
  X(cuGraphCreate, (ortc_cu_graph * graph, unsigned flags))                                                  \
  X(cuGraphAddKernelNode_v2,                                                                                 \
    (ortc_cu_graph_node * node, ortc_cu_graph graph, const ortc_cu_graph_node *dependencies, size_t count,   \
     const ortc_cu_kernel_node *params))                                                                     \
  X(cuGraphInstantiateWithFlags, (ortc_cu_graph_exec * exec, ortc_cu_graph graph, unsigned long long flags)) \
  X(cuGraphLaunch, (ortc_cu_graph_exec exec, ortc_cu_stream stream))                                         \
  X(cuGraphExecDestroy, (ortc_cu_graph_exec exec))                                                           \
  X(cuGraphDestroy, (ortc_cu_graph graph))                                                                   \
  X(cuEventCreate, (ortc_cu_event * event, unsigned flags))                                                  \
  X(cuEventRecord, (ortc_cu_event event, ortc_cu_stream stream))                                             \
  X(cuEventSynchronize, (ortc_cu_event event))                                                               \
  X(cuEventElapsedTime, (float *milliseconds, ortc_cu_event start, ortc_cu_event end))                       \
  X(cuEventDestroy_v2, (ortc_cu_event event))

#ifdef __cplusplus
}
#endif
