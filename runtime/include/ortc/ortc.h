/* The C interface of the ortc runtime: open an artifact, create a session, step it.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program is immutable and may be shared by any number of sessions in any threads; close it after them. A
 * session is used by one thread at a time and is not re-entrant. Nothing here throws, keeps globals or
 * prints. Memory is allocated by the open and create functions only, through the hooks of ortc_host where
 * given. Tensors are known by their ONNX names and are read and written densely, row-major, in the ONNX
 * layout and dtype. Structures have a `size` field the caller sets to sizeof (ORTC_INIT does); they grow at
 * the end only. Pointers must be valid: NULL is allowed only where it says so. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ortc/export.h"
#include "ortc/format.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ORTC_ABI_VERSION 1u

#define ORTC_API ORTC_EXPORT

enum ortc_status_code {
  ORTC_OK = 0,
  ORTC_E_ARGUMENT = 1,    /* a misaligned pointer, a bad number, a structure without its size */
  ORTC_E_FORMAT = 2,      /* a malformed artifact or checkpoint */
  ORTC_E_VERSION = 3,     /* made for a newer runtime */
  ORTC_E_TARGET = 4,      /* no code in the artifact runs on this machine */
  ORTC_E_HASH = 5,        /* contents do not match their hash */
  ORTC_E_MEMORY = 6,      /* an allocation failed */
  ORTC_E_IO = 7,          /* a file operation failed */
  ORTC_E_NOT_FOUND = 8,   /* no tensor, binding, entry or section of that name */
  ORTC_E_SHAPE = 9,       /* size, shape or dtype differ */
  ORTC_E_RANGE = 10,      /* a label or index is out of range; nothing was updated */
  ORTC_E_NOT_FINITE = 11, /* the loss is not finite (ORTC_SESSION_STOP_ON_NOT_FINITE); nothing was updated */
  ORTC_E_STATE = 12,      /* not now: an update without gradients, an input that was never given */
  ORTC_E_INTERNAL = 13    /* the compiled code returned an unknown status */
};
typedef int32_t ortc_status;

struct ortc_device;
typedef struct ortc_program ortc_program;
typedef struct ortc_session ortc_session;

/* Text of an error where there is no handle to ask; always terminated. */
typedef struct ortc_message {
  char text[256];
} ortc_message;

enum ortc_host_flags {
  /* The host has verified the bytes of the file itself (a hash or signature over all of it, a file system
   * that checks what it reads): sessions take constants and initial parameters over without hashing them.
   * Tables and code are hashed all the same. The risk: where the host is wrong, sessions compute with damaged
   * numbers and nobody is told. */
  ORTC_HOST_VERIFIED = 1u
};

/* Hooks of the host; all may be NULL. */
typedef struct ortc_host {
  uint32_t size;
  uint32_t flags; /* enum ortc_host_flags */
  void *context;
  void *(*allocate)(void *context, size_t bytes, size_t alignment); /* NULL on failure */
  void (*release)(void *context, void *memory, size_t bytes);
  /* Decides whether the artifact with this digest may run; `signature` is the artifact's signature section or
   * NULL. 0 = yes. E.g. ortc_verify_signature of verify.h. */
  int32_t (*verify)(void *context, const uint8_t digest[32], const void *signature, size_t bytes);
  /* What runs the steps instead of this processor, e.g. from ortc_cuda_open of cuda.h; NULL: this processor
   * does. It must outlive the program. All memory of sessions is then the device's. */
  const struct ortc_device *device;
} ortc_host;

/* ---- Program ---- */

ORTC_API uint32_t ortc_abi_version(void);
/* "ok", "range", ...; never NULL. */
ORTC_API const char *ortc_status_name(ortc_status status);
/* Instruction set of this machine (enum ortc_architecture) and its feature bits as in format.h. */
ORTC_API uint32_t ortc_host_architecture(void);
ORTC_API uint64_t ortc_host_features(void);

/* Opens an artifact: checks every structure and the hash of tables and code, picks the last code in it
 * that this machine, or its device, can run, and makes a copy of it executable, or loads it to the device.
 * Constants and initial parameters are hashed by the first session. The file stays mapped (constants are used
 * in place) and must not be changed while it is. `host` and `message` may be NULL. Fails with ARGUMENT, IO,
 * FORMAT, VERSION, HASH, TARGET, MEMORY. */
ORTC_API ortc_status ortc_program_open_file(const char *path, const ortc_host *host, ortc_program **program,
                                            ortc_message *message);
/* The same from memory, which is used in place: aligned to ORTC_ALIGNMENT, unchanged until
 * ortc_program_close. */
ORTC_API ortc_status ortc_program_open_memory(const void *image, size_t bytes, const ortc_host *host,
                                              ortc_program **program, ortc_message *message);
/* NULL is allowed. No session of the program may be left. */
ORTC_API void ortc_program_close(ortc_program *program);

typedef struct ortc_program_info {
  uint32_t size;
  uint32_t tensor_count, binding_count, entry_count; /* entries: those of the chosen code */
  uint32_t max_workers;
  uint32_t architecture;
  uint64_t features;       /* of the chosen code */
  const char *target_name; /* of the chosen code, e.g. "x86-64-v3" */
  uint64_t code_bytes, constant_bytes, persistent_bytes, io_bytes;
  uint8_t digest[32]; /* identifies the artifact */
  uint8_t model[32];  /* identifies the model: checkpoints pass between artifacts of one model */
} ortc_program_info;
ORTC_API ortc_status ortc_program_get_info(const ortc_program *program, ortc_program_info *info);

/* Contents of the first section of a kind (manifest, source, ...), verified now, valid until close. Fails
 * with NOT_FOUND, HASH. */
ORTC_API ortc_status ortc_program_section(const ortc_program *program, uint32_t kind, const void **data,
                                          uint64_t *bytes);

typedef struct ortc_tensor_info {
  uint32_t size;
  uint32_t index; /* in the tensor table */
  const char *name;
  uint8_t role, dtype, rank,
      region;     /* enum ortc_tensor_role, ONNX TensorProto.DataType, ..., enum ortc_region */
  uint32_t owner; /* tensor index or ORTC_NONE */
  uint32_t flags; /* enum ortc_tensor_flags */
  uint32_t dense; /* 1: the stored layout is the ONNX layout, a raw pointer can be had */
  uint64_t bytes;
  int64_t dims[ORTC_MAX_RANK];
  int64_t
      strides[ORTC_MAX_RANK]; /* in bytes, of the stored layout; of a row of the table that has no place: 0 */
} ortc_tensor_info;
/* By index, in the order of the table. Fails with NOT_FOUND past the end. */
ORTC_API ortc_status ortc_tensor_get(const ortc_program *program, uint32_t index, ortc_tensor_info *info);
/* By name; gradients and loss are not found by name. */
ORTC_API ortc_status ortc_tensor_find(const ortc_program *program, const char *name, ortc_tensor_info *info);

/* Name of a binding, NULL past the end; index of a name, ORTC_NONE if there is none. */
ORTC_API const char *ortc_binding_name(const ortc_program *program, uint32_t binding);
ORTC_API uint32_t ortc_binding_find(const ortc_program *program, const char *name);

typedef struct ortc_entry_info {
  uint32_t size;
  uint32_t role, binding, segment;
  uint32_t value_count; /* inputs, outputs, gradients, loss */
  uint32_t has_loss;
  uint64_t fixed_bytes, worker_bytes; /* transient bytes = fixed + workers * worker */
  const char *name;
} ortc_entry_info;
ORTC_API ortc_status ortc_entry_get(const ortc_program *program, uint32_t entry, ortc_entry_info *info);
/* The n-th value of an entry, with the shape it has there; role tells inputs from outputs. */
ORTC_API ortc_status ortc_entry_value(const ortc_program *program, uint32_t entry, uint32_t n,
                                      ortc_tensor_info *info);

/* Names for the numbers given to a trace hook; NULL past the end. */
ORTC_API const char *ortc_kernel_name(const ortc_program *program, uint32_t kernel);

/* ---- Session ---- */

enum ortc_session_flags {
  ORTC_SESSION_STOP_ON_NOT_FINITE = 1u, /* a training step whose loss is not finite fails before any update */
  ORTC_SESSION_BIND_ALL = 2u            /* no memory for inputs and outputs: the host binds all of them */
};

/* How a session is to be made; also says how much memory that takes. Zero everything but `size` for one
 * worker and memory of the session's own. */
typedef struct ortc_session_options {
  uint32_t size;
  uint32_t flags; /* enum ortc_session_flags */
  uint32_t
      workers; /* 0 means 1; at most the program's max_workers. Of no use with a device, as what follows */
  uint32_t reserved;
  ortc_parallel_for_fn parallel_for; /* e.g. ortc_pool_parallel_for of threads.h; NULL: serial. It must not
                                        use more than `workers` */
  void *pool;
  ortc_trace_fn trace;
  void *trace_context;
  /* The caller's memory, aligned to ORTC_ALIGNMENT and at least as large as ortc_session_sizes says, or NULL.
   * It must outlive the session. With a device: NULL. */
  void *persistent, *transient, *io;
} ortc_session_options;

typedef struct ortc_sizes {
  uint32_t size;
  uint32_t reserved;
  uint64_t persistent, transient, io; /* in bytes; `transient` for the given number of workers, over all
                                         entries; io is 0 with ORTC_SESSION_BIND_ALL, all are with a device */
  uint64_t handle; /* the session itself. It and the regions that are not given are one allocation */
} ortc_sizes;
ORTC_API ortc_status ortc_session_sizes(const ortc_program *program, const ortc_session_options *options,
                                        ortc_sizes *sizes);

/* A session with the initial parameters and the first binding in use. `options` and `message` may be NULL.
 * The first session checks the hashes of constants and initial parameters. Fails with ARGUMENT, MEMORY, HASH. */
ORTC_API ortc_status ortc_session_create(const ortc_program *program, const ortc_session_options *options,
                                         ortc_session **session, ortc_message *message);
ORTC_API void ortc_session_destroy(ortc_session *session);
/* Text of the last failure of this session, "" before the first; valid until the next call on the session.
 * Some failures of plain look-ups (an unknown binding) have a status only. */
ORTC_API const char *ortc_session_message(const ortc_session *session);
/* Parameters, state and scalars as they were when the session was created. */
ORTC_API ortc_status ortc_session_reset(ortc_session *session);
/* The binding the following calls speak about. Values given to the other bindings are kept. Fails with
 * NOT_FOUND. */
ORTC_API ortc_status ortc_session_use_binding(ortc_session *session, uint32_t binding);

/* ---- Tensors of a session. `bytes` must be the tensor's size. Fail with NOT_FOUND, SHAPE, ARGUMENT, STATE.
 * ---- */

/* Copies in: parameters, state, scalars, inputs (which then are in the session's own memory, bound or not
 * before). */
ORTC_API ortc_status ortc_write(ortc_session *session, const char *name, const void *source, size_t bytes);
/* Copies out: also constants, inputs that were given, and outputs after a step. */
ORTC_API ortc_status ortc_read(ortc_session *session, const char *name, void *target, size_t bytes);
/* The place itself, of parameters, state, scalars, inputs and outputs; SHAPE when its layout is not the ONNX
 * layout, STATE when it is on a device. Valid while the session lives. */
ORTC_API ortc_status ortc_data(ortc_session *session, const char *name, void **data);
/* Lets the steps of this binding read an input from, or write an output to, the caller's memory, aligned to
 * its element. It is used in place by every step until bound anew; NULL goes back to the session's own
 * memory. A device copies inputs from there before a step and outputs to there after it, unless `data` is memory of the
 * device, which is used in place where it is aligned to ORTC_ALIGNMENT. */
ORTC_API ortc_status ortc_bind(ortc_session *session, const char *name, void *data, size_t bytes);
/* Scalars and other one-element tensors as a number, converted to and from the tensor's dtype (f32, f64,
 * i64). */
ORTC_API ortc_status ortc_set_scalar(ortc_session *session, const char *name, double value);
ORTC_API ortc_status ortc_get_scalar(ortc_session *session, const char *name, double *value);
/* The gradient of a parameter, after ortc_gradients_step and before any other step (STATE otherwise). Written
 * ones are what ortc_update_step applies. Its type is that of the tensor of role gradient whose owner is the
 * parameter: float32 where the parameter is stored in bfloat16. */
ORTC_API ortc_status ortc_read_gradient(ortc_session *session, const char *parameter, void *target,
                                        size_t bytes);
ORTC_API ortc_status ortc_write_gradient(ortc_session *session, const char *parameter, const void *source,
                                         size_t bytes);

/* ---- Steps, of the binding in use. `loss` may be NULL; it is the loss before the update. Fail with
 * NOT_FOUND (no such entry), STATE, RANGE, NOT_FINITE, INTERNAL.
 *
 * A device need not be waited for: train, accumulate and update steps return at once where `loss` is NULL and no output
 * is bound to memory of the host. When one of them fails, those after it change nothing either, and the next step that
 * is waited for fails with what the first one met. ---- */

/* The step of any role (enum ortc_entry_role). In an artifact compiled with --cotangents, ORTC_ENTRY_FORWARD writes the
 * outputs and moves running statistics, and ORTC_ENTRY_BACKWARD, which must be the next step but for copies in and out
 * (STATE otherwise), reads the cotangents `OUTPUT.cotangent` and leaves gradients as ortc_gradients_step does; inputs,
 * outputs and parameters must be those of the forward step. Several forward steps that wait for their backward steps
 * are of as many sessions. */
ORTC_API ortc_status ortc_step(ortc_session *session, uint32_t role, double *loss);
ORTC_API ortc_status ortc_train_step(ortc_session *session, double *loss);
/* In an artifact compiled with --accumulate N: a training step without its update. Its gradients, each
 * divided by the scalar "accumulate", wait in the session (and in checkpoints) for the next ortc_train_step,
 * which adds its own and applies the sum. So an update over N batches is N - 1 of these and one
 * ortc_train_step. */
ORTC_API ortc_status ortc_accumulate_step(ortc_session *session, double *loss);
ORTC_API ortc_status ortc_eval_step(ortc_session *session, double *loss);
ORTC_API ortc_status ortc_predict_step(ortc_session *session);
/* Leaves the gradients readable and changes no parameter. */
ORTC_API ortc_status ortc_gradients_step(ortc_session *session, double *loss);
/* Applies the gradients of the ortc_gradients_step before it: both together give the bits of ortc_train_step.
 * STATE when that was not the last step. */
ORTC_API ortc_status ortc_update_step(ortc_session *session);

/* ---- Checkpoints: safetensors files with parameters, state and scalars by name, in ONNX layout. ---- */

typedef struct ortc_metadata {
  const char *key, *value; /* UTF-8 */
} ortc_metadata;

/* Writes path.N.tmp with the first number N that is free, flushes it to the disk and renames it: `path` is
 * the old file or the whole new one, and several writers do not disturb each other. What a killed process
 * leaves has that name. A link at `path` is replaced, not followed. `metadata` (seed, data position, ...) is
 * kept in the file; keys that begin with "ortc." are the runtime's. Fails with IO, ARGUMENT. */
ORTC_API ortc_status ortc_checkpoint_save(ortc_session *session, const char *path,
                                          const ortc_metadata *metadata, size_t count);
/* The same into a sink, which returns 0 while it can go on. */
typedef int32_t (*ortc_sink_fn)(void *context, const void *data, size_t bytes);
ORTC_API ortc_status ortc_checkpoint_write(ortc_session *session, ortc_sink_fn sink, void *context,
                                           const ortc_metadata *metadata, size_t count);

typedef struct ortc_load_info {
  uint32_t size;
  uint32_t fresh_state; /* out: 1 when the file had weights alone, and optimizer state and step counter were
                           reset */
  uint32_t loaded, ignored; /* out: tensors taken, tensors the program does not have or does not train */
  /* in, may be NULL: called for every string of the file's metadata, once the file is found to be good */
  void (*metadata)(void *context, const char *key, const char *value);
  void *metadata_context;
} ortc_load_info;

/* Checks the whole file first and only then takes it: after a failure the session is as it was. Every
 * parameter must be there with its shape and dtype, and either all optimizer state or none of it; scalars are
 * taken where present. `info` may be NULL. Fails with IO, FORMAT, HASH, NOT_FOUND, SHAPE. */
ORTC_API ortc_status ortc_checkpoint_load(ortc_session *session, const char *path, ortc_load_info *info);
ORTC_API ortc_status ortc_checkpoint_read(ortc_session *session, const void *data, size_t bytes,
                                          ortc_load_info *info);

#ifdef __cplusplus
}
#endif

/* A structure with its size set and all else zero, without warnings in C99 and C++11:
 *   ortc_session_options options = ORTC_INIT(ortc_session_options);  */
#ifdef __cplusplus
template <typename T> inline T ortc_initialised() {
  T structure = T();
  structure.size = sizeof(T);
  return structure;
}
#define ORTC_INIT(type) (ortc_initialised<type>())
#else
#define ORTC_INIT(type) ((type){.size = sizeof(type)})
#endif
