#!/usr/bin/env bash
# Installs the Debian packages into a bare system, builds and trains there as a user would, and compares with this machine's bits. As root, with
# a network: try-debs.sh SOURCE BUILD
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$(realpath "$1")
build=$(realpath "$2")
. "$source/test/packages/common.sh"
need debootstrap debootstrap cpack cmake dpkg-shlibdeps dpkg-dev file file
[ "$(id -u)" -eq 0 ] || skip "debootstrap needs root"
work=$(mktemp -d)
root=$work/root
trap 'umount "$root/proc" 2>/dev/null || true; rm -rf "$work"' EXIT
cpack --config "$build/CPackConfig.cmake" -B "$work/debs" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

release=$(. /etc/os-release && echo "$VERSION_CODENAME")
debootstrap --variant=minbase "$release" "$root" >"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
# The sources of this machine, for LLVM's packages.
rm "$root/etc/apt/sources.list"
cp /etc/apt/sources.list "$root/etc/apt/" 2>/dev/null || cp /etc/apt/sources.list.d/debian.sources "$root/etc/apt/sources.list.d/"
cp "$work"/debs/*.deb "$source/test/zoo/mlp-digits/model.onnx" "$root/root/"
mount -t proc proc "$root/proc"
inside() { LC_ALL=C DEBIAN_FRONTEND=noninteractive chroot "$root" bash -euc "cd /root; $1"; }
install() { inside "apt-get install -y -qq --no-install-recommends $1" >"$work/log" 2>&1 || { tail -30 "$work/log"; fail "apt-get install $1"; }; }
inside 'apt-get update -qq'

# The runtime needs nothing that a bare system has not.
count() { inside 'dpkg-query -W' | wc -l; }
before=$(count)
install './libortc1_*.deb'
[ "$(count)" -eq $((before + 1)) ] || fail "libortc1 brought more than itself"
inside 'ldconfig -p' | grep -F 'libortc.so.1 ' >/dev/null || fail "the loader does not find libortc.so.1"
install './ortc_*.deb'
inside 'ortc train model.onnx -o digits --shape batch=64 --optimizer adamw:lr=3e-3 --quiet
  ortc sign digits --new-key key --quiet
  ortc verify digits --public-key key.pub --quiet'
install './libortc-dev_*.deb gcc g++ libc6-dev pkgconf'
inside 'cp /usr/share/doc/libortc-dev/examples/* .
  cc train_loop.c $(pkg-config --cflags --libs ortc) -o train
  c++ -std=c++17 train_loop.cpp -Wl,--no-as-needed $(pkg-config --cflags --libs ortc ortc-threads ortc-slots ortc-delta ortc-parameters ortc-verify) -o train_cpp
  ./train digits/model.ortc c.safetensors
  ./train_cpp digits/model.ortc cpp.safetensors' >"$work/said"
"$build/bin/train_loop" "$root/root/digits/model.ortc" "$work/wanted" >"$work/expected"
cmp "$work/wanted" "$root/root/c.safetensors"
cmp "$work/wanted" "$root/root/cpp.safetensors"
cat "$work/expected" "$work/expected" | cmp - "$work/said"
inside 'apt-get purge -y -qq ortc libortc-dev libortc1' >/dev/null 2>&1
[ -z "$(find "$root/usr" -name '*ortc*' -print -quit)" ] || fail "something stays behind"
echo "$release, $before packages: installed, built, trained the bits of this machine, removed"
