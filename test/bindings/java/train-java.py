#!/usr/bin/env python3
"""Trains models of test/zoo with the Java classes: losses and checkpoint are the C program's, with one thread and with two.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: train-java.py SOURCE BUILD MODEL... Exit status 77 without Java or its classes, 1 with ORTC_NO_SKIP in the environment.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "tools/gpu"))
import arrays
import runner

STEPS = 20
THREADS = (1, 2)


def train(model, classes, work):
    """What differs, as sentences."""
    entry = SOURCE / "test/zoo" / model
    recipe = json.loads((entry / "recipe.json").read_text())
    artifact = f"{work}/{model}"
    subprocess.run([BUILD / "bin/ortc", "train", entry / "model.onnx", "-o", artifact, "--quiet", "--max-workers", str(max(THREADS)),
                    "--optimizer", recipe["optimizers"]["adamw"], *recipe["flags"]], check=True)
    artifact += "/model.ortc"
    flags = runner.write_inputs(arrays.read_npz(entry / "data.npz"), work)
    actions = ["steps", str(STEPS), "save"]
    wanted = runner.run(str(BUILD / "test/targets/run-x86_64"), [artifact, "--host", *flags, *actions, f"{work}/c"], timeout=600)
    for threads in THREADS:
        found = runner.run("java", ["-Xcheck:jni", "-cp", f"{BUILD}/lib/ortc.jar:{classes}", f"-Djava.library.path={BUILD}/lib", "Run",
                                    artifact, str(threads), *flags, *actions, f"{work}/java"], timeout=600)
        for key in ("target", "losses"):
            if found[key] != wanted[key]:
                yield f"{model}, {threads} threads: {key} {found[key]}, not {wanted[key]}"
        if pathlib.Path(f"{work}/java").read_bytes() != pathlib.Path(f"{work}/c").read_bytes():
            yield f"{model}, {threads} threads: another checkpoint"
    if len(set(wanted["losses"])) < STEPS:
        yield f"{model}: losses repeat, the comparison is worth little"


def main():
    missing = [f"there is no {name}" for name in ("java", "javac") if not shutil.which(name)]
    missing += [f"there is no {name}" for name in ("lib/ortc.jar", "test/targets/run-x86_64") if not (BUILD / name).exists()]
    if missing:
        print("SKIPPED: " + "; ".join(missing))
        return 1 if os.environ.get("ORTC_NO_SKIP") else 77
    failures = []
    with tempfile.TemporaryDirectory(prefix="train-java-") as work:
        subprocess.run(["javac", "-cp", BUILD / "lib/ortc.jar", "-d", f"{work}/classes", SOURCE / "test/bindings/java/Run.java"], check=True)
        for model in sys.argv[3:]:
            failures += train(model, f"{work}/classes", work)
            print(f"{model}: {STEPS} steps")
    for text in failures:
        print(f"FAILED {text}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
