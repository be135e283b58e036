/* Schema of an artifact file (model.ortc), version 1. docs/artifact-format.md is its description in prose.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Little-endian. header | section table | sections, each aligned (ORTC_ALIGNMENT, code ORTC_CODE_ALIGNMENT),
 * zero bytes between. The header's hash covers header and section table, the table's hashes cover the
 * sections. Sections of unknown kind are skipped, unless marked as required. Rows of a table
 * never change within a major version: what is new goes into new sections. */
#pragma once

#include <stdint.h>

#include "ortc/call.h"

#define ORTC_FORMAT_MAJOR 1u /* a reader refuses a newer one */
#define ORTC_FORMAT_MINOR 1u /* additions a reader may ignore: 1 has code for devices */
#define ORTC_MAGIC "ORTC\r\n\x1a\n"
#define ORTC_ALIGNMENT 64u
#define ORTC_CODE_ALIGNMENT 4096u
#define ORTC_MAX_RANK 8
#define ORTC_REGION_BITS 60   /* of the size of a region or tensor: sums of a few never overflow */
#define ORTC_NONE 0xffffffffu /* "no index" */

enum ortc_section_kind {
  ORTC_SECTION_TENSORS = 1,       /* ortc_file_tensor[] */
  ORTC_SECTION_STRINGS = 2,       /* NUL-terminated UTF-8; names are offsets into it; its last byte is NUL */
  ORTC_SECTION_VALUES = 3,        /* ortc_file_value[] */
  ORTC_SECTION_ENTRIES = 4,       /* ortc_file_entry[] */
  ORTC_SECTION_BINDINGS = 5,      /* ortc_file_binding[] */
  ORTC_SECTION_CONSTANTS = 6,     /* the constants region as it is */
  ORTC_SECTION_PERSISTENT = 7,    /* the first bytes of the initial persistent region; the rest is zero */
  ORTC_SECTION_CODE = 8,          /* one blob (call.h) per instruction set level, most capable last: the
                                     last one that the machine can run is used. For WebAssembly, behind the
                                     blob's head, at a multiple of ORTC_ALIGNMENT, a module that imports memory
                                     alone; the offset of an entry is the name, in decimal, of its export. Of code
                                     that is linked into the program (static.h) the head alone; the offset of an
                                     entry is its number in ortc_static.steps */
  ORTC_SECTION_CHECK_NAMES = 9,   /* uint32_t[]: string of ortc_detail.name */
  ORTC_SECTION_KERNEL_NAMES = 10, /* uint32_t[]: string of a traced kernel */
  ORTC_SECTION_MANIFEST = 11,     /* JSON text for tools; the runtime never reads it */
  ORTC_SECTION_SOURCE = 12,       /* ONNX ModelProto without the bytes the tensor table has; tools only */
  ORTC_SECTION_SIGNATURE = 13 /* opaque; handed to ortc_host.verify with the header's hash. Its own hash field
                                 is zero and not checked */
};

enum ortc_section_flags {
  ORTC_SECTION_REQUIRED = 1u /* a reader that does not know the kind refuses the file */
};

enum ortc_architecture {
  ORTC_ARCH_NONE = 0,
  ORTC_ARCH_X86_64 = 1,
  ORTC_ARCH_AARCH64 = 2,
  ORTC_ARCH_RISCV64 = 3,
  ORTC_ARCH_ARMV7 = 4,
  ORTC_ARCH_WASM32 = 5,
  ORTC_ARCH_PTX = 6, /* devices: the section is not machine code of a processor (device.h) */
  ORTC_ARCH_AMDGPU = 7,
  ORTC_ARCH_CORTEX_M = 8 /* Thumb instructions, single precision at least; entries have the lowest bit set */
};

/* A feature of every architecture: the code is not in the image but linked into the program (static.h). */
#define ORTC_FEATURE_LINKED (UINT64_C(1) << 63)

/* Features a blob for x86-64 needs, one bit each, named as LLVM does. Bits of the x86-64-v3 and -v4 levels
 * and some above; code for `native` keeps to these features. An AVX bit is set by the host only when the
 * operating system saves the registers. */
enum ortc_x86_feature {
  ORTC_X86_SSE3 = 0,
  ORTC_X86_SSSE3,
  ORTC_X86_SSE4_1,
  ORTC_X86_SSE4_2,
  ORTC_X86_POPCNT,
  ORTC_X86_CX16,
  ORTC_X86_SAHF, /* v2 */
  ORTC_X86_AVX,
  ORTC_X86_AVX2,
  ORTC_X86_BMI,
  ORTC_X86_BMI2,
  ORTC_X86_F16C,
  ORTC_X86_FMA,
  ORTC_X86_LZCNT,
  ORTC_X86_MOVBE, /* v3 */
  ORTC_X86_AVX512F,
  ORTC_X86_AVX512BW,
  ORTC_X86_AVX512CD,
  ORTC_X86_AVX512DQ,
  ORTC_X86_AVX512VL, /* v4 */
  ORTC_X86_AVX512IFMA,
  ORTC_X86_AVX512VBMI,
  ORTC_X86_AVX512VBMI2,
  ORTC_X86_AVX512VNNI,
  ORTC_X86_AVX512BITALG,
  ORTC_X86_AVX512VPOPCNTDQ,
  ORTC_X86_AVX512BF16,
  ORTC_X86_AVX512FP16,
  ORTC_X86_GFNI,
  ORTC_X86_AVXVNNI,
  ORTC_X86_AMX_BF16, /* with amx-tile, which the process must have asked the operating system for */
  ORTC_X86_FEATURES
};
#define ORTC_X86_64_V1 UINT64_C(0)
#define ORTC_X86_64_V2 ((UINT64_C(1) << ORTC_X86_AVX) - 1)
#define ORTC_X86_64_V3 ((UINT64_C(1) << ORTC_X86_AVX512F) - 1)
#define ORTC_X86_64_V4 ((UINT64_C(1) << ORTC_X86_AVX512IFMA) - 1)

/* Features of a blob for AArch64, RISC-V and 32-bit Arm: bits of what Linux calls AT_HWCAP. */
#define ORTC_ARM_NEON (UINT64_C(1) << 12)
#define ORTC_ARM_VFPV4 (UINT64_C(1) << 16)
#define ORTC_ARM_IDIVA (UINT64_C(1) << 17) /* division of integers in Arm instructions */
/* Features of a blob for Cortex-M, as a compiler's macros tell them. */
#define ORTC_CORTEX_M_V8 UINT64_C(1)              /* __ARM_ARCH >= 8 */
#define ORTC_CORTEX_M_FP64 UINT64_C(2)            /* __ARM_FP & 8 */
#define ORTC_CORTEX_M_MVE UINT64_C(4)             /* __ARM_FEATURE_MVE & 2 */
#define ORTC_RISCV_V (UINT64_C(1) << ('V' - 'A')) /* vectors, version 1.0 */

/* Where a tensor's bytes live. */
enum ortc_region {
  ORTC_REGION_CONSTANTS = 0,  /* in the program, read-only, shared by sessions */
  ORTC_REGION_PERSISTENT = 1, /* per session: parameters, state, scalars */
  ORTC_REGION_TRANSIENT = 2,  /* per session: activations, gradients, workspace; meaningful only right after
                                 the step that wrote it */
  ORTC_REGION_IO = 3 /* per session: inputs and outputs the host has not bound to its own memory; absent when
                        it binds all */
};

enum ortc_tensor_role {
  ORTC_ROLE_PARAMETER = 0, /* trained */
  ORTC_ROLE_CONSTANT = 1,  /* frozen weight or folded table */
  ORTC_ROLE_STATE = 2,     /* changed by steps, not trained: moments, running statistics, step counter */
  ORTC_ROLE_SCALAR = 3,    /* hyper-parameter the host may set between steps: lr, weight_decay, beta1, ... */
  ORTC_ROLE_INPUT = 4,
  ORTC_ROLE_OUTPUT = 5,
  ORTC_ROLE_GRADIENT =
      6,              /* of `owner`, and named as it; where it lies is in the values of the gradients entry */
  ORTC_ROLE_LOSS = 7, /* the scalar loss; where it lies is in the entry's values */
  ORTC_ROLES = 8
};

enum ortc_tensor_flags {
  ORTC_TENSOR_IN_MODEL = 1u, /* an initializer of the ONNX file: part of "the weights", also when it is state
                                (running statistics). A checkpoint must have it */
  ORTC_TENSOR_BOUND =
      2u, /* an input that is a parameter, or a running statistic, in memory of the host, which steps
                                may write. It is in no checkpoint; its layout is that of the entries' values */
  ORTC_TENSOR_TRAINED = 4u /* of those: a parameter */
};

typedef struct ortc_file_header {
  uint8_t magic[8]; /* ORTC_MAGIC */
  uint16_t major, minor;
  uint32_t header_bytes; /* sizeof(ortc_file_header): the section table follows */
  uint64_t file_bytes;
  uint32_t section_count;
  uint32_t section_bytes;    /* sizeof(ortc_file_section) */
  uint64_t persistent_bytes; /* sizes of the regions, multiples of ORTC_ALIGNMENT below 2^ORTC_REGION_BITS; */
  uint64_t io_bytes;         /* constants are as large as their section */
  uint32_t max_workers;      /* at least 1 */
  uint32_t reserved;
  uint8_t model[32]; /* SHA-256 of name, role, dtype and shape of the checkpointed tensors: the same for every
                        target, binding and layout of a model */
  uint8_t sha256[32]; /* of the header up to this field, and of the section table */
} ortc_file_header;

typedef struct ortc_file_section {
  uint32_t kind;          /* enum ortc_section_kind */
  uint32_t flags;         /* enum ortc_section_flags */
  uint64_t offset, bytes; /* in the file */
  uint32_t row_bytes;     /* of tables: size of a row; else 0 */
  uint32_t architecture;  /* code: enum ortc_architecture */
  uint64_t features;      /* code: bits the processor must have */
  uint32_t name;          /* code: string, e.g. "x86-64-v3"; else ORTC_NONE */
  uint32_t reserved;
  uint8_t sha256[32];
} ortc_file_section;

/* Where a tensor or value lies: element (i0, i1, ...) at offset + sum(ik * strides[k]) of the region, whose offset is a
 * multiple of the element's size. dtype is ONNX's TensorProto.DataType. */
typedef struct ortc_file_view {
  uint8_t dtype, rank;
  uint8_t region; /* enum ortc_region */
  uint8_t reserved[5];
  uint64_t offset;
  uint64_t bytes;                 /* dense, in ONNX layout */
  int64_t dims[ORTC_MAX_RANK];    /* of the ONNX tensor */
  int64_t strides[ORTC_MAX_RANK]; /* in bytes, not negative */
} ortc_file_view;

/* Inputs, outputs, gradients and loss have no place of their own (see ortc_file_value): their dims are those
 * of the first binding that has them, region, offset and strides are zero. */
typedef struct ortc_file_tensor {
  uint32_t name;  /* string: the ONNX name */
  uint32_t role;  /* enum ortc_tensor_role */
  uint32_t owner; /* state: tensor index of the parameter it belongs to, gradient: of its parameter; else
                     ORTC_NONE */
  uint32_t flags; /* enum ortc_tensor_flags */
  ortc_file_view view;
} ortc_file_tensor;

typedef struct ortc_file_binding {
  uint32_t name; /* string */
  uint32_t reserved;
} ortc_file_binding;

/* One (target, role, binding, segment): its plan as far as a host sees it. The transient region needs
 * fixed_bytes + workers * worker_bytes. Of its values, the first ext_count are passed as ortc_call.ext, in
 * this order; the others lie in memory of the session. */
typedef struct ortc_file_entry {
  uint32_t role, binding, segment; /* as in ortc_blob_entry */
  uint32_t target; /* ordinal of the code section among the code sections, or ORTC_NONE: the same for all */
  uint32_t first_value, value_count,
      ext_count;                      /* entries have their values in order, none of them in common */
  uint32_t loss;                      /* ordinal of the loss among the values, or ORTC_NONE */
  uint64_t fixed_bytes, worker_bytes; /* multiples of ORTC_ALIGNMENT; the first, and the second times
                                         max_workers, below 2^ORTC_REGION_BITS */
  uint32_t name;                      /* string, e.g. "train/default" */
  uint32_t reserved;
} ortc_file_entry;

/* A value of an entry. Ext values: region ORTC_REGION_IO, dense strides; one tensor has one place per
 * binding. Others (gradients, loss): anywhere but in constants. */
typedef struct ortc_file_value {
  uint32_t tensor; /* index in the tensor table: name and role */
  uint32_t reserved;
  ortc_file_view view; /* dtype and rank are the tensor's */
} ortc_file_value;

ORTC_STATIC_ASSERT(sizeof(ortc_file_header) == 120, "file header");
ORTC_STATIC_ASSERT(sizeof(ortc_file_section) == 80, "section table");
ORTC_STATIC_ASSERT(sizeof(ortc_file_tensor) == 168, "tensor table");
ORTC_STATIC_ASSERT(sizeof(ortc_file_binding) == 8, "bindings table");
ORTC_STATIC_ASSERT(sizeof(ortc_file_entry) == 56, "entries table");
ORTC_STATIC_ASSERT(sizeof(ortc_file_value) == 160, "values table");
