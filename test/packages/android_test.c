/* What train_loop.c does not reach of the Android libraries: threads, numbers of 64 bits, files that are not there.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * usage: android_test MODEL.ortc CHECKPOINT: an artifact of mlp-digits with gradients for two workers. Doubles are
 * handed over by pointers: on arm, Android's convention for them is not that of this program. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ortc/ortc.h"
#include "ortc/threads.h"

#define CHECK(condition)                                                                                     \
  ((condition) ? (void)0 : (void)(failures++, printf("FAILED line %d: %s\n", __LINE__, #condition)))

static int failures = 0;

static ortc_session *create(const ortc_program *program, ortc_pool *pool) {
  ortc_session_options options = ORTC_INIT(ortc_session_options);
  options.workers = pool ? ortc_pool_workers(pool) : 1;
  options.parallel_for = pool ? ortc_pool_parallel_for : NULL;
  options.pool = pool;
  ortc_session *session = NULL;
  ortc_message message;
  if (ortc_session_create(program, &options, &session, &message)) {
    printf("%s\n", message.text);
    exit(1);
  }
  static float pixels[64 * 64];
  static int64_t labels[64];
  for (int i = 0; i < 64 * 64; i++)
    pixels[i] = (float)(i % 17) / 17.0f;
  CHECK(!ortc_write(session, "pixels", pixels, sizeof pixels));
  CHECK(!ortc_write(session, "label", labels, sizeof labels));
  return session;
}

/* The counter of steps, an int64, as a number. */
static double readCounter(const ortc_program *program, ortc_session *session) {
  ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
  double value = -1;
  for (uint32_t i = 0; !ortc_tensor_get(program, i, &info); i++)
    if (info.dtype == 7 && info.role == ORTC_ROLE_STATE && info.bytes == 8)
      CHECK(!ortc_get_scalar(session, info.name, &value));
  return value;
}

int main(int count, char **arguments) {
  if (count != 3)
    return 64;
  ortc_program *program;
  ortc_message message;
  CHECK(ortc_program_open_file("/none", NULL, &program, &message) == ORTC_E_IO && strstr(message.text, "(errno 2)"));
  CHECK(ortc_program_open_file("/", NULL, &program, &message) == ORTC_E_IO && strstr(message.text, "is not a regular"));
  if (ortc_program_open_file(arguments[1], NULL, &program, &message)) {
    printf("%s\n", message.text);
    return 1;
  }
  ortc_pool *pool = ortc_pool_create(2);
  CHECK(pool);
  ortc_session *alone = create(program, NULL), *both = create(program, pool);
  for (int i = 0; i < 20; i++) {
    double one = 0, other = 1;
    CHECK(!ortc_train_step(alone, &one));
    CHECK(!ortc_train_step(both, &other));
    CHECK(one == other);
  }
  CHECK(readCounter(program, alone) == 20);
  CHECK(!ortc_checkpoint_load(both, arguments[2], NULL)); /* of ten steps */
  CHECK(readCounter(program, both) == 10);
  CHECK(ortc_checkpoint_save(both, "/no/such/folder/file", NULL, 0) == ORTC_E_IO);
  CHECK(strstr(ortc_session_message(both), "(errno 2)"));
  ortc_session_destroy(alone);
  ortc_session_destroy(both);
  ortc_pool_destroy(pool);
  ortc_program_close(program);
  return failures;
}
