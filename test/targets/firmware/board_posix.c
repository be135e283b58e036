/* The board of train.c as a program of this machine: a model that is linked in where there are files.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE
#include "board.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint8_t board_heap[64 << 20] __attribute__((aligned(64)));
__asm__(".globl board_stack_top\nboard_stack_top = board_heap + 67108864");

int32_t board_open(const char *path, int mode) {
  return open(path, mode == BOARD_CREATE ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0644);
}
int board_read(int32_t file, void *target, uint32_t bytes) { return read(file, target, bytes) == (ssize_t)bytes; }
int board_write(int32_t file, const void *source, uint32_t bytes) {
  return write(file, source, bytes) == (ssize_t)bytes;
}
void board_seek(int32_t file, uint32_t position) { lseek(file, position, SEEK_SET); }
uint32_t board_length(int32_t file) {
  struct stat about;
  fstat(file, &about);
  return (uint32_t)about.st_size;
}
void board_close(int32_t file) { close(file); }
void board_say(const char *text) { fputs(text, stdout); }
void board_exit(int status) { exit(status); }

/* The words of the program, with blanks between them: the paths of tests have none. */
void board_command_line(char *text, uint32_t bytes) {
  int file = open("/proc/self/cmdline", O_RDONLY);
  ssize_t length = read(file, text, bytes - 1);
  close(file);
  for (ssize_t i = 0; i + 1 < length; i++)
    if (!text[i])
      text[i] = ' ';
  text[length > 0 ? length : 0] = 0;
}
