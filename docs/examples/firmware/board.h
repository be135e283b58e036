/* What a board of QEMU gives: files of its host.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stdint.h>

enum { BOARD_READ = 1, BOARD_CREATE = 5 }; /* modes "rb" and "wb" */

int32_t board_open(const char *path, int mode); /* below 0: not there */
int board_read(int32_t file, void *target, uint32_t bytes);
int board_write(int32_t file, const void *source, uint32_t bytes);
void board_seek(int32_t file, uint32_t position);
uint32_t board_length(int32_t file);
void board_close(int32_t file);
void board_say(const char *text);
void board_say_number(const char *text, uint32_t number);
void board_command_line(char *text, uint32_t bytes);
void board_exit(int status);
