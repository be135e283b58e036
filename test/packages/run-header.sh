#!/usr/bin/env bash
# ortc.hpp without a warning in two compilers: by itself in two standards, with every call in the first (the build has C++20):
# run-header.sh SOURCE
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$(realpath "$1")
. "$source/test/packages/common.sh"
need g++ g++ clang++-22 clang-22
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '#include <ortc/ortc.hpp>' | tee one.cpp >two.cpp
for compiler in g++ clang++-22; do
  for standard in 17 20; do
    flags=(-std=c++$standard -Wall -Wextra -Wpedantic -Werror -I"$source/runtime/include")
    # Twice in one library: nothing in it is defined twice.
    "$compiler" "${flags[@]}" -Wshadow -Wconversion -Wold-style-cast -fPIC -shared one.cpp two.cpp -o both.so
    echo "$compiler, C++$standard"
  done
  "$compiler" "${flags[@]}" -std=c++17 -I"$source" -fsyntax-only "$source/test/e2e/CppTest.cpp"
done
