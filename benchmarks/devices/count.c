/* Firmware that counts the instructions of a training step: QEMU with -icount makes its clock count them.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The timer ticks once in several instructions: a loop of known length tells in how many. */
#include "board.h"
#include "model.h"
#include "runtime/freestanding/string.h"

extern uint8_t board_heap[], board_stack_top[];
static uint8_t *heap;

static void *take(void *context, size_t bytes, size_t alignment) {
  (void)context;
  uint8_t *memory = (uint8_t *)(((uintptr_t)heap + alignment - 1) / alignment * alignment);
  if (bytes > (size_t)(board_stack_top - (64 << 10) - memory))
    return NULL;
  heap = memory + bytes;
  return memory;
}

#define TICKS (*(volatile uint32_t *)0xE000E018)
enum { MOST = 0xffffff, LOOPS = 1000000 };

/* The timer counts down from here. */
static void startTimer(void) {
  *(volatile uint32_t *)0xE000E014 = MOST;
  TICKS = 0;
  *(volatile uint32_t *)0xE000E010 = 5;
}
static uint32_t readTimer(void) { return MOST - TICKS; }

static int fail(const char *text) {
  board_say(text);
  return 1;
}

int main(void) {
  heap = board_heap;
  static ortc_message message;
  ortc_host host = ORTC_INIT(ortc_host);
  host.allocate = take;
  ortc_program *program;
  ortc_session *session;
  if (ortc_program_open_static(model(), &host, &program, &message) ||
      ortc_session_create(program, NULL, &session, &message))
    return fail(message.text);
  ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
  for (uint32_t i = 0; !ortc_tensor_get(program, i, &tensor); i++)
    if (tensor.role == ORTC_ROLE_INPUT) {
      uint8_t *zeros = take(NULL, (size_t)tensor.bytes, 8);
      if (!zeros)
        return fail("no memory");
      memset(zeros, 0, (size_t)tensor.bytes);
      if (ortc_write(session, tensor.name, zeros, (size_t)tensor.bytes))
        return fail(ortc_session_message(session));
    }
  startTimer();
  uint32_t loops = LOOPS;
  __asm__ volatile("1: subs %0, %0, #1\nbne 1b" : "+r"(loops) : : "cc"); /* two instructions */
  board_say_number("calibration ", readTimer());
  startTimer();
  if (ortc_train_step(session, NULL))
    return fail(ortc_session_message(session));
  board_say_number("step ", readTimer());
  return 0;
}
