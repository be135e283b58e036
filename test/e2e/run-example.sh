#!/usr/bin/env bash
# Runs docs/examples/train_loop.c, or .cpp, on a real artifact: the loss falls and the checkpoint loads: run-example.sh ORTC EXAMPLE SOURCE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
ortc=$1 example=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$ortc" train "$source/test/zoo/mlp-digits/model.onnx" -o "$work/model" --shape batch=64 --optimizer sgd:lr=0.1 --target native --quiet
"$example" "$work/model/model.ortc" "$work/out.safetensors" | tee "$work/output"
awk '$1 == "step" { losses[++count] = $4 } END { exit !(count >= 2 && losses[count] < losses[1]) }' "$work/output"
"$ortc" eval "$work/model" --data "$source/test/data/digits/test.npz" --load "$work/out.safetensors"
if "$example" "$work/no-such-file" "$work/out2.safetensors"; then
  echo "a file that is missing was no error" >&2
  exit 1
fi
