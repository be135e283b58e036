#!/usr/bin/env python3
"""ortc without its compiler on another processor, by emulation: it trains and predicts what this machine's does, bit for bit.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: test-tool.py SOURCE BUILD ARCHITECTURE

The program is that of tools/build-cross ARCHITECTURE. Artifacts are of portable numerics. Files that either tool writes are the same
bytes: checkpoints, gradients, predictions, exported models, signed artifacts; losses are within the tolerance of PyTorch's.
Exit status 77 without that program or an emulator, 1 with ORTC_NO_SKIP in the environment.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import zipfile

SOURCE, BUILD, ARCHITECTURE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
sys.path.insert(0, str(SOURCE / "tools/gpu"))
import arrays

EMULATORS = {  # and the folder of the C library
    "aarch64": ("qemu-aarch64-static", "/usr/aarch64-linux-gnu"),
    "armv7": ("qemu-arm-static", "/usr/arm-linux-gnueabihf"),
    "riscv64": ("qemu-riscv64-static", "/usr/riscv64-linux-gnu"),
}
MODELS = ("mlp-digits", "lenet")
# Of RFC 8410.
KEY = "d4ee72dbf913584ad5b6d8f1f769f8ad3afe7c28cbf1d4fbe097a88f44755842"
PUBLIC_KEY = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1"
PIECE = 6 << 20  # bytes of the forged archive: its claim of nearly 4 GiB is what they could hold


def call(tool, *arguments, status=0):
    done = subprocess.run([*tool, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    if done.returncode != status:
        raise AssertionError(f"{' '.join(map(str, arguments))}: status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def use(tool, artifact, entry, steps, out):
    """Everything that a tool without a compiler makes of an artifact, in the folder `out`; what it says of it."""
    out.mkdir()
    shutil.copytree(artifact, out / "artifact")
    artifact, data = out / "artifact", entry / "data.npz"
    call(tool, "run", artifact, "--data", data, "--steps", steps, "--no-shuffle", "--metrics", out / "metrics", "--save", out / "saved", "--quiet")
    call(tool, "run", artifact, "--data", data, "--steps", steps, "--seed", 3, "--load", out / "saved", "--save", out / "shuffled", "--threads", 2, "--quiet")
    call(tool, "gradients", artifact, "--data", data, "-o", out / "gradients")
    call(tool, "predict", artifact, "--data", data, "--load", out / "saved", "--steps", 1, "-o", out / "predicted.npz")
    call(tool, "export", artifact, "--load", out / "saved", "-o", out / "trained.onnx", "--quiet")
    said = call(tool, "eval", artifact, "--data", data, "--load", out / "saved")
    call(tool, "sign", artifact, "--key", out.parent / "key", "--quiet")
    call(tool, "verify", artifact, "--public-key", out.parent / "public")
    return said


def check(tool, model, work):
    """What differs from this machine's files and from PyTorch's losses."""
    entry, here = SOURCE / "test/zoo" / model, [str(BUILD / "bin/ortc")]
    recipe = json.loads((entry / "recipe.json").read_text())
    work.mkdir()
    (work / "key").write_text(KEY)
    (work / "public").write_text(PUBLIC_KEY)
    call(here, "train", entry / "model.onnx", "-o", work / "artifact", *recipe["flags"], "--optimizer", recipe["optimizers"]["sgd"],
         "--target", "x86-64", "--target", ARCHITECTURE, "--numerics", "portable", "--gradients", "--quiet")
    said = [use(each, work / "artifact", entry, recipe["steps"], work / name) for each, name in ((here, "here"), (tool, "there"))]
    failures = [] if said[0] == said[1] else [f"eval says {said[1]} but here {said[0]}"]
    names = ("saved", "shuffled", "gradients", "predicted.npz", "trained.onnx", "artifact/model.ortc")
    failures += [f"{name} is not this machine's" for name in names if (work / "here" / name).read_bytes() != (work / "there" / name).read_bytes()]
    losses = [json.loads(line)["loss"] for line in (work / "there/metrics").read_text().splitlines() if '"loss"' in line]
    golden = arrays.numbers(arrays.read_npz(entry / "golden.npz")["loss/sgd"])
    share = arrays.distance(golden, losses, 1e-3) / recipe["tolerance"]["loss/sgd"]
    return failures + ([] if share <= 1 else [f"losses are {share:.2f} tolerances from PyTorch's"])


def refuse(tool, work):
    """Files that claim more bytes than pointers of 32 bits tell apart, and commands that are not there: each has its message."""
    forged, words = work / "forged.npz", "claims 4026531840 bytes, but no more than 2147483647 can be read here"
    with zipfile.ZipFile(forged, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pixels.npy", random.Random(1).randbytes(PIECE))
    data = bytearray(forged.read_bytes())
    at = data.rfind(b"PK\1\2") + 24  # the size in the directory
    data[at : at + 4] = (0xF0000000).to_bytes(4, "little")
    forged.write_bytes(data)
    failures = []
    for arguments, status, wanted in (
        (("run", work / "mlp-digits/artifact", "--data", forged, "--steps", 1), 1, words if ARCHITECTURE == "armv7" else "forged.npz"),
        (("train", "model.onnx", "-o", work / "none"), 2, "ortc: error: train needs the compiler, which this ortc was built without\n"),
    ):
        said = call(tool, *arguments, status=status)
        failures += [] if wanted in said else [f"{arguments[0]} says {said}"]
    return failures


def main():
    program, (emulator, root) = SOURCE / f"build-{ARCHITECTURE}/bin/ortc", EMULATORS[ARCHITECTURE]
    missing = None if shutil.which(emulator) else f"there is no {emulator}"
    if not program.exists():
        missing = f"tools/build-cross {ARCHITECTURE} has not been run"
    if missing:
        print(f"SKIPPED: {missing}")
        return 1 if os.environ.get("ORTC_NO_SKIP") else 77
    tool, failures = [emulator, "-L", root, str(program)], []
    with tempfile.TemporaryDirectory(prefix="test-tool-") as work:
        for model in MODELS:
            failures += [f"{model}: {text}" for text in check(tool, model, pathlib.Path(work) / model)]
        failures += refuse(tool, pathlib.Path(work))
    for text in failures:
        print(f"FAILED {text}")
    print(f"{ARCHITECTURE}: {len(MODELS)} models, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
