/* Start of firmware on a board of QEMU, and the services of its host (semihosting).
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "board.h"

extern uint32_t board_stack_top, board_data_start, board_data_end, board_data_source, board_bss_start, board_bss_end;

static int32_t call(int32_t operation, const void *argument) {
  register int32_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

enum { OPEN = 1, CLOSE = 2, WRITE0 = 4, WRITE = 5, READ = 6, SEEK = 10, LENGTH = 12, COMMAND_LINE = 21, EXIT = 32 };

int32_t board_open(const char *path, int mode) {
  uint32_t length = 0;
  while (path[length])
    length++;
  const uint32_t block[3] = {(uint32_t)(uintptr_t)path, (uint32_t)mode, length};
  return call(OPEN, block);
}
int board_read(int32_t file, void *target, uint32_t bytes) {
  const uint32_t block[3] = {(uint32_t)file, (uint32_t)(uintptr_t)target, bytes};
  return call(READ, block) == 0;
}
int board_write(int32_t file, const void *source, uint32_t bytes) {
  const uint32_t block[3] = {(uint32_t)file, (uint32_t)(uintptr_t)source, bytes};
  return call(WRITE, block) == 0;
}
void board_seek(int32_t file, uint32_t position) {
  const uint32_t block[2] = {(uint32_t)file, position};
  call(SEEK, block);
}
uint32_t board_length(int32_t file) {
  const uint32_t block[1] = {(uint32_t)file};
  return (uint32_t)call(LENGTH, block);
}
void board_close(int32_t file) {
  const uint32_t block[1] = {(uint32_t)file};
  call(CLOSE, block);
}
void board_say(const char *text) { call(WRITE0, text); }
void board_say_number(const char *text, uint32_t number) {
  char digits[12], *at = digits + sizeof digits;
  *--at = 0;
  *--at = '\n';
  do
    *--at = (char)('0' + number % 10);
  while (number /= 10);
  board_say(text);
  board_say(at);
}
void board_command_line(char *text, uint32_t bytes) {
  uint32_t block[2] = {(uint32_t)(uintptr_t)text, bytes};
  text[0] = 0;
  call(COMMAND_LINE, block);
}
void board_exit(int status) {
  const uint32_t block[2] = {0x20026, (uint32_t)status}; /* the application ends by itself */
  for (;;)
    call(EXIT, block);
}

int main(void);

void board_start(void);
void board_start(void) {
  *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* CPACR: the floating point unit, and vectors */
  __asm__ volatile("dsb\nisb");
  for (uint32_t *to = &board_data_start, *from = &board_data_source; to < &board_data_end;)
    *to++ = *from++;
  for (uint32_t *to = &board_bss_start; to < &board_bss_end;)
    *to++ = 0;
  board_exit(main());
}

static void fault(void) {
  board_say("fault\n");
  board_exit(3);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &board_stack_top, (const void *)board_start, (const void *)fault, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault, (const void *)fault, (const void *)fault,
    (const void *)fault};
