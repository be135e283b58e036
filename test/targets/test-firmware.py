#!/usr/bin/env python3
"""The firmware of docs/examples/firmware on boards of QEMU: with the runtime and without it the same losses, in so much flash and RAM; and
the commands of docs/devices.md.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: test-firmware.py SOURCE BUILD

Exit status 77 without an emulator, 1 with ORTC_NO_SKIP in the environment.
"""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
spec = importlib.util.spec_from_file_location("board", SOURCE / "test/targets/firmware/run-board.py")
board = importlib.util.module_from_spec(spec)
spec.loader.exec_module(board)

# Bytes: of flash besides the weights, and of RAM besides the stack, that a program may take.
PROGRAMS = {"with_runtime.c": ([], 28 << 10, 48 << 10), "without_runtime.c": (["-DMODEL_WITHOUT_RUNTIME"], 16 << 10, 44 << 10)}
RUNTIME_BYTES = 8320  # of the functions and texts of the runtime that the first one links: 8 KiB and a little


def read_sizes(elf):
    """Flash and RAM: what is loaded, and what is zeroed."""
    row = subprocess.run(["llvm-size-22", elf], capture_output=True, text=True, check=True).stdout.split("\n")[1].split()
    return int(row[0]) + int(row[1]), int(row[1]) + int(row[2])


def measure_runtime(elf):
    names = subprocess.run(["llvm-nm-22", "-S", "--radix=d", elf], capture_output=True, text=True, check=True).stdout.split("\n")
    rows = [line.split() for line in names]
    return sum(int(row[1]) for row in rows if len(row) == 4 and (row[3].startswith("_ZN4ortc") or row[3].startswith("_ZNK12ortc")
                                                                or row[3].startswith("_ZZN4ortc") or row[3].startswith("ortc_"))
               and row[3] != "ortc_divide")  # which a compiler's library has, too


def run_documented(work):
    """The commands of docs/devices.md print their output with the runtime as it is installed."""
    prefix = pathlib.Path(work) / "installed"
    subprocess.run(["cmake", "--install", BUILD, "--component", "sources", "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    section = (SOURCE / "docs/devices.md").read_text().split("## Microcontrollers")[1]
    folder = pathlib.Path(work) / "documented"
    folder.mkdir()
    (folder / "test").symlink_to(SOURCE / "test")
    for name in ("runtime", "docs"):
        (folder / name).symlink_to(prefix / "share/ortc" / name)
    done = subprocess.run(["bash", "-e", "-c", section.split("```")[1]], cwd=folder, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, env={**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"})
    return [line for line in (done.stdout + done.stderr).split("\n") if line.startswith("loss, ") and done.returncode == 0], done.stderr


def main():
    missing = [tool for tool in ("qemu-system-arm", "clang-22", "ld.lld-22") if not shutil.which(tool)]
    if missing:
        print(f"SKIPPED: there is no {missing[0]}")
        return 1 if os.environ.get("ORTC_NO_SKIP") else 77
    failures = []
    with tempfile.TemporaryDirectory(prefix="test-firmware-") as work:
        for name in ("cortex-m4", "cortex-m55"):
            folder = pathlib.Path(work) / name
            subprocess.run([BUILD / "bin/ortc", "train", SOURCE / "test/zoo/mlp-digits/model.onnx", "-o", folder, "--quiet", "--shape", "batch=8",
                            "--loss", "cross_entropy", "--optimizer", "sgd:lr=0.1", "--target", name, "--emit", "static"], check=True)
            weights = 4 * 4810
            said = {}
            objects = board.build_library(SOURCE, name, pathlib.Path(work) / f"{name}-objects")
            for program, (options, most_flash, most_ram) in PROGRAMS.items():
                elf = board.link(SOURCE, name, folder / "model.ortc", objects, board.EXAMPLE / program, options)
                said[program] = [line for line in board.run(name, elf, []) if line]
                flash, ram = read_sizes(elf)
                print(f"{name}, {program}: {flash - weights} bytes of flash besides the weights, {ram} of RAM; {said[program][-1]}")
                if flash - weights > most_flash or ram > most_ram:
                    failures.append(f"{name}, {program}: more than {most_flash} bytes of flash, or {most_ram} of RAM")
                if not options:
                    runtime = measure_runtime(elf)
                    print(f"{name}: {runtime} bytes of it are the runtime")
                    failures += [f"{name}: the runtime has {runtime} bytes"] if runtime > RUNTIME_BYTES else []
            if len(set(map(tuple, said.values()))) != 1:
                failures.append(f"{name}: other losses without the runtime: {said}")
            losses = [int(line.split()[-1]) for line in said["with_runtime.c"]]
            if not losses[-1] < losses[0] / 3:
                failures.append(f"{name}: it does not learn: {losses}")
        lines, errors = run_documented(work)
        if lines != said["without_runtime.c"]:
            failures.append(f"the commands of docs/devices.md: {lines} {errors}")
    for text in failures:
        print(f"FAILED {text}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
