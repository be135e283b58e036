#!/usr/bin/env bash
# usage: test-browser.sh SOURCE BUILD: the page of docs/examples/browser in a real browser. A script draws digits with the pointer, says which
# they are, and looks at what the page has learned; its checkpoint is the one that node makes of the same steps. Another page has the model and
# the runtime as one module.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$1 build=$2
. "$source/test/packages/common.sh"
find_browser
need_wasm
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT
"$build/bin/ortc" train "$source/test/zoo/mlp-digits/model.onnx" -o "$work/artifact" --shape batch=64 --loss cross_entropy \
  --optimizer adamw:lr=0.02 --quiet --target wasm32 --emit wasm
cp -r "$source/docs/examples/browser" "$work/page"
cp "$work/artifact/model.ortc" "$work/page/"
cp -r "$build/js" "$work/page/runtime"
cp "$source/test/targets/browser-script.mjs" "$work/page/"
sed -i 's#<script type="module" src="digits.mjs"></script>#<script type="module" src="browser-script.mjs"></script>#' "$work/page/index.html"

# A port that is free: the server says which.
(cd "$work/page" && exec python3 -u -m http.server 0 --bind 127.0.0.1) >"$work/port" 2>"$work/server" &
server=$!
for _ in $(seq 100); do grep -q port "$work/port" && break || sleep 0.1; done
port=$(grep -o 'port [0-9]*' "$work/port" | cut -d' ' -f2)
# browse PAGE FLAG...
browse() {
  HOME=$work timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --virtual-time-budget=20000 \
    --window-size=700,1000 "${@:2}" "http://127.0.0.1:$port/$1" 2>"$work/log"
}
attribute() { sed -n "s/.*<html[^>]* data-$1=\"\([^\"]*\)\".*/\1/p" "$work/dom" | head -n 1; }
# The browser's clock does not wait for WebAssembly to be compiled in the background: a page may be looked at too early.
for _ in $(seq 10); do
  browse "" --dump-dom >"$work/dom" || { cat "$work/log"; exit 1; }
  [ -z "$(attribute checkpoint)$(attribute error)" ] || break
done
[ "$(attribute error)" = "" ] || { attribute error; exit 1; }
[ "$(attribute guesses)" = "0 1 7" ] || { echo "guesses: $(attribute guesses)"; exit 1; }
# The checkpoint after the same steps, made by node.
checkpoint=$(attribute checkpoint)
[ "$checkpoint $(attribute evaluation)" = "$(node "$source/test/targets/browser-script.mjs" "$build/js" "$work/artifact/model.ortc")" ]
# What a person sees: drawn cells are dark, and one bar is long.
for _ in $(seq 10); do
  browse "" --screenshot="$work/page.png" >/dev/null
  [ "$(stat -c %s "$work/page.png")" -lt 25000 ] || break
done
[ "$(head -c 8 "$work/page.png" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] && [ "$(stat -c %s "$work/page.png")" -ge 25000 ]
# A page without ortc.wasm.
rm "$work/page/runtime/ortc.wasm"
cp "$work/artifact/model.wasm" "$source/test/targets/module-page.mjs" "$work/page/"
echo '<!doctype html><title>one file</title><script type="module" src="module-page.mjs"></script>' >"$work/page/module.html"
for _ in $(seq 10); do
  browse module.html --dump-dom >"$work/dom" || { cat "$work/log"; exit 1; }
  [ -z "$(attribute loss)$(attribute error)" ] || break
done
[ "$(attribute error)" = "" ] || { attribute error; exit 1; }
[ "$(attribute loss)" = "$(node "$source/test/targets/module-page.mjs" "$build/js" "$work/artifact/model.wasm")" ]
echo "passed: $(stat -c %s "$work/page.png") bytes of picture, checkpoint $checkpoint"
