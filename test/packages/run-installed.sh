#!/usr/bin/env bash
# Programs against an installed folder that was moved, as docs/packages.md says; each trains mlp-digits with the bits of the program in the
# build folder: run-installed.sh SOURCE BUILD
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$(realpath "$1")
build=$(realpath "$2")
. "$source/test/packages/common.sh"
need pkg-config pkgconf cc gcc c++ g++ readelf binutils
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$build" build

export PREFIX=$work/first
block Install sh >install
bash -euxo pipefail install >/dev/null
mkdir elsewhere
mv first elsewhere/second
PREFIX=$work/elsewhere/second
if grep -rlF -e "$work/first" -e "$source/" -e "$build/" "$PREFIX"; then
  fail "these files know where they were made"
fi
cmp "$source/LICENSE" "$PREFIX/share/doc/libortc1/copyright"

# try PROGRAM shared|static: libraries of ours that it needs, its bits.
try() {
  echo "$1 $2"
  readelf -d "$1" >dynamic
  if [ "$2" = shared ]; then
    grep -qF '[libortc.so.1]' dynamic || fail "$1 does not need libortc.so.1"
  elif grep -F '[libortc' dynamic; then
    fail "$1 is not static"
  fi
  "$1" out/digits/model.ortc got.safetensors >got
  cmp wanted.safetensors got.safetensors
  cmp wanted got
}

cp "$PREFIX"/share/doc/libortc-dev/examples/* "$source/test/zoo/mlp-digits/model.onnx" .
block CMake cmake >CMakeLists.txt
[ "$(wc -l <CMakeLists.txt)" -le 10 ]
block CMake sh >commands
bash -euo pipefail commands
"$build/bin/train_loop" out/digits/model.ortc wanted.safetensors >wanted
grep -q '^step 10 loss [0-9]' wanted
cmp wanted.safetensors train.safetensors
cmp wanted.safetensors train_cpp.safetensors
try out/train shared
try out/train_cpp static
# What is static in the other, shared in the one.
sed -i 's/ortc::[a-z_]*/&_static/g; s/_static_static//g; s/tool_static/tool/' CMakeLists.txt
cmake --build out >/dev/null
try out/train static
try out/train_cpp shared

block pkg-config sh >commands
bash -euo pipefail commands
try ./train_cpp static
export LD_LIBRARY_PATH=$PREFIX/lib PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig
try ./train shared
cc train_loop.c $(pkg-config --cflags ortc) "$PREFIX/lib/libortc.a" -o train
c++ -std=c++17 train_loop.cpp $(pkg-config --cflags --libs ortc ortc-threads) -o train_cpp
try ./train static
try ./train_cpp shared
for name in cuda hip; do
  echo "#include <ortc/$name.h>
    int main(void) { ortc_${name}_close(0); }" >device.c
  cc device.c $(pkg-config --cflags --libs ortc-$name) -o device
  ./device
done
if [ -f "$build/js/libortc_wasm.a" ]; then # the tool finds the runtime for WebAssembly beside it
  "$PREFIX/bin/ortc" train model.onnx -o wasm --shape batch=64 --quiet --target wasm32 --emit wasm
  [ -f wasm/model.wasm ]
fi
[ "$(pkg-config --modversion ortc)" = "$("$PREFIX/bin/ortc" --version | grep -oE '[0-9]+[.][0-9.]+')" ]

# A component that there is not is refused, and one that is not installed.
mkdir other
echo 'cmake_minimum_required(VERSION 3.20)
project(other LANGUAGES C)
find_package(ortc REQUIRED COMPONENTS ${wanted})' >other/CMakeLists.txt
configure() { cmake -S other -B other/out -DCMAKE_PREFIX_PATH="$PREFIX" -Dwanted="$1" >configured 2>&1; }
configure "cuda;hip;tool"
if configure nothing; then fail "there is a component called nothing"; fi
rm "$PREFIX"/lib/cmake/ortc/ortc-tool*
configure threads
if configure tool; then fail "a tool that is not there is found"; fi
