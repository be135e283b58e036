#!/usr/bin/env bash
# A project with this source tree in it, as docs/packages.md says, is configured and links the compiler: run-source.sh SOURCE BUILD. It is
# not built, which would take as long as this tree.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$(realpath "$1")
build=$(realpath "$2")
. "$source/test/packages/common.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$source" ortc
cp "$source/docs/examples/compile_and_step.cpp" .
block 'The compiler as a library' cmake >CMakeLists.txt
compiler() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
cmake -G 'Unix Makefiles' -S . -B out -DCMAKE_C_COMPILER="$(compiler CMAKE_C_COMPILER)" \
  -DCMAKE_CXX_COMPILER="$(compiler CMAKE_CXX_COMPILER)" >log 2>&1 || { cat log; exit 1; }
# What the tree's own program is linked with.
libraries() { tr ' ' '\n' | sed -n 's/.*\/\(lib[a-zA-Z_]*[.]\).*/\1/p' | sort; }
ninja -C "$build" -t commands compile_and_step | tail -1 | libraries >wanted
grep -q libMLIR. wanted
libraries <out/CMakeFiles/program.dir/link.txt | diff wanted -
# Nothing of it is built or tested that the program does not need.
[ ! -e out/ortc/test ] || fail "its tests are part of the project"
