#!/usr/bin/env python3
"""Links a model into a program, runs that on a board of QEMU or on this machine, and says what came of it as gpu-run does.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: run-board.py SOURCE BUILD BOARD MODEL.ortc [--host] [--input NAME=FILE]... ACTION...

Beside MODEL.ortc are model.a, model.h and model_data.c (--emit static). Firmware is the runtime, the model, and train.c, compiled by
clang and linked by lld, without any library. BOARD "linked" is a program with libortc.a.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLE = HERE.parents[2] / "docs/examples/firmware"  # which has the start of a board
sys.path.insert(0, str(HERE.parents[2] / "tools/gpu"))
# Compiler flags, QEMU's board, and where its memory is: flash and RAM, start and bytes.
BOARDS = {
    "cortex-m4": (["--target=thumbv7em-none-eabihf", "-mcpu=cortex-m4"], "mps2-an386", (0, 4 << 20), (0x21000000, 16 << 20)),
    "cortex-m7": (["--target=thumbv7em-none-eabihf", "-mcpu=cortex-m7", "-mfpu=fpv5-sp-d16"], "mps2-an500", (0, 4 << 20),
                  (0x60000000, 16 << 20)),
    "cortex-m33": (["--target=thumbv8m.main-none-eabihf", "-mcpu=cortex-m33"], "mps2-an505", (0x10000000, 4 << 20), (0x80000000, 16 << 20)),
    "cortex-m55": (["--target=thumbv8.1m.main-none-eabihf", "-mcpu=cortex-m55"], "mps3-an547", (0, 512 << 10), (0x60000000, 32 << 20)),
}
RUNTIME = ["checkpoint_read", "checkpoint_write", "message", "platform_none", "processor", "program", "session", "sha256", "static", "view"]
FLAGS = ["-Oz", "-ffreestanding", "-ffunction-sections", "-fdata-sections", "-fno-exceptions", "-fno-asynchronous-unwind-tables"]
# Of those that the runtime's own build has: a twentieth of its size.
SMALLER = ["-disable-lsr", "-enable-pre=false", "-disable-machine-licm", "-disable-block-placement", "-max-store-memcpy=2",
           "-split-spill-mode=size", "-enable-newgvn", "-bonus-inst-threshold=0", "-disable-machine-cse", "-enable-gvn-hoist",
           "-max-store-memset=2", "-inline-threshold=10", "-pre-RA-sched=list-burr"]
DTYPES = {1: "F32", 3: "I8", 6: "I32", 7: "I64", 9: "BOOL", 11: "F64"}


def compile_file(source, output, flags, root):
    is_cpp = source.suffix == ".cpp"
    language = ["-std=c++17", "-fno-rtti", "-fno-threadsafe-statics"] if is_cpp else ["-std=c11"]
    language += [word for option in SMALLER for word in ("-mllvm", option)] if is_cpp else []
    includes = [f"-I{EXAMPLE}", f"-I{root}/runtime/freestanding", f"-I{root}", f"-I{root}/runtime/include"]
    subprocess.run(["clang++-22" if is_cpp else "clang-22", *flags, *FLAGS, *language, *includes, "-c", source, "-o", output], check=True)


def build_library(root, board, folder):
    """The objects that are the same for every model, once for each board."""
    flags = BOARDS[board][0]
    folder.mkdir(parents=True, exist_ok=True)
    sources = [root / f"runtime/src/{name}.cpp" for name in RUNTIME]
    changed = max(path.stat().st_mtime for place in (root / "runtime", EXAMPLE, HERE) for path in place.rglob("*.*"))
    objects = []
    for source in [*sources, root / "runtime/freestanding/string.c", root / "runtime/freestanding/aeabi.c",
                   root / "runtime/freestanding/arm_division.c", EXAMPLE / "start.c"]:
        objects.append(folder / f"{source.stem}.o")
        if not objects[-1].exists() or objects[-1].stat().st_mtime < changed:
            extra = ["-fno-builtin"] if source.parent.name == "freestanding" else []
            partial = folder / f"{source.stem}.{os.getpid()}.tmp"
            compile_file(source, partial, [*flags, *extra], root)
            partial.rename(objects[-1])
    return objects


def link(root, board, model, objects, program=HERE / "train.c", options=(), memory=None):
    """Firmware of a program and a model, beside the model; `memory`: less RAM than the board has, start and bytes."""
    flags, _, flash, ram = BOARDS[board]
    ram = memory or ram
    folder = model.parent
    elf = folder / f"{program.stem}-{board}.elf"
    if elf.exists():
        return elf
    own = [folder / "program.o", folder / "model_data.o"]
    for source, output in zip([program, folder / "model_data.c"], own):
        compile_file(source, output, [*flags, f"-I{folder}", *options], root)
    places = {"flash_start": flash[0], "flash_bytes": flash[1], "ram_start": ram[0], "ram_bytes": ram[1]}
    subprocess.run(["ld.lld-22", *[f"--defsym={name}={value}" for name, value in places.items()], "-T", EXAMPLE / "board.ld", "--gc-sections",
                    *own, *objects, folder / "model.a", "-o", elf], check=True)
    return elf


def read_arrays(data):
    """What train.c writes, as safetensors."""
    header, parts, at, offset = {}, [], 0, 0
    while at < len(data):
        length, dtype, rank = struct.unpack_from("<III", data, at)
        shape = struct.unpack_from(f"<{rank}I", data, at + 12)
        at += 12 + 4 * rank
        name = data[at:at + length].decode()
        size = struct.unpack_from("<I", data, at + length)[0]
        at += length + 4
        header[name] = {"dtype": DTYPES[dtype], "shape": shape, "data_offsets": [offset, offset + size]}
        parts.append(data[at:at + size])
        at, offset = at + size, offset + size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def link_here(root, build, model):
    """The same as a program of this machine."""
    program = model.parent / "train-here"
    if not program.exists():
        includes = [f"-I{EXAMPLE}", f"-I{root}", f"-I{root}/runtime/include", f"-I{model.parent}"]
        sources = [HERE / "train.c", HERE / "board_posix.c", model.parent / "model_data.c"]
        subprocess.run(["clang-22", "-std=c11", "-O1", *includes, *sources, model.parent / "model.a", f"{build}/lib/libortc.a", "-o", program],
                       check=True)
    return program


def run_here(program, words):
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"here: status {done.returncode}: " + done.stdout + done.stderr)
    return done.stdout.split("\n")


def run(board, elf, words):
    arguments = ",".join(f"arg={word}" for word in ["firmware", *words])
    done = subprocess.run(["qemu-system-arm", "-M", BOARDS[board][1], "-nographic", "-semihosting-config",
                           f"enable=on,target=native,{arguments}", "-kernel", elf], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    output = (done.stdout + done.stderr).split("\n")
    if done.returncode:
        sys.exit(f"{board}: status {done.returncode}: " + done.stdout + done.stderr)
    return output


def main():
    root, build, board, model, words = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4]), sys.argv[5:]
    words = [word for word in words if word != "--host"]
    if board == "linked":
        output = run_here(link_here(root, build, model), words)
    else:
        objects = build_library(root, board, pathlib.Path(build) / f"test/targets/firmware-{board}")
        output = run(board, link(root, board, model, objects), words)
    for action, path in zip(words, words[1:]):
        if action in ("gradients", "predict"):
            file = pathlib.Path(path)
            file.write_bytes(read_arrays(file.read_bytes()))
    target, losses = "", []
    for line in output:
        if line.startswith("target "):
            target = line.split()[1]
        elif len(line) == 16:
            losses.append(struct.unpack("<d", bytes.fromhex(line)[::-1])[0])
    print(json.dumps({"target": target, "losses": losses}))


if __name__ == "__main__":
    main()
