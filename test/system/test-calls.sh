#!/usr/bin/env bash
# usage: test-calls.sh SOURCE BUILD: a training step makes no system call, a pool of threads only those that it waits with; and no memory is
# ever writable and executable.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
. "$(dirname "$0")/common.sh"
need_strace
compile_all

# between TRACE: the names of the calls between the marks, each once.
between() {
  [ "$(grep -c 'getppid(' "$1")" = 2 ] || fail "there are not two marks in $1"
  sed -n '/getppid(/,/getppid(/p' "$1" | { grep -v 'getppid' || true; } | sed -E 's/^([0-9]+ +)?(<\.\.\. )?([a-z0-9_]+).*/\3/' | sort -u | xargs
}
# writable_code TRACE MAPS: what was writable and executable at once.
writable_code() {
  grep -E '(mmap|mmap2|mprotect|pkey_mprotect|shmat)\(.*PROT_WRITE.*PROT_EXEC|PROT_EXEC.*PROT_WRITE|SHM_EXEC' "$1" || true
  grep -E '^[0-9a-f]+-[0-9a-f]+ .wx' "$2" || true
}

for model in $models; do
  for workers in 1 2; do
    strace -f -o "$work/trace" "$build/bin/marked-steps" "$work/$model/model.ortc" $workers >"$work/maps"
    calls=$(between "$work/trace")
    uses=$(sed -n 's/^uses of the pool: //p' "$work/maps")
    echo "$model, $workers workers: '$calls' in 200 steps; the pool is used $uses times"
    if [ $workers = 1 ]; then
      [ -z "$calls" ] || fail "a step of one thread calls $calls"
    else
      for call in $calls; do
        # Where the clock cannot be read without a call, waiting threads make that; a wait that was interrupted goes on by another.
        [[ " futex sched_yield clock_gettime restart_syscall " == *" $call "* ]] || fail "a step of $workers threads calls $call"
      done
      [ "$model" != lenet ] || [ "$uses" -ge 200 ] || fail "the pool is not used"
    fi
    [ -z "$(writable_code "$work/trace" "$work/maps")" ] || fail "writable and executable: $(writable_code "$work/trace" "$work/maps")"
    # The search above finds what is there: the code that became executable. Another thread's call may stand within this one.
    grep -qE 'mprotect\(.*, PROT_READ\|PROT_EXEC(\) += 0| <unfinished)' "$work/trace" || fail "no code was made executable"
    grep -qE '^[0-9a-f]+-[0-9a-f]+ r-xp 00000000 00:00 0 *$' "$work/maps" || fail "no code is executable"
  done
done
# A call is seen where there is one.
strace -f -o "$work/trace" "$build/bin/marked-steps" "$work/lenet/model.ortc" 1 call >"$work/maps"
[ "$(between "$work/trace")" = getuid ] || fail "getuid is not seen"
