#!/usr/bin/env bash
# Breaks when the page of `ortc plan --html` does not show every buffer, or asks for anything but itself: run-plan-page.sh ORTC SOURCE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
tool=$1
source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$tool" plan "$source/test/zoo/lenet/model.onnx" --loss nll --report "$folder/plan.json" --html "$folder/plan.html" --quiet

# One file: nothing is loaded, and nothing could be.
if grep -nEi '(src|href|action|url|import|fetch|XMLHttpRequest|WebSocket)[ ]*[=(]' "$folder/plan.html"; then exit 1; fi
if grep -n 'https\?:' "$folder/plan.html"; then exit 1; fi
grep -q "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\"" "$folder/plan.html"
test "$(grep -c '<script' "$folder/plan.html")" = 2
test "$(grep -c '%PLAN%' "$folder/plan.html")" = 0

# In the report, buffers are the objects with an offset after "buffers", and each entry ends with them.
count_buffers() {
  sed -n "/\"name\": \"$1\"/,/^  }/p" "$folder/plan.json" | sed -n '/"buffers"/,$p' | grep -c '"offset"'
}
# Without scripts: every buffer of every entry, and the tensors of every peak.
sed '/<script/,$d' "$folder/plan.html" >"$folder/plain.html"
all=0
for entry in train eval predict; do all=$((all + $(count_buffers "$entry\/default"))); done
test "$(grep -c '<rect .*class="buffer"' "$folder/plain.html")" = "$all"
test "$all" -ge 40
test "$(grep -c '<h2>' "$folder/plain.html")" = 3
test "$(grep -c '<table class="peak">' "$folder/plain.html")" = "$(grep -c '<svg ' "$folder/plain.html")"
grep -q '<h2>train/default</h2>' "$folder/plain.html"
grep -q '<title>/1/Tanh_output_0, 8x28x28x6, 147.0 KiB at offset 0, steps ' "$folder/plain.html"
grep -q '<td>147.0 KiB</td><td>/1/Tanh_output_0</td><td>8x28x28x6</td><td>0</td>' "$folder/plain.html"
# The largest tensor comes first.
grep -A2 '<table class="peak">' "$folder/plain.html" | sed -n 3p | grep -q '<td>147.0 KiB</td>'

. "$source/test/packages/common.sh"
find_browser
# The page as it is once its script has run.
open_page() {
  HOME=$folder "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$folder/profile" --virtual-time-budget=2000 \
    --window-size=1200,1000 --dump-dom "file://$folder/plan.html$1" 2>"$folder/log" >"$folder/dom" || { cat "$folder/log"; exit 1; }
}
attribute() {
  sed -n "s/.*<html[^>]* data-$1=\"\([^\"]*\)\".*/\1/p" "$folder/dom" | head -n 1
}
open_page ""
test "$(attribute errors)" = 0
test "$(attribute entry)" = train/default
test "$(attribute rectangles)" = "$(count_buffers 'train\/default')"
test "$(attribute rectangles)" -ge 20
grep -q '<div id="hover"></div>' "$folder/dom"

open_page '#entry=eval/default'
test "$(attribute entry)" = eval/default
test "$(attribute rectangles)" = "$(count_buffers 'eval\/default')"

open_page '#hover=0'
test "$(attribute errors)" = 0
grep -A2 '<div id="hover" style="display: block;' "$folder/dom" >"$folder/hover"
grep -q '/1/Tanh_output_0' "$folder/hover"
grep -q '8x28x28x6, 150528 bytes (147.0 KiB) at offset 0' "$folder/hover"
grep -q 'steps [0-9]* (kernel_[0-9]*) to [0-9]* (kernel_[0-9]*)' "$folder/hover"
