#!/usr/bin/env python3
"""The tail of a keyword spotter of 8-bit integers, trained on a Cortex-M4 of QEMU with 128 KiB of RAM.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: test-backbone.py SOURCE BUILD

The linker has 128 KiB for everything, stack included, and the firmware paints the stack. What it computes is compared with backbone/golden.npz:
codes of the front with onnxruntime's, losses, gradients and parameters of the tail with numpy's.
Exit status 77 without an emulator, 1 with ORTC_NO_SKIP in the environment.
"""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SOURCE, BUILD = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
ENTRY = SOURCE / "test/targets/backbone"
sys.path.insert(0, str(SOURCE / "tools/gpu"))
import arrays

spec = importlib.util.spec_from_file_location("board", SOURCE / "test/targets/firmware/run-board.py")
board = importlib.util.module_from_spec(spec)
spec.loader.exec_module(board)

TARGET, STEPS = "cortex-m4", 48
RAM, RAM_BYTES = 0x20000000, 128 << 10
MOST_FLASH = 68 << 10  # constants, the first values, code, and what starts it
MOST_RAM = 80 << 10  # with activations of float32 it would be 96 KiB
# Means of 25 numbers and sums of 320 products in float32, over steps that each carry on what the last one was off.
TOLERANCE = 1e-5


def compile_model(folder, flags):
    subprocess.run([BUILD / "bin/ortc", "train", ENTRY / "model.onnx", "-o", folder, "--quiet", "--train", "tail.*", "--loss", "cross_entropy",
                    "--optimizer", "sgd:lr=0.05", "--target", TARGET, "--opt", "size", "--emit", "static", *flags], check=True)
    return folder / "model.ortc"


def check_distance(what, wanted, got):
    distance = arrays.distance(arrays.numbers(wanted) if isinstance(wanted, arrays.Array) else wanted, got, 1e-3)
    print(f"{what}: {distance:.1e} from numpy's")
    return [] if distance <= TOLERANCE else [f"{what}: {distance} from numpy's, of {TOLERANCE}"]


def train(work, objects, golden, files):
    """Steps without the runtime in 128 KiB: what is wrong."""
    model = compile_model(work / "trained", [])
    elf = board.link(SOURCE, TARGET, model, objects, ENTRY / "train_tail.c", ["-DMODEL_WITHOUT_RUNTIME"], (RAM, RAM_BYTES))
    said = board.run(TARGET, elf, [files["sound"], files["label"], str(STEPS), work / "parameters"])
    losses = [struct.unpack("<f", bytes.fromhex(line)[::-1])[0] for line in said if re.fullmatch("[0-9a-f]{8}", line)]
    stack = next(int(line.split()[1]) for line in said if line.startswith("stack "))
    row = subprocess.run(["llvm-size-22", elf], capture_output=True, text=True, check=True).stdout.split("\n")[1].split()
    flash, static = int(row[0]) + int(row[1]), int(row[1]) + int(row[2])
    memory = json.loads((model.parent / "manifest.json").read_text())["memory"]
    print(f"RAM {static + stack} bytes, {stack} of them stack; flash {flash} bytes, {memory['constants']} of them constants")
    failures = [] if flash <= MOST_FLASH else [f"{flash} bytes of flash, more than {MOST_FLASH}"]
    failures += [] if static + stack <= MOST_RAM else [f"{static + stack} bytes of RAM, more than {MOST_RAM}"]
    failures += check_distance("losses", golden["losses"], losses)
    failures += [] if losses[-1] < losses[0] / 4 else [f"it does not learn: {losses}"]
    parameters = (work / "parameters").read_bytes()
    header = (model.parent / "model.h").read_text()
    for name in ("tail.weight", "tail.bias"):
        offset = int(re.search(rf"MODEL_OFFSET_{name.replace('.', '_')} (\d+)u", header)[1])
        item = golden[name]
        failures += check_distance(name, item, arrays.numbers(item._replace(data=parameters[offset:offset + len(item.data)])))
    return failures


def look_inside(work, objects, golden, files):
    """Codes of the front and gradients of the tail, with the runtime: what is wrong."""
    model = compile_model(work / "shown", ["--gradients"])
    elf = board.link(SOURCE, TARGET, model, objects)
    flags = [word for name, path in files.items() for word in ("--input", f"{name}={path}")]
    board.run(TARGET, elf, [*flags, "gradients", work / "gradients", "reset", "predict", work / "outputs"])
    gradients, outputs = (arrays.parse_safetensors(board.read_arrays((work / name).read_bytes())) for name in ("gradients", "outputs"))
    failures = []
    for name in ("tail.weight", "tail.bias"):
        failures += check_distance(f"gradient of {name}", golden[f"grad/{name}"], arrays.numbers(gradients[name]))
    codes = next(arrays.numbers(item) for item in outputs.values() if item.dtype == "I8")
    off = [abs(a - b) for a, b in zip(arrays.numbers(golden["codes"]), codes, strict=True)]
    different = sum(map(bool, off))
    print(f"codes: {different} of {len(off)} are not onnxruntime's, by at most {max(off)}")
    return failures + ([f"{different} of {len(off)} codes differ, by at most {max(off)}"] if different else [])


def main():
    missing = [tool for tool in ("qemu-system-arm", "clang-22", "ld.lld-22") if not shutil.which(tool)]
    if missing:
        print(f"SKIPPED: there is no {missing[0]}")
        return 1 if os.environ.get("ORTC_NO_SKIP") else 77
    golden = arrays.read_npz(ENTRY / "golden.npz")
    golden["losses"] = list(arrays.numbers(golden["losses"]))
    with tempfile.TemporaryDirectory(prefix="backbone-") as folder:
        work, files = pathlib.Path(folder), {}
        for name, item in arrays.read_npz(ENTRY / "data.npz").items():
            files[name] = work / name
            files[name].write_bytes(item.data)
        objects = board.build_library(SOURCE, TARGET, work / "objects")
        failures = train(work, objects, golden, files) + look_inside(work, objects, golden, files)
    for text in failures:
        print(f"FAILED {text}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
