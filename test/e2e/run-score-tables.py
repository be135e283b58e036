#!/usr/bin/env python3
"""Compiles attention for a GPU and looks for buffers of queries x keys in the plan of a training step.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    run-score-tables.py ORTC ROOT

Kernels of attention store no scores, forward or backward (docs/decisions/0064-attention-kernels.md). No other tensor of the model has two
dims of as many elements as there are tokens. With --attention whole there are tables, so that what is looked for would be seen.
"""
import csv
import pathlib
import re
import subprocess
import sys
import tempfile

ORTC, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path.insert(0, str(ROOT / "tools/gpu"))
import workloads

# From 64 tokens on attention has kernels; from 512 on it is cut into tiles on processors, too.
TOKENS = [80, 256, 512]


def tables(work, tokens, flags):
    """The names of buffers that hold a table of scores."""
    plan = work / "buffers.csv"
    command = [ORTC, "train", work / f"{tokens}.onnx", "-o", work / "artifact", "--quiet", "--no-weights", "--target", "sm_80"]
    subprocess.run([*command, "--loss", "cross_entropy", "--optimizer", "adamw", "--dump-buffers", plan, *flags], check=True)
    with open(plan, newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        sys.exit(f"{plan}: there are no buffers")
    return [row["id"] for row in rows if re.search(rf"(^|x){tokens}x{tokens}(x|$)", row["type"])]


def main():
    failed = False
    with tempfile.TemporaryDirectory(prefix="score-tables-") as folder:
        work = pathlib.Path(folder)
        for tokens in TOKENS:
            model = workloads.gpt2(2, tokens, layers=2, width=192, vocabulary=300, positions=tokens)
            (work / f"{tokens}.onnx").write_bytes(model.graph)
            for precision in ("f32", "bf16"):
                flags = ["--precision", precision]
                found = tables(work, tokens, flags)
                whole = tables(work, tokens, [*flags, "--attention", "whole"])
                print(f"{tokens} tokens, {precision}: {len(found)} tables, {len(whole)} with --attention whole", flush=True)
                failed |= bool(found) or not whole
                for name in found:
                    print(f"    {name}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
