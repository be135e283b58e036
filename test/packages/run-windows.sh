#!/usr/bin/env bash
# The runtime for Windows: what its libraries export and need, and programs of an installed folder under wine, with the bits of the program in
# the build folder: run-windows.sh SOURCE BUILD
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$(realpath "$1")
build=$(realpath "$2")
. "$source/test/packages/common.sh"
need x86_64-w64-mingw32-g++ g++-mingw-w64-x86-64-win32 wine wine clang++-22 clang-22 ninja ninja-build
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$source" ortc
export PREFIX=$work/prefix
block Windows sh >commands
bash -euxo pipefail commands >log 2>&1 || { cat log; exit 1; }

# declared HEADER MACRO: functions that a header declares.
declared() { grep -A1 "^$2 " "$source/runtime/include/ortc/$1" | tr '\n' ' ' | grep -oE "$2 [^;(]*\(" | grep -oE '[a-z0-9_]+\(' | tr -d '(' | sort; }
# exported, needed DLL: functions, libraries
exported() { x86_64-w64-mingw32-objdump -p "$1" | awk '/Ordinal\/Name Pointer/ { isHere = 1; next } !NF { isHere = 0 } isHere { print $NF }' | sort; }
needed() { x86_64-w64-mingw32-objdump -p "$1" | sed -n 's/.*DLL Name: //p' | tr A-Z a-z | sort | tr '\n' ' '; }
# check NAME HEADER MACRO MOST_BYTES LIBRARIES
check() {
  local file=$PREFIX/bin/$1.dll
  declared "$2" "$3" >declared
  [ -s declared ] || fail "$2 declares nothing"
  exported "$file" | diff declared - || fail "$1.dll does not export what $2 declares"
  [ "$(needed "$file")" = "$5 " ] || fail "$1.dll needs $(needed "$file")"
  [ "$(stat -c %s "$file")" -le "$4" ] || fail "$1.dll has $(stat -c %s "$file") bytes"
}
check ortc ortc.h ORTC_API 24576 'kernel32.dll msvcrt.dll'
[ "$(exported "$PREFIX/bin/ortc.dll" | wc -l)" -ge 35 ]
check ortc_threads threads.h ORTC_THREADS_API 4096 'api-ms-win-core-synch-l1-2-0.dll kernel32.dll msvcrt.dll'
check ortc_slots slots.h ORTC_SLOTS_API 6144 'msvcrt.dll ortc.dll'
check ortc_delta delta.h ORTC_DELTA_API 9216 'msvcrt.dll ortc.dll'
check ortc_parameters parameters.h ORTC_PARAMETERS_API 4096 'msvcrt.dll ortc.dll'
check ortc_verify verify.h ORTC_VERIFY_API 10240 'msvcrt.dll'
# And what the library for Linux exports.
nm -D --defined-only "$build/lib/libortc.so.1" | awk '{ print $3 }' | sort | diff - <(exported "$PREFIX/bin/ortc.dll")

mkdir project
cp "$source/docs/examples/train_loop.c" "$source/docs/examples/train_loop.cpp" "$source/test/packages/windows_test.cpp" project
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(digits LANGUAGES C CXX)
find_package(ortc REQUIRED COMPONENTS runtime threads slots delta parameters verify)
add_executable(train train_loop.c)
target_link_libraries(train ortc::runtime)
add_executable(train_cpp train_loop.cpp)
target_link_libraries(train_cpp ortc::runtime_static ortc::threads_static -static)
add_executable(windows_test windows_test.cpp)
target_link_libraries(windows_test ortc::runtime ortc::threads -static)
END
{
  cmake -G Ninja -S project -B out -DCMAKE_TOOLCHAIN_FILE="$source/tools/cmake/windows.cmake" -DCMAKE_PREFIX_PATH="$PREFIX" \
    -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld
  cmake --build out
} >log 2>&1 || { cat log; exit 1; }
cp "$PREFIX"/bin/*.dll out

"$build/bin/ortc" train "$source/test/zoo/mlp-digits/model.onnx" -o digits --shape batch=64 --optimizer adamw:lr=3e-3 --quiet --max-workers 2
"$build/bin/train_loop" digits/model.ortc wanted.safetensors >wanted
use_wine "$work/wine"
for program in train train_cpp; do
  wine out/$program.exe digits/model.ortc got.safetensors | tr -d '\r' >got
  cmp wanted got
  cmp wanted.safetensors got.safetensors
done
mkdir checkpoints
wine out/windows_test.exe digits/model.ortc checkpoints
