#!/usr/bin/env bash
# Completions in a shell: run-completion.sh SHELL PATH/TO/ortc
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
. "$(dirname "$0")/../packages/common.sh"
shell=$1 ortc=$2
need "$shell" "$shell"
[ "$shell" != zsh ] || need python3 python3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$ortc" completion "$shell" >"$work/completion"
cd "$work"
mkdir folder
touch model.onnx

# complete LINE: the words that the shell offers for the last word of a line, one a line.
case $shell in
  bash)
    bash -n completion
    complete() {
      bash --norc -c '
        source completion
        read -ra COMP_WORDS <<<"${1//=/ = }" # as COMP_WORDBREAKS does
        [[ $1 != *" " ]] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _ortc
        printf "%s\n" "${COMPREPLY[@]}"' _ "$1"
    }
    ;;
  zsh)
    zsh -n completion
    complete() { python3 -B "$here/complete-zsh.py" completion "$1"; }
    ;;
  fish)
    fish --no-config -n completion
    complete() { fish --no-config -c 'source completion; complete -C "$argv[1]"' "$1" | cut -f1; }
    ;;
esac

# offers LINE WORD...: all of these words are offered, but not '--no-such'.
offers() {
  local line=$1 words
  shift
  words=$(complete "$line")
  for word in "$@"; do
    grep -qxF -e "$word" <<<"$words" || fail "$shell offers for '$line' no '$word': $words"
  done
}
# hides LINE WORD: the word is not offered.
hides() {
  if complete "$1" | grep -qxF -e "$2"; then fail "$shell offers '$2' for '$1'"; fi
}

offers 'ortc tr' train
offers 'ortc ve' verify
hides 'ortc tr' run
offers 'ortc train --clip-' --clip-norm --clip-value
hides 'ortc run --cl' --clip-norm
offers 'ortc train --loss ' cross_entropy mse
offers 'ortc train --optimizer ada' adam adamw
hides 'ortc train --optimizer ada' sgd
case $shell in
  bash) offers 'ortc train --loss=cr' cross_entropy ;;
  fish) offers 'ortc train --loss=cr' --loss=cross_entropy ;;
esac
offers 'ortc help pre' predict
offers 'ortc flags pre' predict
[ "$shell" != fish ] || offers 'ortc help train clip-' clip-norm clip-value
offers 'ortc predict --hel' --help
offers 'ortc train --batch-norm ' as-exported train frozen
offers 'ortc run x --lr-schedule cos' cosine
offers 'ortc completion ' bash zsh fish
offers 'ortc train mod' model.onnx
case $shell in
  bash) offers 'ortc train model.onnx -o fo' folder ;;
  *) offers 'ortc train model.onnx -o fo' folder/ ;;
esac
hides 'ortc train model.onnx -o ' model.onnx
