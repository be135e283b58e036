#!/usr/bin/env python3
"""Trains one model of test/zoo on every processor, by emulation, and on Windows by wine: on those of --target all from one file.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: train-targets.py SOURCE BUILD MODEL [--fade | --on PROCESSOR]

For both optimizers and both numerics one artifact has code for all targets. Microcontrollers, which take the smaller models, have it linked
into firmware (--emit static), and a program of this machine has, too. Every processor trains it: its numbers are within the
tolerances of PyTorch's, and its bits are this machine's, with portable numerics and, where it has fused multiply-adds, with fast ones. A
checkpoint that goes round all processors gives the bits of one that stays here. With --fade nothing but this: after steps on the
model's data come as many on zeros as moments need to get below the smallest normal number, which processors treat in different ways;
with portable numerics all end with this machine's bits. With --on it is only one processor, and code for plain x86-64 if that is Windows.
Exit status 77 without emulators or libraries, 1 with
ORTC_NO_SKIP in the environment.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD, MODEL = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
sys.path.insert(0, str(SOURCE / "tools/gpu"))
import arrays
import runner
import zoo

SECONDS = 600
# Wine with its libraries where they lie, not copied to a folder of Windows.
WINE = ["WINEBOOTSTRAPMODE=1", "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree=d;mshtml=d"]
# What a processor is run by: its code in the artifact, what has to be built, the emulator, and what that is given. Code None: this machine's.
PROCESSORS = {
    "aarch64": ("aarch64", "run-aarch64", "qemu-aarch64-static", ["-cpu", "cortex-a53"]),
    "armv7": ("armv7", "run-arm", "qemu-arm-static", ["-cpu", "cortex-a7"]),
    "riscv64": ("riscv64", "run-riscv64", "qemu-riscv64-static", ["-cpu", "rv64,v=false"]),
    "riscv64-v, 128 bits": ("riscv64-v", "run-riscv64", "qemu-riscv64-static", ["-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0"]),
    "riscv64-v, 256 bits": ("riscv64-v", "run-riscv64", "qemu-riscv64-static", ["-cpu", "rv64,v=true,vlen=256,vext_spec=v1.0"]),
    "windows": (None, "run-windows.exe", "wine", []),
    "wasm32": ("wasm32", "../../js", "node", [str(SOURCE / "test/targets/run-node.mjs")]),
}
# Those that the model is linked into programs of, and the code that it is compiled to: boards, and this machine.
LINKED = {"cortex-m4": "cortex-m4", "cortex-m7": "cortex-m7", "cortex-m33": "cortex-m33", "cortex-m55": "cortex-m55", "linked": "x86-64"}
SMALL_MODELS = ["mlp-digits", "lenet", "gru-forecast", "anomaly-autoencoder", "ds-cnn"]
WITHOUT_FMA = ("x86-64", "wasm32")
ROUND_STEPS = 5  # of a checkpoint on each processor
DATA_STEPS, ZERO_STEPS = 20, 1180  # of --fade: 0.9^1180 is 1e-54


def find_processors(work, names):
    """Those that this machine can play, and why it cannot play the others. Wine has its settings in `work`."""
    found, missing = {}, []
    for name in names:
        if name in LINKED:
            tools = ("clang-22",) if name == "linked" else ("qemu-system-arm", "clang-22", "ld.lld-22")
            needed = [tool for tool in tools if not shutil.which(tool)]
            program = str(SOURCE / "test/targets/firmware/run-board.py")
            if needed:
                missing.append(f"{name}: there is no {needed[0]}")
            else:
                found[name] = (LINKED[name], [sys.executable, "-B", program, str(SOURCE), str(BUILD), name])
            continue
        target, program, emulator, options = PROCESSORS[name]
        path = BUILD / "test/targets" / program
        if not shutil.which(emulator):
            missing.append(f"{name}: there is no {emulator}")
        elif not path.exists():
            missing.append(f"{name}: there are no libraries to build {path.name} with")
        else:
            found[name] = (target, [emulator, *options, str(path)])
    if "windows" in found:
        settings = pathlib.Path(work) / "wine"
        settings.mkdir()
        (settings / ".update-timestamp").write_text("disable\n")
        found["windows"] = (None, ["env", f"WINEPREFIX={settings}", *WINE, *found["windows"][1]])
    return found, missing


class Program:
    """The runtime on a processor, as a program that runner.run can start."""

    def __init__(self, folder, name, command):
        self.path = pathlib.Path(folder) / name.replace(" ", "").replace(",", "-")
        words = " ".join(f"'{word}'" for word in command)
        self.path.write_text(f'#!/bin/sh\nartifact=$1\nshift\nexec {words} "$artifact" --host "$@"\n')
        self.path.chmod(0o755)

    def train(self, artifact, entry, optimizer):
        with tempfile.TemporaryDirectory() as work:
            return zoo.train(str(self.path), artifact, entry, optimizer, work, SECONDS)

    def step(self, artifact, flags, actions):
        return runner.run(str(self.path), [artifact, *flags, *actions], timeout=SECONDS)


class Artifacts:
    """What a model is compiled to: one file for all, and one for each processor that it is linked into programs of."""

    def __init__(self, recipe, optimizer, numerics, folder, compiled="all"):
        self.folder, self.compiled = folder, compiled
        self.flags = [*recipe["flags"], "--optimizer", recipe["optimizers"][optimizer], *(["--gradients"] if optimizer == "sgd" else [])]
        self.flags += ["--numerics", numerics]
        self.made = {}

    def find(self, name):
        """The artifact for a processor, or for this machine."""
        kind = LINKED.get(name, self.compiled)
        folder = f"{self.folder}/{kind}-linked" if name in LINKED else f"{self.folder}/{kind}"
        if folder not in self.made:
            self.made[folder] = f"{folder}/model.ortc"
            static = ["--emit", "static"] if name in LINKED else []
            subprocess.run([BUILD / "bin/ortc", "train", SOURCE / "test/zoo" / MODEL / "model.onnx", "-o", folder, "--quiet",
                            "--target", kind, *self.flags, *static], check=True)
        return self.made[folder]


def go_round(here, others, artifacts, entry, work):
    """A checkpoint that every processor goes on with; what differs from one that stays here, or None."""
    artifact = artifacts.find("here")
    flags = runner.write_inputs(arrays.read_npz(entry / "data.npz"), work)
    paths = [f"{work}/{name}" for name in ("straight", "round")]
    here.step(artifact, flags, ["steps", str(ROUND_STEPS * (1 + len(others))), "save", paths[0]])
    here.step(artifact, flags, ["steps", str(ROUND_STEPS), "save", paths[1]])
    for number, (name, program) in enumerate(others.items(), 1):
        # The slices that the straight run takes now: the ones before are stepped over first.
        skip = ["steps", str(ROUND_STEPS * number)]
        program.step(artifacts.find(name), flags, [*skip, "load", paths[1], "steps", str(ROUND_STEPS), "save", paths[1]])
    straight, rounds = (arrays.parse_safetensors(pathlib.Path(path).read_bytes()) for path in paths)
    return zoo.compare_bits(straight, rounds)


def fade(program, artifact, entry, work):
    """The checkpoint after the steps of --fade."""
    data, path = arrays.read_npz(entry / "data.npz"), f"{work}/faded"
    program.step(artifact, runner.write_inputs(data, work), ["steps", str(DATA_STEPS), "save", path])
    zeros = {name: item._replace(data=bytes(len(item.data))) for name, item in data.items()}
    program.step(artifact, runner.write_inputs(zeros, work), ["load", path, "steps", str(ZERO_STEPS), "save", path])
    return arrays.parse_safetensors(pathlib.Path(path).read_bytes())


def compare_faded(here, others, recipe, entry, work):
    """What differs, and what makes the comparison worth nothing."""
    artifacts = Artifacts(recipe, "adamw", "portable", f"{work}/artifact")
    wanted = fade(here, artifacts.find("here"), entry, work)
    moments = [value for name, item in wanted.items() if name.endswith(".exp_avg") for value in arrays.numbers(item)]
    failures = [] if moments.count(0) > len(moments) / 2 else ["few moments have faded out"]
    for name, program in others.items():
        different = zoo.compare_bits(wanted, fade(program, artifacts.find(name), entry, work))
        failures += [f"{name}: not this machine's bits: {different}"] if different else []
    print(f"{MODEL}: {ZERO_STEPS} steps on zeros on {len(others)} processors")
    return failures


def compare_trained(here, others, targets, recipe, entry, work, compiled="all"):
    """What differs from PyTorch or from this machine. `targets`: by processor, the code that is to run; `compiled`: of the artifact."""
    failures, worst = [], 0.0
    for numerics in ("portable", "fast"):
        for optimizer in recipe["optimizers"]:
            artifacts = Artifacts(recipe, optimizer, numerics, f"{work}/artifact", compiled)
            wanted, facts = here.train(artifacts.find("here"), entry, optimizer)
            for name, program in others.items():
                found, ran = program.train(artifacts.find(name), entry, optimizer)
                where = f"{name}, {optimizer}, {numerics}"
                if ran["target"] != (targets[name] or facts["target"]):
                    failures.append(f"{where}: the code that ran is of {ran['target']}")
                _, share, beyond = zoo.compare_golden(entry, optimizer, found)
                worst = max(worst, share)
                failures += [f"{where}: {text}" for text in beyond[:1]]
                is_fused = [target not in WITHOUT_FMA for target in (ran["target"], facts["target"])]
                different = zoo.compare_bits(wanted, found) if numerics == "portable" or is_fused[0] == is_fused[1] else None
                failures += [f"{where}: not this machine's bits: {different}"] if different else []
            if numerics == "portable" and optimizer == "adamw":
                different = go_round(here, others, artifacts, entry, work)
                failures += [f"a checkpoint that goes round: {different}"] if different else []
            shutil.rmtree(f"{work}/artifact")
    print(f"{MODEL}: {len(others)} processors, the largest distance is {worst:.2f} of its tolerance")
    return failures


def main():
    with tempfile.TemporaryDirectory(prefix="train-targets-") as work:
        return check(work)


def check(work):
    only = sys.argv[5] if sys.argv[4:5] == ["--on"] else None
    linked = LINKED if MODEL in SMALL_MODELS else []
    processors, missing = find_processors(work, [only] if only else [*PROCESSORS, *linked])
    entry = SOURCE / "test/zoo" / MODEL
    recipe = json.loads((entry / "recipe.json").read_text())
    if not processors or missing and os.environ.get("ORTC_NO_SKIP"):
        print("SKIPPED: " + "; ".join(missing))
        return 1 if os.environ.get("ORTC_NO_SKIP") else 77
    here = Program(work, "here", [str(BUILD / "test/targets/run-x86_64")])
    others = {name: Program(work, name, command) for name, (_, command) in processors.items()}
    if sys.argv[4:] == ["--fade"]:
        failures = compare_faded(here, others, recipe, entry, work)
    else:
        targets = {name: target for name, (target, _) in processors.items()}
        failures = compare_trained(here, others, targets, recipe, entry, work)
        if only == "windows":
            failures += compare_trained(here, others, {only: "x86-64"}, recipe, entry, work, "x86-64")
    for text in failures:
        print(f"FAILED {text}")
    for text in missing:
        print(f"left out: {text}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
