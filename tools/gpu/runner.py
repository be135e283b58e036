"""The program gpu-run: building it from the sources in a pack, and running artifacts with it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import concurrent.futures
import gzip
import json
import os
import shlex
import shutil
import struct
import subprocess

FLAGS = ["-std=c++17", "-O1", "-I.", "-Iruntime/include"]
NO_DEVICE = 4  # ORTC_E_TARGET of ortc.h: no driver, or no GPU
OWN_SOURCES = ["tools/gpu/gpu_run.cpp", "tools/gpu/driver.cpp", "tools/gpu/files.cpp", "tools/gpu/launch_times.cpp"]


class Failure(Exception):
    """Something that a check is about did not work; its text says what."""

    def __init__(self, text, status=None):
        super().__init__(text)
        self.status = status


def compiler():
    return shlex.split(os.environ.get("CXX", "c++"))


def build(root, sources, work):
    """Compiles the sources, which lie below `root`, into work/gpu-run."""
    objects = [os.path.join(work, source.replace("/", "-") + ".o") for source in sources]

    def compile_one(source, out):
        done = subprocess.run([*compiler(), *FLAGS, "-c", source, "-o", out], cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"{source} does not compile: {done.stderr.strip()}")

    if not shutil.which(compiler()[0]):
        raise Failure(f"there is no C++ compiler '{compiler()[0]}' here; set CXX")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, sources, objects))
    program = os.path.join(work, "gpu-run")
    done = subprocess.run([*compiler(), *objects, "-ldl", "-o", program], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"gpu-run does not link: {done.stderr.strip()}")
    return program


def unpack(path, folder):
    """The artifact of a compressed file, below `folder`."""
    out = os.path.join(folder, "model.ortc")
    with gzip.open(path) as source, open(out, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 22)
    return out


def run(program, arguments, timeout, env=None):
    """What gpu-run says, as a dictionary."""
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=timeout,
                              env={**os.environ, **(env or {})})
    except subprocess.TimeoutExpired as error:
        raise Failure(f"not done after {error.timeout:.0f} s") from None
    if done.returncode:
        text = done.stderr.strip() or done.stdout.strip()
        raise Failure(text or f"gpu-run ends with status {done.returncode}", done.returncode)
    return json.loads(done.stdout)


def write_inputs(inputs, folder):
    """Flags for arrays, whose bytes are the slices of an input one after the other."""
    flags = []
    for number, (name, item) in enumerate(inputs.items()):
        path = os.path.join(folder, f"input-{number}")
        with open(path, "wb") as file:
            file.write(item.data)
        flags += ["--input", f"{name}={path}"]
    return flags


def list_images(path):
    """Names of the images of GPU code in an artifact: runtime/include/ortc/format.h and device.h have its structures."""
    kinds = {1: "PTX", 2: "cubin", 3: "HSACO"}
    names = []
    with open(path, "rb") as file:
        header = file.read(120)
        table, count, size = struct.unpack_from("<I", header, 12)[0], *struct.unpack_from("<II", header, 24)
        for i in range(count):
            file.seek(table + i * size)
            kind, _, offset, _, _, architecture = struct.unpack("<IIQQII", file.read(32))
            if kind != 8 or architecture not in (6, 7):
                continue
            file.seek(offset + 8)
            entries, entry_bytes = struct.unpack("<II", file.read(8))
            file.seek(offset + (16 + entries * entry_bytes + 7) // 8 * 8)
            images, row_bytes, rows = struct.unpack("<IIQ", file.read(16))
            for k in range(images):
                file.seek(offset + rows + k * row_bytes)
                image, processor = struct.unpack("<II", file.read(8))
                names.append(f"{kinds.get(image, image)} {processor}")
    return names
