#!/usr/bin/env bash
# The wheels of tools/build-wheels: what is in them, and that each trains in a virtual environment with nothing else than numpy:
# run-wheels.sh SOURCE BUILD
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$(realpath "$1")
build=$(realpath "$2")
. "$source/test/packages/common.sh"
need python3 python3 clang-22 clang-22 ninja ninja-build
python3 -m pip index versions numpy >/dev/null 2>&1 || skip "pip reaches no index"
[ "$build" = "$source/build" ] || skip "tools/build-wheels takes the program from build/"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source"
rm -rf dist
tools/build-wheels | tee "$work/log"
version=$(sed -n 's/^project(ortc VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)

# most GLOB BYTES: how large files may be.
most() {
  for file in $1; do
    [ "$(stat -c %s "$file")" -le "$2" ] || fail "$file has $(stat -c %s "$file") bytes"
  done
}
most "dist/ortc_runtime-$version-*-manylinux_2_*_x86_64.whl" 1000000
most "dist/ortc-$version-py3-none-manylinux_2_*_x86_64.whl" 60000000

count=0
for python in $(sed -n 's/^with //p' "$work/log"); do
  rm -rf "$work/venv"
  "$python" -m venv "$work/venv"
  pip=("$work/venv/bin/pip" install -q --disable-pip-version-check)
  "${pip[@]}" numpy
  pip+=(--no-index --find-links dist) # nothing of these names from elsewhere
  "${pip[@]}" "ortc-runtime==$version"
  (cd "$work" && ! env -i HOME="$work" venv/bin/python -m ortc.doctor >alone) || fail "there was a compiler before it was installed"
  grep -q '^compiler     none: pip install ortc$' "$work/alone"
  tail -1 "$work/alone" | grep -q '^failed: there is no compiler: pip install ortc'
  "${pip[@]}" "ortc==$version"
  (cd "$work" && env -i HOME="$work" venv/bin/python -m ortc.doctor) || fail "it does not train with $python"
  rm -rf "$work/beside" # a folder that PYTHONPATH names
  "$work/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-index --find-links dist --target "$work/beside" \
    "ortc==$version" "ortc-runtime==$version"
  "$work/venv/bin/pip" uninstall -q -y ortc ortc-runtime
  (cd "$work" && env -i HOME="$work" PYTHONPATH="$work/beside" venv/bin/python -m ortc.doctor) || fail "it does not train beside $python"
  "$work/beside/bin/ortc" train test/zoo/mlp-digits/model.onnx -o "$work/wasm" --shape batch=64 --target wasm32 --emit wasm --quiet
  "${pip[@]}" "ortc==$version"
  [ "$("$work/venv/bin/pip" list --format=freeze | cut -d= -f1 | grep -vxE 'pip|setuptools' | sort | tr '\n' ' ')" = 'numpy ortc ortc-runtime ' ]
  count=$((count + 1))
done
[ $count -gt 0 ] || fail "no Python has built a wheel"

# The program needs what every Linux has, and gives the bytes of the build's.
ldd "$work/venv/bin/ortc" | awk '{ print $1 }' | xargs -n1 basename | sort >"$work/needed"
printf '%s\n' ld-linux-x86-64.so.2 libc.so.6 libgcc_s.so.1 libm.so.6 libstdc++.so.6 linux-vdso.so.1 | diff - "$work/needed"
for program in "$work/venv/bin/ortc" "$build/bin/ortc"; do
  "$program" train test/zoo/mlp-digits/model.onnx -o "$work/digits" --shape batch=64 --target all --quiet
  sha256sum <"$work/digits/model.ortc"
done | uniq | wc -l | grep -qx 1 || fail "the program of the wheel compiles to other bytes"
"$work/venv/bin/ortc" train test/zoo/mlp-digits/model.onnx -o "$work/wasm" --shape batch=64 --target wasm32 --emit wasm --quiet
