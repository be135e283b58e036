#!/usr/bin/env bash
# Runs the commands of README.md and looks for every line of output that it shows: run-readme.sh ORTC SOURCE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
ortc=$(realpath "$1")
source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build/bin"
ln -s "$ortc" "$work/build/bin/ortc"
ln -s "$source/test" "$work/test"
cd "$work"
sed -n '/^\$ tools\/build/,/^```$/{/^```/d;p}' "$source/README.md" >block
sed -n 's/^\$ \(build\/bin\/ortc .*\)/\1/p' block >commands
test "$(wc -l <commands)" = 2
bash -euxo pipefail commands >output 2>&1
# Seconds differ from machine to machine.
grep -vE '^(\$ |\.\.\.$|written )' block | while IFS= read -r line; do
  grep -qxF -- "$line" output || { echo "README.md shows a line that is not printed: $line"; cat output; exit 1; }
done
