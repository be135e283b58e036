#!/usr/bin/env bash
# The Android library: its layout, and that its native code works on Linux's kernel, for want of Android: programs of the three processors, under
# QEMU, find a libc.so that is glibc with what bionic has of its own; they train with the bits of the program in the build folder:
# run-aar.sh SOURCE BUILD
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$(realpath "$1")
build=$(realpath "$2")
. "$source/test/packages/common.sh"
need java openjdk-17-jdk-headless javac openjdk-17-jdk-headless clang-22 clang-22 python3 python3 ninja ninja-build unzip unzip
need qemu-aarch64-static qemu-user-static qemu-arm-static qemu-user-static
[ -f "$build/lib/ortc.jar" ] || skip "the Java classes were not built: CMake has found no JDK"
for package in arm64:aarch64-linux-gnu armhf:arm-linux-gnueabihf; do
  [ -f "/usr/${package#*:}/lib/libc.so.6" ] || skip "there is no libc6-dev-${package%:*}-cross"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# The same sources, the same file.
include=$(dirname "$(dirname "$(realpath "$(command -v javac)")")")/include
for name in one two; do
  "$source/tools/scripts/make-aar" --classes "$build/lib/ortc.jar" --jni "$include" "$include/linux" --out $name.aar
done
cmp one.aar two.aar
python3 -B "$source/test/packages/check_aar.py" one.aar "$source"
unzip -q one.aar -d aar

# What bionic has and glibc has not, or otherwise.
cat >shim.c <<'END'
#include <errno.h>
#include <unistd.h>
#include <sys/syscall.h>
int *__errno(void) { return &errno; }
#if defined(__arm__)
int fstat(int file, void *about) { return (int)syscall(SYS_fstat64, file, about); }
#endif
END
"$build/bin/ortc" train "$source/test/zoo/mlp-digits/model.onnx" -o digits --shape batch=64 --optimizer adamw:lr=3e-3 --quiet --target all \
  --numerics portable --gradients --max-workers 2
"$build/bin/train_loop" digits/model.ortc wanted.safetensors >wanted
# For the armhf loader: libraries do not say how they hand floats over, which their interface does by pointers, but for two functions.
for library in aar/jni/armeabi-v7a/*.so; do
  python3 - "$library" <<'END'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(37)  # second byte of e_flags: EF_ARM_ABI_FLOAT_SOFT and _HARD
    flags = file.read(1)[0]
    file.seek(37)
    file.write(bytes([flags & ~6]))
END
done
# try ABI TRIPLE RUNNER...
try() {
  local abi=$1 flags=(--target="$2" -O1 -fuse-ld=lld) include=aar/prefab/modules/ortc/include
  shift 2
  mkdir "$abi"
  clang-22 "${flags[@]}" -shared -fPIC -Wl,-soname,libc.so shim.c -o "$abi/libc.so"
  clang-22 "${flags[@]}" -I$include "$source/docs/examples/train_loop.c" "$abi/libc.so" "aar/jni/$abi/libortc.so" -o "$abi/train"
  clang-22 "${flags[@]}" -I$include "$source/test/packages/android_test.c" "$abi/libc.so" aar/jni/"$abi"/libortc{,_threads}.so -o "$abi/test"
  LD_LIBRARY_PATH=$abi:aar/jni/$abi "$@" "$abi/train" digits/model.ortc got.safetensors >got
  cmp wanted got
  cmp wanted.safetensors got.safetensors
  LD_LIBRARY_PATH=$abi:aar/jni/$abi "$@" "$abi/test" digits/model.ortc wanted.safetensors
  echo "$abi"
}
try x86_64 x86_64-linux-gnu env
# QEMU is a program of this machine: the libraries are for what it runs.
try arm64-v8a aarch64-linux-gnu sh -c 'exec env -u LD_LIBRARY_PATH qemu-aarch64-static -cpu cortex-a53 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$@"' run
try armeabi-v7a arm-linux-gnueabihf sh -c 'exec env -u LD_LIBRARY_PATH qemu-arm-static -cpu cortex-a7 -L /usr/arm-linux-gnueabihf -E LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$@"' run

# What libraries for arm have of their own.
renames=()
for name in uldivmod ldivmod l2d ul2d d2lz; do renames+=(-D__aeabi_$name=own_$name); done
clang-22 --target=arm-linux-gnueabihf -mcpu=cortex-a7 -mfpu=neon-vfpv4 -O1 -static -fuse-ld=lld "${renames[@]}" \
  "$source/runtime/android/arm_helpers.c" "$source/runtime/freestanding/arm_division.c" "$source/test/packages/arm_helpers_test.c" -o arm_helpers
qemu-arm-static -cpu cortex-a7 ./arm_helpers
# What firmware has.
renames=()
for name in f2d d2f l2d d2lz dcmple dcmplt dcmpge dcmpgt dcmpeq dcmpun llsl llsr; do renames+=(-D__aeabi_$name=own_$name); done
for name in memcpy memcpy4 memcpy8 memmove memset memclr memclr4 memclr8; do renames+=(-D__aeabi_$name=own_$name); done
clang-22 --target=arm-linux-gnueabihf -mcpu=cortex-a7 -mfpu=neon-vfpv4 -O1 -static -fuse-ld=lld "${renames[@]}" -I"$source" \
  "$source/runtime/freestanding/aeabi.c" "$source/test/packages/aeabi_test.c" -o aeabi
qemu-arm-static -cpu cortex-a7 ./aeabi

# Java, on this machine's processor.
"$build/bin/ortc" train "$source/test/zoo/mlp-digits/model.onnx" -o lr --shape batch=64 --optimizer adamw:lr=0.02 --quiet --gradients --max-workers 2
"$build/bin/ortc" train "$source/test/zoo/mlp-digits/model.onnx" -o elsewhere --shape batch=64 --quiet --target aarch64
javac -cp aar/classes.jar -d classes "$source/test/bindings/java/ClassesTest.java"
LD_LIBRARY_PATH=$work/x86_64:$work/aar/jni/x86_64 java -ea -cp aar/classes.jar:classes -Djava.library.path=aar/jni/x86_64 ClassesTest \
  lr/model.ortc elsewhere/model.ortc . >said 2>&1 || { cat said; exit 1; }
grep -q '^passed' said
# It was that library.
LD_DEBUG=files LD_LIBRARY_PATH=$work/x86_64:$work/aar/jni/x86_64 java -cp aar/classes.jar:classes -Djava.library.path=aar/jni/x86_64 ClassesTest \
  lr/model.ortc elsewhere/model.ortc . 2>&1 | grep -q 'calling init: .*/aar/jni/x86_64/libortc.so' || fail "Java has used another library"
