#!/usr/bin/env bash
# Runs the commands of a page of docs/, in order, and checks what they print and leave:
# run-guide.sh ORTC SOURCE PAGE PATTERN FILE...
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
ortc=$(realpath "$1")
source=$(realpath "$2")
page=$source/docs/$3
pattern=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build/bin" # where tools/build leaves it
ln -s "$ortc" "$work/build/bin/ortc"
ln -s "$source/test" "$work/test"
cd "$work"
export PATH=$work/build/bin:$PATH
sed -n '/^```sh$/,/^```$/{/^```/d;p}' "$page" >commands
test "$(grep -c '^ortc ' commands)" -ge 5
bash -euxo pipefail commands | tee output
grep -qE "$pattern" output
for file in "$@"; do
  test -s "$file"
done
