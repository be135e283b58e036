#!/usr/bin/env bash
# usage: test-jail.sh SOURCE BUILD: docs/examples/jail trains with the bits of a process that may do everything, and is killed when it does more.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
. "$(dirname "$0")/common.sh"
compile_all
for model in $models; do
  "$build/bin/train_loop" "$work/$model/model.ortc" "$work/free.safetensors" >"$work/free"
  "$build/bin/jail" "$work/$model/model.ortc" >"$work/jailed.safetensors" 2>"$work/jailed"
  cmp "$work/free.safetensors" "$work/jailed.safetensors"
  cmp "$work/free" "$work/jailed"
done
status=0
("$build/bin/jail" "$work/lenet/model.ortc" open >"$work/killed.safetensors" 2>"$work/killed") 2>/dev/null || status=$?
[ $status = $((128 + 31)) ] || fail "status $status is not that of SIGSYS"
grep -q '^step 10 loss' "$work/killed" || fail "it did not train before"
