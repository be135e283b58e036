/* How the runtime calls compiled code: the head of a code blob and the argument of a step.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Shared by the compiler, which emits code against it, and by the runtime, which calls that code. Treat it as
 * a schema: structures grow at the end only, numbers never change their meaning. Everything is little-endian.
 * A blob is position-independent, has no relocations, no writable data and no undefined symbols. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORTC_CALL_ABI 1u
#define ORTC_BLOB_MAGIC 0x424f524fu /* the bytes "OROB" */

/* The calling convention of compiled code and of what it calls: on x86-64 that of System V, whatever the operating
 * system, elsewhere the platform's own. Functions that are given to a session for it to call have it, too. Visual C++
 * cannot write it: there those functions are of a library that another compiler made, as ortc_pool_parallel_for is. */
#if defined(_WIN32) && defined(__x86_64__)
#define ORTC_STEP_ABI __attribute__((sysv_abi))
#else
#define ORTC_STEP_ABI
#endif

/* What an entry does. One step function per (role, binding, segment). */
enum ortc_entry_role {
  ORTC_ENTRY_TRAIN = 0,     /* forward, loss, gradients, update */
  ORTC_ENTRY_EVAL = 1,      /* forward and loss in eval mode */
  ORTC_ENTRY_PREDICT = 2,   /* forward in eval mode, no label, no loss */
  ORTC_ENTRY_GRADIENTS = 3, /* forward, loss, gradients; leaves them in the transient region */
  ORTC_ENTRY_UPDATE = 4,    /* applies what ORTC_ENTRY_GRADIENTS left there, clipping included */
  ORTC_ENTRY_ACCUMULATE =
      5, /* forward, loss, gradients, which are added to what the next train entry applies */
  ORTC_ENTRY_FORWARD =
      6, /* forward in train mode, new state included; keeps what ORTC_ENTRY_BACKWARD needs in the
                              transient region */
  ORTC_ENTRY_BACKWARD = 7, /* gradients for cotangents of the outputs of the ORTC_ENTRY_FORWARD before it */
  ORTC_ENTRY_ROLES = 8
};

/* Head of a blob, at its offset 0. `count` entries follow, `entry_bytes` apart (at least
 * sizeof(ortc_blob_entry)). */
typedef struct ortc_blob {
  uint32_t magic; /* ORTC_BLOB_MAGIC */
  uint32_t abi;   /* ORTC_CALL_ABI */
  uint32_t count;
  uint32_t entry_bytes;
} ortc_blob;

typedef struct ortc_blob_entry {
  uint32_t role;    /* enum ortc_entry_role */
  uint32_t binding; /* index in the bindings table */
  uint32_t segment; /* 0, unless a plan is cut in more parts than roles tell */
  uint32_t offset;  /* of the step function, in bytes from the start of the blob */
} ortc_blob_entry;

/* What a step returns. Any other value is reported as an internal error with its number. */
enum ortc_step_status {
  ORTC_STEP_OK = 0,
  ORTC_STEP_RANGE =
      1, /* a data-dependent index is out of range; `detail` says which; nothing persistent has changed */
  ORTC_STEP_NOT_FINITE = 2 /* the loss is not finite and ORTC_CALL_STOP_ON_NOT_FINITE was set; it is stored;
                              nothing persistent has changed */
};

/* Bits of ortc_call.flags. */
enum ortc_call_flags {
  ORTC_CALL_STOP_ON_NOT_FINITE =
      1u /* train, gradients, update, accumulate: return before any update when the loss is not finite */
};

/* Indices into ortc_call.bases; each base is aligned to ORTC_ALIGNMENT. */
enum ortc_base { ORTC_BASE_CONSTANTS = 0, ORTC_BASE_PERSISTENT = 1, ORTC_BASE_TRANSIENT = 2, ORTC_BASES = 3 };

/* One chunk of a kernel. The signature of every kernel: `context` is its array of buffer pointers. */
typedef void(ORTC_STEP_ABI *ortc_task_fn)(void *context, int64_t chunk, int64_t worker);
/* Calls task(context, chunk, worker) once for every chunk in [0, chunks), with worker < ortc_call.workers and
 * no two calls of one worker at a time; returns when all are done, with their writes visible to the caller.
 * Chunks may run in any order. */
typedef void(ORTC_STEP_ABI *ortc_parallel_for_fn)(void *pool, int64_t chunks, ortc_task_fn task,
                                                  void *context);
/* `kernel` is an index in the kernel names section; `phase` is ORTC_TRACE_BEGIN or ORTC_TRACE_END. With
 * ORTC_TRACE_READY, `kernel` is the number of a value of the entry instead: a gradient in memory of the host (--bind
 * gradients) that is final. Called on the thread that runs the step. */
typedef void(ORTC_STEP_ABI *ortc_trace_fn)(void *context, uint32_t kernel, uint32_t phase);
enum ortc_trace_phase { ORTC_TRACE_BEGIN = 0, ORTC_TRACE_END = 1, ORTC_TRACE_READY = 2 };

/* Filled by a step that returns ORTC_STEP_RANGE. */
typedef struct ortc_detail {
  uint32_t name;     /* index in the check names section: the tensor that holds the index */
  uint32_t from_end; /* 1: the op counts negative values from the end; 0: it takes none */
  int64_t index;     /* the offending value */
  int64_t limit;     /* valid values are below it, and at least -limit with from_end, else at least 0 */
} ortc_detail;

/* The argument of a step. Append-only; `size` is sizeof(ortc_call) of the runtime, so that newer code can
 * tell which fields are there. */
typedef struct ortc_call {
  uint32_t size;
  uint32_t flags;     /* enum ortc_call_flags */
  void *const *bases; /* enum ortc_base */
  void *const *ext;   /* the entry's first `ext_count` values (format.h), dense, in ONNX layout */
  ortc_parallel_for_fn parallel_for; /* NULL: the step runs its chunks itself, in order, as worker 0 */
  void *pool;                        /* first argument of parallel_for */
  uint32_t workers;                  /* at least 1, at most the program's max_workers */
  uint32_t reserved;
  ortc_trace_fn trace; /* NULL: no tracing */
  void *trace_context;
  ortc_detail *detail; /* never NULL */
} ortc_call;

/* A step function. */
typedef int32_t(ORTC_STEP_ABI *ortc_step_fn)(const ortc_call *call);

#if defined(__cplusplus)
#define ORTC_STATIC_ASSERT(condition, text) static_assert(condition, text)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define ORTC_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#else
#define ORTC_STATIC_ASSERT(condition, text) extern char ortc_assertion[(condition) ? 1 : -1]
#endif
ORTC_STATIC_ASSERT(sizeof(ortc_blob) == 16 && sizeof(ortc_blob_entry) == 16, "blob head");
ORTC_STATIC_ASSERT(sizeof(ortc_detail) == 24, "range detail");
#if UINTPTR_MAX == UINT64_MAX
ORTC_STATIC_ASSERT(offsetof(ortc_call, bases) == 8 && offsetof(ortc_call, ext) == 16 &&
                       offsetof(ortc_call, parallel_for) == 24 && offsetof(ortc_call, pool) == 32 &&
                       offsetof(ortc_call, workers) == 40 && offsetof(ortc_call, trace) == 48 &&
                       offsetof(ortc_call, trace_context) == 56 && offsetof(ortc_call, detail) == 64 &&
                       sizeof(ortc_call) == 72,
                   "call structure on 64-bit targets");
#else
ORTC_STATIC_ASSERT(offsetof(ortc_call, bases) == 8 && offsetof(ortc_call, ext) == 12 &&
                       offsetof(ortc_call, parallel_for) == 16 && offsetof(ortc_call, pool) == 20 &&
                       offsetof(ortc_call, workers) == 24 && offsetof(ortc_call, trace) == 32 &&
                       offsetof(ortc_call, trace_context) == 36 && offsetof(ortc_call, detail) == 40 &&
                       sizeof(ortc_call) == 44,
                   "call structure on 32-bit targets");
#endif

#ifdef __cplusplus
}
#endif
