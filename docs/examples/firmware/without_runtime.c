/* Firmware that calls the step itself: no runtime, no tables, no names; places are constants of model.h.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * model_data.c is compiled with -DMODEL_WITHOUT_RUNTIME and has the weights alone. */
#include "board.h"
#include "digits.h"
#include "model.h"

#include <string.h>

enum { BATCH = MODEL_TRAIN_label_BYTES / 8, STEPS = 40 };

static uint8_t persistent[MODEL_PERSISTENT_BYTES] __attribute__((aligned(64)));
static uint8_t transient[MODEL_TRAIN_TRANSIENT_BYTES] __attribute__((aligned(64)));
static float pixels[BATCH * PIXELS];
static int64_t labels[BATCH];

int main(void) {
  memcpy(persistent, model_initial, MODEL_INITIAL_BYTES); /* the rest is zero */
  void *const bases[ORTC_BASES] = {(void *)(uintptr_t)model_constants, persistent, transient};
  void *const values[] = {[MODEL_TRAIN_pixels_EXT] = pixels, [MODEL_TRAIN_label_EXT] = labels};
  ortc_detail detail;
  const ortc_call call = {.size = sizeof call, .bases = bases, .ext = values, .workers = 1, .detail = &detail};
  uint32_t random = 1;
  for (int step = 0; step < STEPS; step++) {
    draw(pixels, labels, BATCH, &random);
    if (MODEL_TRAIN_STEP(&call) != ORTC_STEP_OK)
      return 1;
    float loss;
    memcpy(&loss, transient + MODEL_TRAIN_LOSS_OFFSET, sizeof loss);
    if (step % 10 == 0 || step + 1 == STEPS)
      board_say_number("loss, in thousandths: ", (uint32_t)(loss * 1000));
  }
  return 0;
}
