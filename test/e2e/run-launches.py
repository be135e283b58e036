#!/usr/bin/env python3
"""Compiles models for a GPU and compares the launches of a training step, and its memory, with bounds.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    run-launches.py ORTC ROOT

Launches are those that `ortc inspect` tells, iterations of loops counted. Each is some microseconds in which a GPU does nothing else, so
work that is cut as for a CPU's caches is seen here: gpt2-small had 12,294. A bound is a little above what a step takes, to be lowered with
it; gpt2-small's memory is what it took with attention a head at a time.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ORTC, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path.insert(0, str(ROOT / "tools/gpu"))
import workloads

# Name: launches at most, transient bytes at most where the model is large.
BOUNDS = {"gpt2-small": (410, 1346477568), "resnet18-224": (220, 600 << 20), "bert-tiny": (90, None)}


def prepare(name, work):
    """The model file and the flags that it is trained with."""
    if name in workloads.WORKLOADS:
        workload = workloads.WORKLOADS[name]()
        model = work / f"{name}.onnx"
        model.write_bytes(workload.graph)
        return model, workload.flags
    folder = ROOT / "test/zoo" / name
    recipe = json.loads((folder / "recipe.json").read_text())
    return folder / "model.onnx", [*recipe["flags"], "--optimizer", recipe["optimizers"]["adamw"]]


def count(name, work):
    """Launches and transient bytes of a step."""
    model, flags = prepare(name, work)
    subprocess.run([ORTC, "train", model, "-o", work / name, "--quiet", "--no-weights", "--target", "sm_80", *flags], check=True)
    listed = subprocess.run([ORTC, "inspect", work / name], check=True, capture_output=True, text=True).stdout
    found = re.search(r"^entry +train/default, .*, (\d+) launches$", listed, re.MULTILINE)
    if not found:
        sys.exit(f"{name}: ortc inspect tells no launches of train/default:\n{listed}")
    manifest = json.loads((work / name / "manifest.json").read_text())
    memory = next(entry["memory"] for entry in manifest["entries"] if entry["name"] == "train/default")
    return int(found[1]), memory["transient"]


def main():
    failed = False
    for name, bounds in BOUNDS.items():
        with tempfile.TemporaryDirectory(prefix="launches-") as folder:
            found = count(name, pathlib.Path(folder))
        for what, most, is_there in zip(("launches", "transient bytes"), bounds, found):
            if most:
                print(f"{name}: {is_there} {what}, at most {most}", flush=True)
                failed |= is_there > most
    return failed


if __name__ == "__main__":
    sys.exit(main())
