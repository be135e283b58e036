// Trains where memory may not become executable: without-exec MODE MODEL.ortc OUT.safetensors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MODE: `free`, where it may; `seccomp`, a filter under which mprotect with PROT_EXEC fails; `mdwe`, the kernel's own
// rule (systemd's MemoryDenyWriteExecute); `none`, as seccomp, and memfd_create fails, too; `short`, as seccomp, and no
// file may have more than 4 KiB. Prints mappings while the program is open, a line "closed", and mappings afterwards.
// Exit status 77 where the kernel has no such rule.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "test/system/inputs.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif
#define REFUSED (SECCOMP_RET_ERRNO | EACCES)

/* mprotect with PROT_EXEC fails; `call` as well. */
static int refuse(unsigned call) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])), // its low half
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, REFUSED),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  const char *mode = argv[1];
  if (!strcmp(mode, "mdwe") ? prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)
                            : strcmp(mode, "free") && refuse(strcmp(mode, "none") ? ~0u : SYS_memfd_create))
    return 77;
  struct rlimit limit = {4096, 4096};
  if (!strcmp(mode, "short")) {
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ortc_program *program;
  ortc_session *session;
  ortc_message message;
  check(ortc_program_open_file(argv[2], NULL, &program, &message), message.text);
  check(ortc_session_create(program, NULL, &session, &message), message.text);
  bindInputs(program, session);
  double loss;
  for (int step = 0; step < 10; step++)
    check(ortc_train_step(session, &loss), "a step");
  printMaps();
  check(ortc_checkpoint_save(session, argv[3], NULL, 0), "the checkpoint");
  ortc_session_destroy(session);
  ortc_program_close(program);
  printf("closed\n");
  printMaps();
  return 0;
}
