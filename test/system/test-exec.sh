#!/usr/bin/env bash
# usage: test-exec.sh SOURCE BUILD: where memory may not become executable, code runs from a sealed file in memory, with the same bits.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
. "$(dirname "$0")/common.sh"
compile lenet --loss nll
train() { "$build/bin/without-exec" "$1" "$work/lenet/model.ortc" "$work/$1.safetensors"; }
# executable FILE: its mappings that can be executed and are no file's, or a sealed one's.
executable() { grep -E ' r-xp .*( 00:00 0 *| /memfd: \(deleted\))$' "$1" || true; }

train free >"$work/free"
executable <(sed '/^closed$/,$d' "$work/free") | grep -q ' 00:00 0 *$' || fail "there is no code in memory"
[ -z "$(executable <(sed '1,/^closed$/d' "$work/free"))" ] || fail "code is left"
missing=
for mode in seccomp mdwe; do
  status=0
  train $mode >"$work/$mode" || status=$?
  if [ $status = 77 ]; then
    missing+=" $mode"
    continue
  fi
  [ $status = 0 ] || fail "status $status under $mode"
  cmp "$work/free.safetensors" "$work/$mode.safetensors"
  code=$(executable <(sed '/^closed$/,$d' "$work/$mode"))
  [[ $code == *"/memfd: (deleted)" ]] && [ "$(wc -l <<<"$code")" = 1 ] || fail "code under $mode: $code"
  ! grep -q ' .wx' "$work/$mode" || fail "writable and executable under $mode"
  [ -z "$(executable <(sed '1,/^closed$/d' "$work/$mode"))" ] || fail "code is left under $mode"
done
# Neither way, and a file that does not get all of the code: refused, not run.
for mode in none short; do
  status=0
  train $mode >"$work/$mode" 2>"$work/stderr" || status=$?
  [ $status = 1 ] && grep -q 'cannot be executed' "$work/stderr" || fail "status $status under $mode: $(cat "$work/stderr")"
done
# Nobody can write to the file, nor open it for writing later.
if command -v strace >/dev/null && strace -o "$work/trace" true; then
  strace -o "$work/trace" "$build/bin/without-exec" seccomp "$work/lenet/model.ortc" "$work/traced.safetensors" >/dev/null
  grep -q 'F_ADD_SEALS, F_SEAL_SEAL|F_SEAL_SHRINK|F_SEAL_GROW|F_SEAL_WRITE) = 0' "$work/trace" || fail "the file is not sealed"
else
  missing+=" strace"
fi
[ -z "$missing" ] || skip "the rest has passed; not here:$missing"
