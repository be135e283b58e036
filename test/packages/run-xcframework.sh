#!/usr/bin/env bash
# The XCFramework: its layout, and that a Swift or C program would find its module. Nothing of it is run: run-xcframework.sh SOURCE
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$(realpath "$1")
. "$source/test/packages/common.sh"
need python3 python3 clang++-22 clang-22 llvm-libtool-darwin-22 llvm-22 llvm-nm-22 llvm-22 llvm-objdump-22 llvm-22
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for name in one two; do
  "$source/tools/scripts/make-xcframework" --out $name.xcframework
done
diff -r one.xcframework two.xcframework
python3 -B "$source/test/packages/check_xcframework.py" one.xcframework "$source"
# The module map, and headers that need no SDK but the compiler's own.
echo '@import ortc; unsigned version(void) { return ORTC_ABI_VERSION + ortc_abi_version(); }' >use.m
for target in arm64-apple-ios16.0 arm64-apple-macos13.0; do
  clang-22 --target=$target -nostdlibinc -fmodules -fmodules-cache-path=modules -Ione.xcframework/ios-arm64/Headers -fsyntax-only -Werror use.m
done
