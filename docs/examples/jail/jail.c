// Trains in a process that can do nothing but write to files that are open: jail MODEL.ortc >OUT.safetensors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening an artifact and creating a session take what the operating system has to give. Steps make no system call at
// all, and a checkpoint goes out by writes. So between both the process locks itself in: a model or data that made it
// misbehave would find no way to files, network or other programs. With a pool of threads (ortc/threads.h) futex and
// sched_yield are needed, too, and the filter is for all threads: SECCOMP_FILTER_FLAG_TSYNC of seccomp(2).
//
// `jail MODEL.ortc open` also tries to open a file at the end, and is killed by SIGSYS.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ortc/ortc.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* From here on anything but write and exit_group ends the process. */
static int lock(void) {
  struct sock_filter filter[] = {
      // The numbers of calls are those of one architecture: a call by the numbers of another one ends it, too.
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(SYS_write),
      ALLOW(SYS_exit_group),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* By write alone: stdio asks what a file is, and takes memory. */
static int32_t writeAll(void *file, const void *data, size_t bytes) {
  const char *at = data;
  while (bytes) {
    ssize_t written = write(*(int *)file, at, bytes);
    if (written <= 0)
      return 1;
    at += written;
    bytes -= (size_t)written;
  }
  return 0;
}

static int standardOutput = 1, standardError = 2;

static void say(const char *text) { writeAll(&standardError, text, strlen(text)); }

/* _exit is exit_group; exit would run what libraries have registered. */
static void fail(const char *what, const char *text) {
  say("jail: ");
  say(what);
  say(": ");
  say(text);
  say("\n");
  _exit(1);
}

int main(int argc, char **argv) {
  if (argc < 2)
    fail("usage", "jail MODEL.ortc [open] >OUT.safetensors");
  ortc_program *program;
  ortc_session *session;
  ortc_message message;
  if (ortc_program_open_file(argv[1], NULL, &program, &message) != ORTC_OK)
    fail(argv[1], message.text);
  if (ortc_session_create(program, NULL, &session, &message) != ORTC_OK)
    fail("session", message.text);

  // An array for every input of the training entry. A real program would let another process fill them: shared memory.
  ortc_entry_info entry = {.size = sizeof entry};
  uint32_t e = 0;
  while (ortc_entry_get(program, e, &entry) == ORTC_OK && entry.role != ORTC_ENTRY_TRAIN)
    e++;
  for (uint32_t i = 0; i < entry.value_count; i++) {
    ortc_tensor_info value = {.size = sizeof value};
    if (ortc_entry_value(program, e, i, &value) != ORTC_OK || value.role != ORTC_ROLE_INPUT)
      continue;
    void *array = calloc(1, value.bytes);
    if (value.dtype == 1) // float
      for (uint64_t k = 0; k < value.bytes / sizeof(float); k++)
        ((float *)array)[k] = (float)(k % 17) / 17.0f;
    if (ortc_bind(session, value.name, array, value.bytes) != ORTC_OK)
      fail(value.name, ortc_session_message(session));
  }

  if (lock())
    fail("seccomp", "there is none, or it is not allowed");
  for (int step = 1; step <= 10; step++) {
    double loss = 0;
    if (ortc_train_step(session, &loss) != ORTC_OK)
      fail("step", ortc_session_message(session));
    char line[64];
    snprintf(line, sizeof line, "step %d loss %.6f\n", step, loss);
    say(line);
  }
  if (ortc_checkpoint_write(session, writeAll, &standardOutput, NULL, 0) != ORTC_OK)
    fail("checkpoint", ortc_session_message(session));
  if (argc > 2 && !strcmp(argv[2], "open"))
    open(argv[1], O_RDONLY);
  _exit(0);
}
