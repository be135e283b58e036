#!/usr/bin/env bash
# usage: test-module.sh SOURCE BUILD: models as modules of WebAssembly with the runtime in them (`ortc train --emit wasm`).
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$1 build=$2
. "$source/test/packages/common.sh"
need_wasm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# recipe MODEL: how it is trained, a word a line.
recipe() {
  node -e 'const r = JSON.parse(require("fs").readFileSync(process.argv[1]));
    console.log([...r.flags, "--optimizer", r.optimizers.adamw].join("\n"))' "$source/test/zoo/$1/recipe.json"
}
for model in mlp-digits lenet gru-forecast; do
  mapfile -t flags < <(recipe "$model")
  for opt in speed size; do
    "$build/bin/ortc" train "$source/test/zoo/$model/model.onnx" -o "$work/$model-$opt" "${flags[@]}" --quiet --target wasm32 --opt "$opt" --emit wasm
    echo "$model, $opt: $(gzip -9 <"$work/$model-$opt/model.wasm" | wc -c) bytes compressed"
    node "$source/test/targets/module-test.mjs" "$build/js" "$work/$model-$opt"
  done
done
# The next artifact in the folder has no module, so that of the last one goes.
train() { "$1/bin/ortc" train "$source/test/zoo/mlp-digits/model.onnx" -o "$work/out" --shape batch=64 --loss cross_entropy --quiet "${@:2}"; }
train "$build" --target wasm32 --emit wasm
[ -f "$work/out/model.wasm" ] || fail "there is no model.wasm"
train "$build" --target wasm32
[ ! -f "$work/out/model.wasm" ] || fail "the last artifact's module is still there"
# refused TEXT COMMAND...: exit status 2, with TEXT on stderr.
refused() {
  local status=0
  "${@:2}" 2>"$work/stderr" || status=$?
  [ "$status" = 2 ] && grep -q "$1" "$work/stderr" || fail "status $status of ${*:2}: $(cat "$work/stderr")"
}
refused 'is for --target wasm32 alone' train "$build" --emit wasm
refused 'not for WebAssembly; give --target wasm32' train "$build" --target x86-64 --emit wasm
refused "must be static\[:name=model\] or wasm" train "$build" --target wasm32 --emit wasm:name=a
refused 'needs --emit static' train "$build" --target wasm32 --emit wasm --object coff
mkdir -p "$work/elsewhere/bin"
cp "$build/bin/ortc" "$work/elsewhere/bin/"
refused "which is not at '$work/elsewhere/lib/ortc/wasm32/libortc_wasm.a'" train "$work/elsewhere" --target wasm32 --emit wasm
mkdir "$work/elsewhere/js"
cp "$build/js/libortc_wasm.a" "$work/elsewhere/js/"
train "$work/elsewhere" --target wasm32 --emit wasm
# The example of docs/devices.md.
mkdir -p "$work/app/node_modules/@ortc" "$work/app/digits"
ln -s "$build/js" "$work/app/node_modules/@ortc/runtime"
cp "$work/out/model.wasm" "$work/app/digits/"
awk '/^### One file/ { section = 1 } /^```$/ && section { if (inside++) exit; next } inside' "$source/docs/devices.md" >"$work/app/example.mjs"
(cd "$work/app" && node example.mjs | grep -q '^loss 2\.')
