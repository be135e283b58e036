#!/usr/bin/env bash
# usage: test-java.sh SOURCE BUILD: the Java classes by themselves, against an installed folder, and the example of docs/devices.md.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$(realpath "$1")
build=$(realpath "$2")
. "$source/test/packages/common.sh"
need java openjdk-17-jdk-headless javac openjdk-17-jdk-headless jar openjdk-17-jdk-headless
[ -f "$build/lib/ortc.jar" ] || skip "the Java classes were not built: CMake has found no JDK"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
compile() {
  "$build/bin/ortc" train "$source/test/zoo/mlp-digits/model.onnx" -o "$1" --shape batch=64 --loss cross_entropy \
    --optimizer adamw:lr=0.02 --quiet "${@:2}"
}
compile digits --gradients --max-workers 2
compile elsewhere --target aarch64
for component in runtime java; do
  cmake --install "$build" --prefix "$work/first" --component $component >/dev/null
done
mv first prefix
library=$(dirname "$(find prefix -name libortc_jni.so)")
run() { java -Xcheck:jni -ea -cp "prefix/share/java/ortc.jar:classes" -Djava.library.path="$library" "$@"; }

javac -Xlint:all -Werror -cp prefix/share/java/ortc.jar -d classes "$source/test/bindings/java/ClassesTest.java"
run ClassesTest digits/model.ortc elsewhere/model.ortc . >said 2>&1 || { cat said; exit 1; }
grep -q '^passed' said || { cat said; exit 1; }
javac -Xlint:all -Werror -cp prefix/share/java/ortc.jar -d classes "$source/test/bindings/java/TrainingTest.java"
run TrainingTest digits/model.ortc >>said 2>&1 || { cat said; exit 1; }
# JNI is used as it is meant to be.
if grep -E 'WARNING|FATAL' said; then fail "JNI has complaints"; fi

# Every function that Java declares is in its library, and the other way round.
compare_natives() {
  javap -p -cp prefix/share/java/ortc.jar "${@:2}" | awk '
    /class/ { gsub(/[.]/, "_"); class = $4 }
    / native / { sub(/[(].*/, ""); print "Java_" class "_" $NF }' | sort >declared
  nm -D --defined-only "$library/$1" | awk '$3 ~ /^Java_/ { print $3 }' | sort | diff declared - || fail "natives differ"
  [ "$(wc -l <declared)" -gt 10 ]
}
compare_natives libortc_jni.so dev.ortc.Program dev.ortc.Session
compare_natives libortc_jni_training.so dev.ortc.Schedule dev.ortc.Metrics

awk '/^## Java/ { section = 1 } /^```$/ && section { if (inside++) exit; next } inside' "$source/docs/devices.md" >Train.java
javac -cp prefix/share/java/ortc.jar -d classes Train.java
run Train | grep -q '^loss 2\.'
[ -s digits.safetensors ]
