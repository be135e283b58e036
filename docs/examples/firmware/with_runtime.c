/* Firmware that trains with the runtime: tensors by name, checkpoints, messages.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * All memory is here, and known when it is linked: the regions that model.h has the sizes of, and what the handles of a
 * program and a session take. */
#include "board.h"
#include "digits.h"
#include "model.h"

enum { BATCH = MODEL_TRAIN_label_BYTES / 8, STEPS = 40, HANDLES = 4 << 10 };

static uint8_t persistent[MODEL_PERSISTENT_BYTES] __attribute__((aligned(64)));
static uint8_t transient[MODEL_TRANSIENT_BYTES] __attribute__((aligned(64)));
static uint8_t handles[HANDLES] __attribute__((aligned(64)));
static size_t taken;
static float pixels[BATCH * PIXELS];
static int64_t labels[BATCH];

static void *allocate(void *context, size_t bytes, size_t alignment) {
  size_t first = (taken + alignment - 1) / alignment * alignment;
  (void)context;
  if (bytes > sizeof handles || first > sizeof handles - bytes)
    return NULL;
  taken = first + bytes;
  return handles + first;
}

static int fail(const char *text) {
  board_say(text);
  board_say("\n");
  return 1;
}

int main(void) {
  ortc_host host = ORTC_INIT(ortc_host);
  host.allocate = allocate;
  ortc_session_options options = ORTC_INIT(ortc_session_options);
  options.flags = ORTC_SESSION_BIND_ALL; /* inputs are read where they are */
  options.persistent = persistent;
  options.transient = transient;
  ortc_program *program;
  ortc_session *session;
  static ortc_message message;
  if (ortc_program_open_static(model(), &host, &program, &message) ||
      ortc_session_create(program, &options, &session, &message))
    return fail(message.text);
  if (ortc_bind(session, "pixels", pixels, sizeof pixels) || ortc_bind(session, "label", labels, sizeof labels))
    return fail(ortc_session_message(session));
  uint32_t random = 1;
  double loss = 0;
  for (int step = 0; step < STEPS; step++) {
    draw(pixels, labels, BATCH, &random);
    if (ortc_train_step(session, &loss))
      return fail(ortc_session_message(session));
    if (step % 10 == 0 || step + 1 == STEPS)
      board_say_number("loss, in thousandths: ", (uint32_t)((float)loss * 1000));
  }
  return 0;
}
