/* Devices that are not the host's processor: what code for one looks like in an artifact, and what a library
 * that drives one gives to the runtime.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Part of the schema, as format.h and call.h are: structures grow at the end only, numbers never change their
 * meaning, everything is little-endian. Most programs include none of this: they ask a device library (cuda.h)
 * for an ortc_device and hand it to ortc_program_open_file in ortc_host. */
#pragma once

#include <stdint.h>

#include "ortc/call.h"
#include "ortc/format.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ortc_message;

/* ---- Code for a device ----
 *
 * A section of kind ORTC_SECTION_CODE whose architecture is ORTC_ARCH_PTX or ORTC_ARCH_AMDGPU. It begins as
 * every blob does (ortc_blob, ortc_blob_entry[count]). The `offset` of an entry is that of an ortc_launch_list.
 * Behind the entries, at the next multiple of 8, stands an ortc_device_code. All offsets are bytes from the
 * start of the section. */

/* Features of PTX code: what the device must at least be. A device has the bits of all that are not newer; SM_90A
 * is of those alone that are exactly 9.0, whose products no other processor has. */
enum ortc_ptx_feature {
  ORTC_PTX_SM_80 = 0,
  ORTC_PTX_SM_86,
  ORTC_PTX_SM_89,
  ORTC_PTX_SM_90,
  ORTC_PTX_SM_100,
  ORTC_PTX_SM_120,
  ORTC_PTX_SM_90A,
  ORTC_PTX_FEATURES
};

/* Features of AMDGPU code: the one processor that it is for. */
enum ortc_amdgpu_feature {
  ORTC_AMDGPU_GFX90A = 0,
  ORTC_AMDGPU_GFX942,
  ORTC_AMDGPU_GFX1100,
  ORTC_AMDGPU_FEATURES
};

enum ortc_image_kind {
  ORTC_IMAGE_PTX = 1,   /* text, NUL-terminated, which the driver compiles */
  ORTC_IMAGE_CUBIN = 2, /* for processors of the same major version that are not older */
  ORTC_IMAGE_HSACO = 3  /* for the one processor of the section's features */
};

/* One module of code with all kernels of the section. */
typedef struct ortc_device_image {
  uint32_t kind;      /* enum ortc_image_kind */
  uint32_t processor; /* PTX, CUBIN: 80, 90, ... */
  uint64_t offset, bytes;
} ortc_device_image;

/* A function of the images. Its parameters are pointers, one for each argument of a launch. */
typedef struct ortc_device_kernel {
  uint32_t name;      /* offset of its symbol, NUL-terminated */
  uint32_t threads;   /* of a block, in one dimension */
  uint32_t shared;    /* bytes of dynamic shared memory */
  uint32_t arguments; /* how many */
  uint32_t trace;     /* index in the kernel names section, or ORTC_NONE */
  uint32_t reserved;
} ortc_device_kernel;

typedef struct ortc_device_code {
  uint32_t image_count, image_bytes; /* bytes: of a row, at least sizeof(ortc_device_image) */
  uint64_t images;                   /* offset of ortc_device_image[], the one to prefer last */
  uint32_t kernel_count, kernel_bytes;
  uint64_t kernels; /* offset of ortc_device_kernel[] */
} ortc_device_code;

/* What one entry launches, in order, on one stream. */
typedef struct ortc_launch_list {
  uint32_t launch_count, launch_bytes;
  uint64_t launches; /* offset of ortc_launch[] */
  uint32_t argument_count, argument_bytes;
  uint64_t arguments; /* offset of ortc_launch_argument[] */
} ortc_launch_list;

enum ortc_launch_kind {
  ORTC_LAUNCH_KERNEL = 0,
  ORTC_LAUNCH_LOOP = 1, /* the rows up to the matching ORTC_LAUNCH_END run `count` times */
  ORTC_LAUNCH_END = 2
};

#define ORTC_MAX_LOOPS 8            /* of loops within each other */
#define ORTC_MAX_LAUNCHES (1 << 20) /* of a list, loops run: each iteration counts one more, and each end */

typedef struct ortc_launch {
  uint32_t kind;           /* enum ortc_launch_kind */
  uint32_t kernel;         /* kernel: index in the kernels of the section */
  uint32_t count;          /* kernel: blocks, in one dimension; loop: iterations. At least 1 */
  uint32_t reverse;        /* loop: 1 where it runs from its last iteration down */
  uint32_t first_argument; /* kernel: it takes as many as its row says */
  uint32_t reserved;
} ortc_launch;

enum ortc_argument_kind {
  ORTC_ARGUMENT_CONSTANTS = 0, /* `offset` bytes into a region */
  ORTC_ARGUMENT_PERSISTENT = 1,
  ORTC_ARGUMENT_TRANSIENT = 2,
  ORTC_ARGUMENT_EXTERNAL = 3, /* the entry's value number `offset`, one of its first ext_count */
  ORTC_ARGUMENT_STATUS = 4    /* the session's ortc_device_status */
};

/* A pointer that a launch passes. Within loops it moves on by strides[k] bytes with every iteration of the k-th
 * loop around it, outermost first. */
typedef struct ortc_launch_argument {
  uint32_t kind; /* enum ortc_argument_kind */
  uint32_t reserved;
  uint64_t offset;
  uint64_t bytes; /* that the kernel may touch from there, in each iteration */
  int64_t strides[ORTC_MAX_LOOPS];
} ortc_launch_argument;

/* A block of device memory of each session. Kernels that write persistent memory do nothing while `status` is
 * not ORTC_STEP_OK, so everything is as it was before the step that failed, whatever has been launched since. */
typedef struct ortc_device_status {
  uint32_t status;    /* enum ortc_step_status: of the first step that failed since the host has looked */
  uint32_t flags;     /* enum ortc_call_flags, set by the host */
  ortc_detail detail; /* with ORTC_STEP_RANGE */
  uint64_t reserved[3];
} ortc_device_status;

/* ---- A device ---- */

/* A section of an artifact: `count` rows, or bytes where it has none. */
typedef struct ortc_table {
  const uint8_t *data;
  uint64_t count;
} ortc_table;

/* An entry, and its ortc_launch_list. */
typedef struct ortc_device_step {
  const ortc_file_entry *entry;
  const void *list;
} ortc_device_step;

/* What the runtime has opened: the artifact has been checked, but for the code behind its blob entries. */
typedef struct ortc_device_program {
  const ortc_device_step *steps;
  uint32_t step_count;
  uint32_t ordinal;                                 /* of the code section, among those of code */
  ortc_table tables[ORTC_SECTION_KERNEL_NAMES + 1]; /* by enum ortc_section_kind */
  /* Of the regions, by enum ortc_region. The transient one is as large as the largest step needs: fixed_bytes +
   * worker_bytes. */
  uint64_t sizes[4];
  const void *code; /* a copy that nobody writes to */
  uint64_t code_bytes;
} ortc_device_program;

/* A tensor where it lies: `count` elements of `element` bytes, in row-major order. Dimensions that lie behind
 * each other are one; there is at least one. */
typedef struct ortc_view {
  uint8_t *data;
  uint64_t count;
  uint32_t element, rank;
  int64_t dims[ORTC_MAX_RANK], strides[ORTC_MAX_RANK]; /* strides in bytes */
} ortc_view;

/* What a library that drives a device gives to the runtime. Functions return an ortc_status; those that fail
 * put a text into `message`, which is never NULL. A pointer to device memory is one that only these functions
 * look through. Those with `memory` are called by one thread at a time, the others by any. */
typedef struct ortc_device {
  uint32_t size;
  uint32_t architecture; /* enum ortc_architecture: of the code sections to choose from */
  uint64_t features;     /* as those of a processor */
  void *context;         /* first argument of load() */

  /* Takes a program over, which stays as it is until unload(): checks its code and hands the best image to the
   * driver. */
  int32_t (*load)(void *context, const ortc_device_program *program, void **module,
                  struct ortc_message *message);
  void (*unload)(void *module);

  /* Memory of a session and its stream: all four regions, as reset() leaves them. bases[] gets where they are,
   * by enum ortc_region. `flags`: enum ortc_call_flags, of all its steps. */
  int32_t (*create)(void *module, uint32_t flags, void *bases[4], void **memory,
                    struct ortc_message *message);
  void (*destroy)(void *memory);

  /* Makes the persistent region what the artifact has, after all that was launched before. */
  int32_t (*reset)(void *memory, struct ortc_message *message);

  /* Copies elements [first, first + count) between a tensor and dense memory of the host, after all that was
   * launched before. The tensor lies in a region, or in memory that the host has bound. Parts of a tensor are
   * read only, in order; what is written is all of one. */
  int32_t (*copy)(void *memory, const ortc_view *view, uint64_t first, uint64_t count, void *dense,
                  uint32_t to_dense, struct ortc_message *message);

  /* Launches the list of a step. Its first ext_count values are at call->ext[]: memory of the host or of the
   * device, or their places in the region ORTC_REGION_IO. Returns what the step, or one before it, returned
   * (enum ortc_step_status); call->detail gets its detail. `loss` gets the step's loss, if it has one, also
   * with ORTC_STEP_NOT_FINITE. Steps of the roles train, accumulate and update return ORTC_STEP_OK at once
   * where `loss` is NULL and no output goes to the host; a step after them tells what became of them. Returns
   * minus an ortc_status where the device fails. */
  int32_t (*run)(void *memory, const ortc_device_step *step, const ortc_call *call, double *loss,
                 struct ortc_message *message);

  /* The processor: "sm_87". The device owns it. */
  const char *processor;
} ortc_device;

ORTC_STATIC_ASSERT(sizeof(ortc_device_image) == 24 && sizeof(ortc_device_kernel) == 24,
                   "device images and kernels");
ORTC_STATIC_ASSERT(sizeof(ortc_device_code) == 32 && sizeof(ortc_launch_list) == 32, "device code");
ORTC_STATIC_ASSERT(sizeof(ortc_launch) == 24 && sizeof(ortc_launch_argument) == 88, "launches");
ORTC_STATIC_ASSERT(sizeof(ortc_device_status) == 56, "device status");

#ifdef __cplusplus
}
#endif
