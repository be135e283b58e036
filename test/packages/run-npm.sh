#!/usr/bin/env bash
# The JavaScript package as npm packs it, installed from its file in an empty folder without a network: the example of docs/packages.md trains
# with the bits of the C program: run-npm.sh SOURCE BUILD
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$(realpath "$1")
build=$(realpath "$2")
. "$source/test/packages/common.sh"
need npm npm
need_wasm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# Nothing of this user, and no network.
export HOME=$work npm_config_cache=$work/cache npm_config_offline=true npm_config_update_notifier=false npm_config_audit=false npm_config_fund=false
ln -s "$build" build
block npm sh >commands
grep -q 'npm pack' commands
bash -euxo pipefail commands >log 2>&1 || { cat log; exit 1; }

version=$(node -p 'require(process.argv[1]).version' "$build/js/package.json")
[ "$("$build/bin/ortc" --version | grep -oE '[0-9]+[.][0-9.]+')" = "$version" ] || fail "the package has version $version"
tar -tzf "ortc-runtime-$version.tgz" | sort | diff - <(printf 'package/%s\n' LICENSE index.d.ts index.mjs ortc.wasm package.json training.wasm)
# Every page loads the first two, and those with learning rates or metrics the third.
size() { cat "${@/#/$build/js/}" | gzip -9 | wc -c; }
[ "$(size index.mjs ortc.wasm)" -le 24576 ] || fail "a page loads $(size index.mjs ortc.wasm) bytes"
[ "$(size training.wasm)" -le 163840 ] || fail "training.wasm has $(size training.wasm) bytes"
for file in index.mjs index.d.ts ortc.wasm training.wasm LICENSE; do
  cmp "$build/js/$file" "app/node_modules/@ortc/runtime/$file"
done
# Nothing is needed from the folder that it was made in, or from others.
[ ! -L app/node_modules/@ortc/runtime ] || fail "the package is a link"
[ "$(ls app/node_modules)" = @ortc ]

"$build/bin/ortc" train "$source/test/zoo/mlp-digits/model.onnx" -o digits --shape batch=64 --optimizer adamw:lr=3e-3 --quiet \
  --target all --numerics portable
cp digits/model.ortc app/
block npm js >app/train.mjs
[ "$(wc -l <app/train.mjs)" -le 10 ] || fail "the example has more than ten lines"
(cd app && node train.mjs >../got)
"$build/bin/train_loop" digits/model.ortc wanted.safetensors >wanted
cmp wanted got
cmp wanted.safetensors app/digits.safetensors
