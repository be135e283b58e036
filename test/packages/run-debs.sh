#!/usr/bin/env bash
# The Debian packages: their files, their fields, and that the tool in them runs: run-debs.sh SOURCE BUILD
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$(realpath "$1")
build=$(realpath "$2")
. "$source/test/packages/common.sh"
need dpkg-shlibdeps dpkg-dev dpkg-deb dpkg file file cpack cmake cc gcc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$build" build
block 'Debian packages' sh >commands
bash -euxo pipefail commands
ls -l debs/*.deb

# files PACKAGE: what is not a folder, without what stands at the head of the paths.
files() { dpkg-deb -c debs/"$1"_*.deb | awk '$1 !~ /^d/ { sub("^[.]/usr/", "", $6); print $6 }' | sort; }
# expect NAME: standard input and files NAME are the same.
expect() { diff <(sort) <(files "$1") || fail "$1 has other files"; }

expect libortc1 <<'END'
lib/libortc.so.1
lib/libortc_cuda.so.1
lib/libortc_hip.so.1
lib/libortc_slots.so.1
lib/libortc_delta.so.1
lib/libortc_parameters.so.1
lib/libortc_threads.so.1
lib/libortc_verify.so.1
share/doc/libortc1/copyright
END
{
  (cd "$source/runtime" && find include -name '*.h*')
  for library in ortc ortc_threads ortc_slots ortc_delta ortc_parameters ortc_verify ortc_cuda ortc_hip; do
    echo "lib/lib$library.a"
    echo "lib/lib$library.so"
    echo "lib/pkgconfig/${library/_/-}.pc"
  done
  echo 'lib/cmake/ortc/ortc-config.cmake
lib/cmake/ortc/ortc-config-version.cmake
lib/cmake/ortc/ortc-libraries.cmake
lib/cmake/ortc/ortc-libraries-release.cmake
share/doc/libortc-dev/copyright
share/doc/libortc-dev/examples/train_loop.c
share/doc/libortc-dev/examples/train_loop.cpp
share/doc/libortc-dev/runtime-api.md'
} | expect libortc-dev
{
  [ ! -f "$build/js/libortc_wasm.a" ] || echo lib/ortc/wasm32/libortc_wasm.a
  cat <<'END'
bin/ortc
lib/cmake/ortc/ortc-tool-release.cmake
lib/cmake/ortc/ortc-tool.cmake
share/bash-completion/completions/ortc
share/doc/ortc/copyright
share/doc/ortc/copyright.libcli11-dev
share/doc/ortc/copyright.liblld-22-dev
share/doc/ortc/copyright.nlohmann-json3-dev
share/fish/vendor_completions.d/ortc.fish
share/zsh/site-functions/_ortc
END
  for page in "$build"/pages/man1/*.1; do
    echo "share/man/man1/${page##*/}"
  done
} | expect ortc

# field PACKAGE NAME PATTERN: the whole of a field.
field() {
  local value
  value=$(dpkg-deb -f debs/"$1"_*.deb "$2")
  [[ $value =~ ^($3)$ ]] || fail "$1 has $2: $value, which is not $3"
}
version=$("$build/bin/ortc" --version | grep -oE '[0-9]+[.][0-9.]+')
for package in libortc1 libortc-dev ortc; do
  field $package Package $package
  field $package Version "$version"
  field $package Architecture "$(dpkg --print-architecture)"
  field $package Maintainer '.+ <.+@.+>'
  # One sentence of less than a line, and more below it.
  field $package Description $'[^\n]{20,79}\n [^\n]+[.]'
  if dpkg-deb -c debs/${package}_*.deb | grep -v ' root/root '; then fail "$package has files of others"; fi
done
field libortc1 Depends 'libc6 \(>= [0-9.]+\)'
field libortc1 Section libs
field libortc-dev Depends "libortc1 \(= $version\)"
field libortc-dev Section libdevel
field ortc Depends '.*libmlir-22 .*libprotobuf-lite.*libstdc\+\+6.*'
field ortc Section devel
# What the packages of programs that use the libraries depend on.
dpkg-deb --ctrl-tarfile debs/libortc1_*.deb | tar -xO ./shlibs >shlibs
for library in libortc libortc_threads libortc_slots libortc_delta libortc_parameters libortc_verify libortc_cuda libortc_hip; do
  grep -qF "$library 1 libortc1 (>= $version)" shlibs || fail "shlibs has no $library"
done

for package in libortc1 libortc-dev ortc; do
  dpkg-deb -x debs/${package}_*.deb root
done
[ "$(root/usr/bin/ortc --version)" = "$("$build/bin/ortc" --version)" ]
cc "$source/docs/examples/train_loop.c" -Iroot/usr/include -Lroot/usr/lib -lortc -o train_loop
if LD_LIBRARY_PATH=root/usr/lib ./train_loop no-such-file out 2>said; then fail "a file that is missing was no error"; fi
grep -q no-such-file said
