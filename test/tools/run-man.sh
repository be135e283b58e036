#!/usr/bin/env bash
# Man pages: every command has one, and groff renders each without a warning: run-man.sh PATH/TO/ortc FOLDER
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
. "$(dirname "$0")/../packages/common.sh"
ortc=$1 out=$2
need groff groff cmake cmake
cmake -DORTC="$ortc" -DOUT="$out" -P "$(dirname "$0")/../../tools/cmake/WritePages.cmake"
for page in "$out"/man1/*.1; do
  messages=$(groff -man -Tutf8 -ww -z -rCHECKSTYLE=2 "$page" 2>&1)
  [ -z "$messages" ] || fail "$page: $messages"
  ! command -v man >/dev/null || [ -z "$(man --warnings -l "$page" 2>&1 >/dev/null)" ] || fail "man warns of $page"
done
"$ortc" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | while read -r command; do
  [ -s "$out/man1/ortc-$command.1" ] || fail "there is no page of ortc $command"
  grep -q "ortc..$command " "$out/man1/ortc.1" || fail "ortc(1) does not name ortc-$command"
done
text=$(groff -man -Tascii -P-cbou "$out/man1/ortc-train.1")
for words in 'ortc-train - Compile MODEL into a training artifact' '--clip-norm X' 'Clip the norm of all gradients together.'; do
  grep -qF -e "$words" <<<"$text" || fail "ortc-train.1 does not show: $words"
done
