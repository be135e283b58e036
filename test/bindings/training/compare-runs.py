#!/usr/bin/env python3
"""Trains models of test/zoo in JavaScript or Java with schedules and metrics: rates and values are those of `ortc run`, bit for bit.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: compare-runs.py js|java SOURCE BUILD. Exit status 77 without the language or its package, 1 with ORTC_NO_SKIP in the environment.
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

LANGUAGE = sys.argv[1]
SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[2:4])
HERE = SOURCE / "test/bindings/training"
sys.path.insert(0, str(SOURCE / "tools/gpu"))
import arrays
import runner

STEPS, EVERY = 12, 3
NPY_NAMES = {dtype: name for name, dtype in arrays.NPY_TYPES.items()}
# Model, samples of the evaluation, whose last batch is short, what is followed, metrics.
MODELS = [
    ("mlp-digits", 150, "accuracy:max", ["accuracy", "f1:average=macro", "topk:k=3", "iou"]),
    ("gru-forecast", 18, "mae:min", ["mae", "rmse", "r2"]),
    ("dlrm-tiny", 42, "auc:max", ["auc", "accuracy", "f1"]),
    ("gpt2-tiny", 6, "perplexity:min", ["token_accuracy", "perplexity"]),
]
SCHEDULES = [
    "constant:warmup=4",
    "linear:warmup=3,min=1e-5",
    "step:step_size=2,gamma=0.3",
    "multistep:milestones=3/7/8",
    "exponential:gamma=0.9",
    "polynomial:power=1.5,total=20",
    "cosine:warmup=2,min=1e-6",
    "cosine_restarts:period=3,mult=2",
    "one_cycle:pct_start=0.4",
    "inverse_sqrt:warmup=2",
    "wsd:warmup=2,decay=4,anneal=sqrt",
    "plateau:patience=0,factor=0.5,threshold=0.05,cooldown=1",
]


def skip(text):
    print(f"skipped: {text}")
    sys.exit(1 if os.environ.get("ORTC_NO_SKIP") else 77)


def write_npz(path, inputs, rows):
    """The first rows of arrays."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, item in inputs.items():
            shape = (rows, *item.shape[1:])
            header = f"{{'descr': '{NPY_NAMES[item.dtype]}', 'fortran_order': False, 'shape': {shape}}}"
            header = header.ljust(-(len(header) + 11) % 64 + len(header)) + "\n"
            data = item.data[: len(item.data) // item.shape[0] * rows]
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def narrow(value):
    """As a float32, which the text of one reads back as."""
    return struct.unpack("f", struct.pack("f", value))[0]


def is_same(wanted, found):
    """Whether the file of metrics, which has no NaN, says this number."""
    if wanted is None or found != found:
        return wanted is None and found != found
    return wanted == found or (narrow(found) == found and narrow(wanted) == found)


class Loop:
    """The program under test."""

    def __init__(self, work):
        if LANGUAGE == "js":
            if not shutil.which("node"):
                skip("there is no node")
            if not (BUILD / "js/training.wasm").exists():
                skip("training.wasm was not built: there is no C++ library for WebAssembly")
            self.command = ["node", HERE / "loop.mjs", BUILD / "js"]
            return
        if not shutil.which("javac") or not (BUILD / "lib/ortc.jar").exists():
            skip("there is no JDK, or the Java classes were not built")
        subprocess.run(["javac", "-Xlint:all", "-Werror", "-cp", BUILD / "lib/ortc.jar", "-d", f"{work}/classes", HERE / "Loop.java"], check=True)
        self.command = ["java", "-Xcheck:jni", "-ea", "-cp", f"{BUILD}/lib/ortc.jar:{work}/classes", f"-Djava.library.path={BUILD}/lib", "Loop"]

    def run(self, *words):
        done = subprocess.run([*self.command, *map(str, words)], capture_output=True, text=True, check=False, timeout=600)
        if done.returncode or "WARNING" in done.stdout:
            raise SystemExit(f"FAILED the loop in {LANGUAGE}: {done.stdout}{done.stderr}")
        return [line.split("\t") for line in done.stdout.splitlines()]


def run_tool(*words):
    return subprocess.run([BUILD / "bin/ortc", *map(str, words)], capture_output=True, text=True, check=False)


def compare(loop, artifact, files, goal, metrics, schedule):
    """Differences from `ortc run`, as sentences."""
    log = files["work"] / "log.jsonl"
    log.unlink(missing_ok=True)
    words = [word for name in metrics for word in ("--metric", name)]
    done = run_tool("run", artifact, "--data", files["train"], "--eval-data", files["eval"], "--eval-every", EVERY, "--steps", STEPS,
                    "--no-shuffle", "--lr", 0.01, "--lr-schedule", schedule, "--best", goal, "--metrics", log, "--quiet", *words)
    if done.returncode:
        return [f"ortc run: {done.stderr}"]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    steps = [line for line in lines if "event" not in line]
    evaluations = [line for line in lines if line.get("event") == "eval"]
    assert len(steps) == STEPS and len(evaluations) == STEPS // EVERY, lines
    said = loop.run(artifact / "model.ortc", STEPS, EVERY, 0.01, schedule, goal, files["rows"], *files["flags"], *metrics)
    found = [[float(number) for number in words[1:]] for words in said if words[0] == "step"]
    wrong = []
    for step, (wanted, (loss, rate)) in enumerate(zip(steps, found, strict=True)):
        if not is_same(wanted["loss"], loss) or not is_same(wanted["lr"], rate):
            wrong.append(f"step {step}: loss {loss} and rate {rate}, ortc run has {wanted['loss']} and {wanted['lr']}")
    found = [[float(number) for number in words[1:]] for words in said if words[0] == "eval"]
    for wanted, values in zip(evaluations, found, strict=True):
        for name, value in zip(metrics, values, strict=True):
            if not is_same(wanted[name], value):
                wrong.append(f"step {wanted['step']}: {name} {value}, ortc run has {wanted[name]}")
    return wrong


def check_messages(loop, artifact, files):
    """Texts that are refused are refused in the words of `ortc run`."""
    wrong = []
    cases = [("schedule", text) for text in ("cosin", "step", "linear:warmup=x", "linear:min=1", "wsd:decay=4,total=4,warmup=1", "constant:total=3",
                                             "plateau:factor=1", "plateau:patience=-1", "linear:min=1e22,total=4")]
    cases += [("metric", text) for text in ("acuracy", "mae", "f1:average=all", "topk:k=99", "auc:output=nobody,label=label", "accuracy:axis=1")]
    data = ["--data", files["train"], "--eval-data", files["eval"], "--steps", STEPS, "--lr", 0.01]
    answers = loop.run("refuse", artifact / "model.ortc", *[word for case in cases for word in case])
    for (kind, text), said in zip(cases, answers, strict=True):
        done = run_tool("run", artifact, *data, "--lr-schedule" if kind == "schedule" else "--metric", text)
        if done.returncode != 2 or said[0] != "argument" or said[1] not in done.stderr:
            wrong.append(f"{kind} '{text}': {said}, ortc run says: {done.stderr}")
    return wrong


def main():
    failures = []
    with tempfile.TemporaryDirectory(prefix="compare-runs-") as work:
        work = pathlib.Path(work)
        loop = Loop(work)
        for model, rows, goal, metrics in MODELS:
            recipe = json.loads((SOURCE / "test/zoo" / model / "recipe.json").read_text())
            artifact = work / model
            subprocess.run([BUILD / "bin/ortc", "train", SOURCE / "test/zoo" / model / "model.onnx", "-o", artifact, "--quiet", "--target", "all",
                            "--numerics", "portable", "--optimizer", recipe["optimizers"]["adamw"], *recipe["flags"]], check=True)
            inputs = arrays.read_npz(SOURCE / "test/zoo" / model / "data.npz")
            files = {"work": work, "train": SOURCE / "test/zoo" / model / "data.npz", "eval": work / "eval.npz", "rows": rows,
                     "flags": runner.write_inputs(inputs, work)}
            write_npz(files["eval"], inputs, rows)
            for schedule in SCHEDULES if model == "mlp-digits" else SCHEDULES[-2:]:
                failures += [f"{model}, {schedule}: {text}" for text in compare(loop, artifact, files, goal, metrics, schedule)]
            if model == "mlp-digits":
                failures += check_messages(loop, artifact, files)
            print(f"{model}: compared")
    for text in failures:
        print(f"FAILED {text}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
