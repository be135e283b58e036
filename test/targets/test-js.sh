#!/usr/bin/env bash
# usage: test-js.sh SOURCE BUILD: the JavaScript package as it is built, and as npm packs it.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$1 build=$2
. "$source/test/packages/common.sh"
need_wasm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compile() {
  "$build/bin/ortc" train "$source/test/zoo/mlp-digits/model.onnx" -o "$work/$1" --shape batch=64 --loss cross_entropy \
    --optimizer adamw:lr=0.02 --quiet --target "$2"
}
compile with wasm32
compile without x86-64
compile all all
# The package has what package.json says, and nothing of it is elsewhere.
mkdir -p "$work/app/node_modules/@ortc/runtime"
for file in package.json $(node -p 'require(process.argv[1]).files.join(" ")' "$build/js/package.json"); do
  cp "$build/js/$file" "$work/app/node_modules/@ortc/runtime/"
done
node "$source/test/targets/wasm-test.mjs" "$work/app/node_modules/@ortc/runtime" "$work/with/model.ortc" "$work/without/model.ortc" \
  "$work/all/model.ortc"
# The example of docs/devices.md.
awk '/^## WebAssembly/ { section = 1 } /^```$/ && section { if (inside++) exit; next } inside' "$source/docs/devices.md" >"$work/app/example.mjs"
mkdir "$work/app/digits"
cp "$work/with/model.ortc" "$work/app/digits/"
(cd "$work/app" && node example.mjs | grep -q '^loss 2\.')
