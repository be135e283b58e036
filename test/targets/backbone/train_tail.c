/* Firmware that trains the tail of a model of integers, and says what RAM that took.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * command line: NAME SOUNDS LABELS STEPS PARAMETERS
 * Files have the slices of an input one after the other. Losses go to the console as 8 hexadecimal digits of a float,
 * the bytes of the stack behind "stack ", and the persistent region to PARAMETERS. What lies between the program's
 * memory and its stack is painted first. */
#include "board.h"
#include "model.h"
#include "runtime/freestanding/string.h"

extern uint8_t board_heap[], board_stack_top[];
enum { PAINT = 0xa5, OWN = 256 };

static uint8_t persistent[MODEL_PERSISTENT_BYTES] __attribute__((aligned(64)));
static uint8_t transient[MODEL_TRAIN_TRANSIENT_BYTES] __attribute__((aligned(64)));
static uint8_t sound[MODEL_TRAIN_sound_BYTES] __attribute__((aligned(8)));
static uint8_t label[MODEL_TRAIN_label_BYTES] __attribute__((aligned(8)));

static void readSlice(int32_t file, uint32_t step, uint8_t *target, uint32_t bytes) {
  board_seek(file, step % (board_length(file) / bytes) * bytes);
  if (!board_read(file, target, bytes))
    board_exit(2);
}

static void sayBits(uint32_t bits) {
  char text[10];
  for (int i = 0; i < 8; i++)
    text[i] = "0123456789abcdef"[bits >> (28 - 4 * i) & 15];
  text[8] = '\n';
  text[9] = 0;
  board_say(text);
}

/* The command line is read apart: its text is no part of what training takes. */
static __attribute__((noinline)) uint32_t openFiles(int32_t *sounds, int32_t *labels, int32_t *parameters) {
  char line[512], *words[5] = {line};
  board_command_line(line, sizeof line);
  uint32_t count = 1, steps = 0;
  for (char *at = line; *at; at++)
    if (*at == ' ') {
      *at = 0;
      if (count < 5)
        words[count++] = at + 1;
    }
  if (count != 5)
    board_exit(2);
  *sounds = board_open(words[1], BOARD_READ);
  *labels = board_open(words[2], BOARD_READ);
  for (const char *at = words[3]; *at; at++)
    steps = 10 * steps + (uint32_t)(*at - '0');
  *parameters = board_open(words[4], BOARD_CREATE);
  return steps;
}

int main(void) {
  int32_t sounds, labels, parameters;
  uint32_t steps = openFiles(&sounds, &labels, &parameters);
  uint8_t *end = (uint8_t *)__builtin_frame_address(0) - OWN; /* behind this frame */
  for (uint8_t *at = board_heap; at < end; at++)
    *(volatile uint8_t *)at = PAINT;
  memcpy(persistent, model_initial, MODEL_INITIAL_BYTES);
  void *const bases[ORTC_BASES] = {(void *)(uintptr_t)model_constants, persistent, transient};
  void *const values[] = {[MODEL_TRAIN_sound_EXT] = sound, [MODEL_TRAIN_label_EXT] = label};
  ortc_detail detail;
  const ortc_call call = {.size = sizeof call, .bases = bases, .ext = values, .workers = 1, .detail = &detail};
  for (uint32_t step = 0; step < steps; step++) {
    readSlice(sounds, step, sound, sizeof sound);
    readSlice(labels, step, label, sizeof label);
    if (MODEL_TRAIN_STEP(&call) != ORTC_STEP_OK)
      return 1;
    uint32_t loss;
    memcpy(&loss, transient + MODEL_TRAIN_LOSS_OFFSET, sizeof loss);
    sayBits(loss);
  }
  const uint8_t *lowest = board_heap;
  while (lowest < end && *lowest == PAINT)
    lowest++;
  board_say_number("stack ", (uint32_t)(board_stack_top - lowest));
  board_write(parameters, persistent, sizeof persistent);
  board_close(parameters);
  return 0;
}
