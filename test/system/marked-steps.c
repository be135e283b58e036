// Steps between two calls of getppid, which nothing else makes: marked-steps MODEL.ortc WORKERS [call]
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints the process's mappings, then how often the pool was used between the marks. With `call` there is one more call
// between them, of getuid: whoever looks must see it.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "ortc/threads.h"
#include "test/system/inputs.h"

static uint64_t uses;

static void countUse(void *pool, int64_t chunks, ortc_task_fn task, void *context) {
  uses++;
  ortc_pool_parallel_for(pool, chunks, task, context);
}

static void ORTC_STEP_ABI startUp(void *context, int64_t chunk, int64_t worker) {
  (void)context, (void)chunk, (void)worker;
}

int main(int argc, char **argv) {
  uint32_t workers = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
  ortc_pool *pool = workers > 1 ? ortc_pool_create(workers) : NULL;
  ortc_session_options options = {.size = sizeof options};
  if (pool) {
    options.workers = workers;
    options.parallel_for = countUse;
    options.pool = pool;
    ortc_pool_parallel_for(pool, workers, startUp, NULL); // threads have begun behind it
  }
  ortc_program *program;
  ortc_session *session;
  ortc_message message;
  check(ortc_program_open_file(argv[1], NULL, &program, &message), message.text);
  check(ortc_session_create(program, &options, &session, &message), message.text);
  bindInputs(program, session);
  double loss;
  check(ortc_train_step(session, &loss), "the first step");
  printMaps();
  uses = 0;
  syscall(SYS_getppid);
  for (int step = 0; step < 200; step++) {
    check(ortc_train_step(session, &loss), "a step");
    if (step == 100 && argc > 3)
      syscall(SYS_getuid);
  }
  syscall(SYS_getppid);
  printf("uses of the pool: %llu\n", (unsigned long long)uses);
  ortc_session_destroy(session);
  ortc_program_close(program);
  ortc_pool_destroy(pool);
  return 0;
}
