#!/usr/bin/env bash
# Breaks when a report is asked for and not written, or is written though the compilation is refused: run-reports.sh ORTC SOURCE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ortc() {
  "$tool" train "$model" --shape batch=64 --target x86-64 --quiet "$@"
}
tool=$1
model=$2/test/zoo/mlp-digits/model.onnx

# With an artifact. Entries have the names of the manifest, values one line each.
ortc -o "$folder/a" --report "$folder/report.json" --dump-buffers "$folder/buffers.csv" --dump-ir "$folder/ir"
grep -q '"name": "train/default"' "$folder/report.json"
grep -A4 '"name": "train/default"' "$folder/report.json" | grep -q '"bytes_read": [1-9]'
grep -q '"name": "train/default"' "$folder/a/manifest.json"
test "$(head -n 1 "$folder/buffers.csv")" = id,lower,upper,size,alignment,gaps,pool,offset,entry,type
test "$(grep -c '^relu,0,[0-9]*,16384,64,,0,[0-9]*,train/default,64x64$' "$folder/buffers.csv")" = 1
grep -q ',predict/default,64x64$' "$folder/buffers.csv"
if grep -q -- '-1' "$folder/buffers.csv"; then exit 1; fi
test -s "$folder/ir/8-place.mlir"
test ! -e "$folder/ir/9-code.mlir"

# Estimates stand beside measurements: by the table for a level by name, by this machine's rates for "native".
grep -q '"from": "table"' "$folder/report.json"
test "$(grep -c '"estimated_us"' "$folder/report.json")" = "$(grep -c '"chunks"' "$folder/report.json")"
test "$(grep -c '"measured_us"' "$folder/report.json")" -ge 15
grep -q '"estimated_ms"' "$folder/report.json"
test "$(grep -A1 '"stack"' "$folder/report.json" | grep -c '"caller": [1-9]')" = 3
grep -q '"measured_ms"' "$folder/report.json"
if grep -q '_us": -\|_us": null\|_us": 0.0$' "$folder/report.json"; then exit 1; fi
ortc --target native -o "$folder/n" --report "$folder/native.json"
grep -q '"from": "measurement"' "$folder/native.json"

# Without one: what is known by then.
ortc --compile-to place --report "$folder/place.json" --dump-buffers "$folder/place.csv" >"$folder/place.mlir"
cmp "$folder/buffers.csv" "$folder/place.csv"
grep -q '"name": "train/default"' "$folder/place.json"
ortc --compile-to loss --report "$folder/loss.json" >"$folder/loss.mlir"
grep -q '"name": "loss"' "$folder/loss.json"
if ortc --compile-to fuse --dump-buffers "$folder/fuse.csv" 2>"$folder/error"; then exit 1; fi
grep -q -- '--compile-to fuse ends before it' "$folder/error"

# Refused: nothing is written, neither the report nor the artifact.
if ortc -o "$folder/b" --report "$folder/missing/report.json" 2>"$folder/error"; then exit 1; fi
grep -q "cannot write '$folder/missing/report.json'" "$folder/error"
test ! -e "$folder/b"
touch "$folder/a/ck.safetensors"
if ortc -o "$folder/a" --report "$folder/refused.json" --dump-buffers "$folder/refused.csv" 2>"$folder/error"; then exit 1; fi
grep -q "holds 'ck.safetensors'" "$folder/error"
test ! -e "$folder/refused.json"
test ! -e "$folder/refused.csv"

# What was read is not written over, whatever its name is; nor is what is no regular file.
cp "$model" "$folder/model.onnx"
ln "$folder/model.onnx" "$folder/link.csv"
mkfifo "$folder/fifo"
original=$model
model=$folder/model.onnx
refuse() {
  status=0
  ortc "$@" 2>"$folder/error" || status=$?
  test "$status" = 2
  grep -q -- "$wanted" "$folder/error"
  cmp "$original" "$model"
}
wanted="--report $model would overwrite the model $model" refuse -o "$folder/d" --report "$model"
wanted="--dump-buffers $folder/link.csv would overwrite the model $model" refuse -o "$folder/d" --dump-buffers "$folder/link.csv"
wanted="--report $folder/same would overwrite --dump-buffers $folder/same" \
  refuse -o "$folder/d" --report "$folder/same" --dump-buffers "$folder/same"
wanted="$folder/fifo: is no regular file" refuse -o "$folder/d" --report "$folder/fifo"
test -p "$folder/fifo"
wanted="$folder/fifo: is no regular file" refuse -o "$folder/d" --target native --tune --tune-cache "$folder/fifo"
wanted="'$folder/fifo': it is no regular file" refuse -o "$folder/d" --tune-cache "$folder/fifo"
wanted="$folder/ir: is a folder" refuse -o "$folder/d" --report "$folder/ir"
wanted="$folder/ir: is a folder" refuse -o "$folder/d" --target native --tune --tune-cache "$folder/ir"

# The folder is replaced: what is put there would be lost.
wanted="--report $folder/a/../d/r.json would lie in -o $folder/d" refuse -o "$folder/d" --report "$folder/a/../d/r.json"
wanted="--dump-buffers $folder/d/b.csv would lie in" refuse -o "$folder/d/" --dump-buffers "$folder/d/b.csv"
wanted="--dump-ir $folder/d would lie in" refuse -o "$folder/d" --dump-ir "$folder/d"
wanted="--tune-cache $folder/d/t.json would lie in" \
  refuse -o "$folder/d" --target native --tune --tune-cache "$folder/d/t.json"
test ! -e "$folder/d"
mkdir "$folder/e"
mv "$folder/model.onnx" "$folder/e/model.ortc"
model=$folder/e/model.ortc
wanted="-o $model would overwrite the model $model" refuse -o "$folder/e"
model=$original

# Patterns that match nothing.
ortc -o "$folder/c" --freeze nothere --group '0.wieght:lr_scale=2' 2>"$folder/error"
grep -q "ortc: warning: --freeze 'nothere' matches no initializer; closest: " "$folder/error"
grep -q "ortc: warning: --group '0.wieght' matches no trained tensor; closest: '0.weight'" "$folder/error"
