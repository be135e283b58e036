/* Checkpoints in NOR flash that survive power cuts: two slots, of which one always holds a whole state.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A save goes to the slot that does not hold the newest state: it is erased, programmed, read back, and only then
 * committed by one last word. Where the power fails before that word, the state before is loaded; so both slots are
 * erased equally often. Nothing here allocates, keeps globals or calls an operating system; the stack takes less than
 * 1 KiB on top of what ortc_checkpoint_write and ortc_checkpoint_read take. */
#pragma once

#include "ortc/export.h"
#include "ortc/ortc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ORTC_SLOTS_API ORTC_EXPORT

#define ORTC_SLOTS_MAX_PROGRAM_BYTES 512u

/* The flash, and where the slots are. Offsets and sizes are in bytes; the caller counts them from where it likes.
 * Callbacks return 0 when they have done it. They need not check anything: what is asked of them is whole units that
 * lie in the slots. Erased bytes are 0xff, and a unit is programmed once before it is erased again, as flash with error
 * correction needs it. Slots that were written with other units are damaged slots. */
typedef struct ortc_slots {
  uint32_t size;
  uint32_t erase_bytes;   /* what is erased at once: a multiple of program_bytes */
  uint32_t program_bytes; /* what is programmed at once: 1 to ORTC_SLOTS_MAX_PROGRAM_BYTES */
  uint32_t slot_bytes;    /* of each slot: a multiple of erase_bytes, at least what ortc_slots_needed says */
  uint32_t offset[2];     /* of the slots: multiples of erase_bytes */
  void *context;
  int32_t (*read)(void *context, uint32_t offset, void *data,
                  uint32_t bytes);                                      /* NULL where flash is mapped */
  int32_t (*program)(void *context, uint32_t offset, const void *data); /* one unit, which is erased */
  int32_t (*erase)(void *context, uint32_t offset);                     /* one unit */
  /* May be NULL. 0 when the state of `session` is good enough to take the place of the one before, e.g. by an
   * evaluation. Asked before anything is erased. */
  int32_t (*accept)(void *context, ortc_session *session);
  const void *mapped; /* where the processor sees offset 0, NULL: only `read` gets at it */
} ortc_slots;

/* How large a slot must be for a checkpoint of this session with this metadata, in whole erase units. Fails as
 * ortc_checkpoint_write, and with ARGUMENT. `message` may be NULL, here and below. */
ORTC_SLOTS_API ortc_status ortc_slots_needed(const ortc_slots *slots, ortc_session *session,
                                             const ortc_metadata *metadata, size_t count, uint64_t *bytes,
                                             ortc_message *message);

/* Saves a checkpoint. After ORTC_OK it is what will be loaded; after a failure or a power cut, at any moment, that is
 * the state before or this one, whole. Fails with ARGUMENT (units or places that do not fit together), SHAPE (the
 * slots are too small), STATE (`accept` said no), IO (flash could not be erased or programmed, or holds something else
 * afterwards); but for IO, nothing was erased. */
ORTC_SLOTS_API ortc_status ortc_slots_save(const ortc_slots *slots, ortc_session *session,
                                           const ortc_metadata *metadata, size_t count,
                                           ortc_message *message);

/* Loads the newest whole state, by ortc_checkpoint_read, which needs it in one piece of memory: where flash is not
 * mapped, that is `buffer` of `bytes`. It may be the transient region of the session, which is the caller's where the
 * session was created so. Where the other slot is seen to be damaged, by a power cut, perhaps, `message` says so in
 * spite of ORTC_OK. Fails with ARGUMENT; NOT_FOUND: nothing was ever saved; HASH: something was, and neither slot holds
 * it whole; MEMORY: the buffer is too small; IO; and as ortc_checkpoint_read, for the checkpoint of another model, say.
 * After a failure the session is as it was. */
ORTC_SLOTS_API ortc_status ortc_slots_load(const ortc_slots *slots, ortc_session *session, void *buffer,
                                           size_t bytes, ortc_load_info *info, ortc_message *message);

#ifdef __cplusplus
}
#endif
