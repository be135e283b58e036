#!/usr/bin/env bash
# Breaks when --report or --dump-buffers is taken and nothing is written. Arguments: the ortc tool, the source folder.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" train "$2/test/zoo/mlp-digits/model.onnx" -o "$folder/a" --shape batch=64 --target x86-64 --quiet \
  --report "$folder/report.json" --dump-buffers "$folder/buffers.csv"
grep -q '"name": "train_0_program"' "$folder/report.json"
grep -q '^train_0_program,"pixels",external,0,16384,' "$folder/buffers.csv"
if "$1" train "$2/test/zoo/mlp-digits/model.onnx" -o "$folder/b" --shape batch=64 --target x86-64 --quiet \
  --report "$folder/missing/report.json" 2>"$folder/error"; then exit 1; fi
grep -q "cannot write '$folder/missing/report.json'" "$folder/error"
test ! -e "$folder/b"
