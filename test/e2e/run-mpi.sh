#!/usr/bin/env bash
# docs/examples/mpi/train.c, built as docs/distributed.md says: ranks have the same bits, and the losses are those of one process with all
# samples: run-mpi.sh SOURCE BUILD
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$(realpath "$1")
build=$(realpath "$2")
. "$source/test/packages/common.sh"
need mpicc libopenmpi-dev mpirun openmpi-bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# Open MPI on a small machine, and in a container.
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

mpicc -std=c99 -Wall -Wextra -Werror -I "$source/runtime/include" "$source/docs/examples/mpi/train.c" \
  "$build/lib/libortc_parameters.a" "$build/lib/libortc.a" -o train
# artifact NAME BATCH FLAG...
artifact() {
  "$build/bin/ortc" train "$source/test/zoo/mlp-digits/model.onnx" -o "$1" --shape "batch=$2" --optimizer sgd:lr=0.05,momentum=0.9 \
    --target native --quiet "${@:3}" 2>>notes
}
artifact half 32 --gradients --bind gradients
artifact whole 64
# 640 records; the same with each block of 32 twice; the same as safetensors.
python3 - <<'END'
import json, random, struct
random.seed(0)
records = [[random.random() for _ in range(64)] for _ in range(640)]
packed = [struct.pack("<64fq", *pixels, pixels.index(max(pixels[:10]))) for pixels in records]
open("once", "wb").write(b"".join(packed))
open("twice", "wb").write(b"".join(b"".join(packed[i : i + 32]) * 2 for i in range(0, 640, 32)))
header = {"pixels": {"dtype": "F32", "shape": [640, 64], "data_offsets": [0, 163840]},
          "label": {"dtype": "I64", "shape": [640], "data_offsets": [163840, 168960]}}
text = json.dumps(header).encode()
with open("data.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    file.write(b"".join(each[:256] for each in packed) + b"".join(each[256:] for each in packed))
END

mpirun -np 2 ./train half/model.ortc once 20 two >two.txt
"$build/bin/ortc" run whole --data data.safetensors --no-shuffle --steps 20 --metrics one.jsonl --quiet
sed -n 's/.*"loss": *\([0-9.e-]*\).*/step loss of \1/p' one.jsonl >one.txt
cmp two.0 two.1
# Sums of float32 in another order: a last bit of the loss in each step.
paste one.txt two.txt | awk '{ d = ($4 - $8) / $4; if (d < 0) d = -d; if (d > NR * 2 ^ -23) exit 1 } END { exit NR != 20 }' ||
  { paste one.txt two.txt; fail "the losses are not those of one process"; }
awk 'NR == 1 { first = $4 } END { exit !($4 < 0.99 * first) }' two.txt || fail "the loss does not fall"

# Two processes with the same samples are one: a + a is exact. With dropout they are not, since each draws masks of its own.
mpirun -np 2 ./train half/model.ortc twice 20 same >same.txt
mpirun -np 1 ./train half/model.ortc once 20 alone >alone.txt
cmp same.txt alone.txt
cmp same.0 alone.0
artifact dropout 32 --gradients --bind gradients --lora '.*weight:rank=4,dropout=0.5'
mpirun -np 2 ./train dropout/model.ortc twice 20 masks >masks.txt
mpirun -np 1 ./train dropout/model.ortc once 20 mask >mask.txt
! cmp -s masks.txt mask.txt || fail "both processes draw the same masks"

! mpirun -np 2 ./train half/model.ortc none 1 out 2>said || fail "a file that is missing was no error"
grep -q 'train: none: cannot be read' said
