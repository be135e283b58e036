#!/usr/bin/env bash
# Runs the commands of docs/getting-started.md, in order, and checks what they leave: run-guide.sh ORTC SOURCE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
ortc=$(realpath "$1")
source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build/bin" # where tools/build leaves it
ln -s "$ortc" "$work/build/bin/ortc"
ln -s "$source/test" "$work/test"
cd "$work"
sed -n '/^```sh$/,/^```$/{/^```/d;p}' "$source/docs/getting-started.md" >commands
test "$(grep -c '^ortc ' commands)" -ge 8
bash -euxo pipefail commands | tee output
grep -qE 'accuracy 9[5-9]\.[0-9]+ %' output
for file in digits/model.ortc digits/manifest.json metrics.jsonl outputs.npz trained.onnx gradients.safetensors; do
  test -s "$file"
done
