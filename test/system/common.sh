# Sourced by the tests of this folder, with SOURCE and BUILD: a folder to work in, models, tools.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
source=$1 build=$2
. "$source/test/packages/common.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# need_strace: ends the test as skipped without it, and where processes may not be traced.
need_strace() {
  need strace strace
  strace -o "$work/trace" true || skip "processes may not be traced here"
}

# compile MODEL FLAG...: $work/MODEL/model.ortc
compile() {
  "$build/bin/ortc" train "$source/test/zoo/$1/model.onnx" -o "$work/$1" "${@:2}" --optimizer adamw:lr=3e-3 --quiet
}
compile_all() {
  compile mlp-digits --shape batch=64 --loss cross_entropy
  compile lenet --loss nll
  compile gru-forecast --shape batch=16,time=24 --loss mse
}
models="mlp-digits lenet gru-forecast"
