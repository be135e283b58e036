"""The GPU code of an artifact: its PTX, its kernels and what each entry launches.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

runtime/include/ortc/format.h and device.h have the structures.
"""
import dataclasses
import json
import pathlib
import struct
from typing import Any

ROLES = ("train", "eval", "predict", "gradients", "update", "accumulate", "forward", "backward")
SECTION_STRINGS, SECTION_CODE, SECTION_MANIFEST = 2, 8, 11
ARCHITECTURE_PTX, IMAGE_PTX = 6, 1
LAUNCH_KERNEL, LAUNCH_LOOP, LAUNCH_END = 0, 1, 2
ARGUMENT_STATUS = 4


class Unusable(Exception):
    """This input cannot be predicted; the text has the reason."""


@dataclasses.dataclass
class Kernel:
    """A function of the device's code."""

    name: str
    threads: int
    shared: int  # bytes of dynamic shared memory
    arguments: int


@dataclasses.dataclass(frozen=True)
class Launch:
    """A launch as it occurs in an entry: `arguments` are the bytes that each may touch, 0 for the status."""

    kernel: str
    blocks: int
    arguments: tuple[int, ...]


@dataclasses.dataclass
class Code:
    """The code for one target."""

    target: str
    ptx: str
    kernels: dict[str, Kernel]
    entries: dict[str, dict[Launch, int]]  # how often each is launched, loops run
    manifest: dict[str, Any]


def read_text(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode()


def expand(rows: list[tuple[int, ...]], read_launch: Any) -> dict[Launch, int]:
    """Counts launches with loops run."""
    counts: dict[Launch, int] = {}
    loops, times = [], 1
    for row in rows:
        if row[0] == LAUNCH_LOOP:
            loops.append(row[2])
            times *= row[2]
        elif row[0] == LAUNCH_END:
            times //= loops.pop()
        else:
            launch = read_launch(row)
            counts[launch] = counts.get(launch, 0) + times
    return counts


def parse_code(target: str, data: bytes, manifest: dict[str, Any]) -> Code:
    """`data`: a code section."""
    _, _, count, entry_bytes = struct.unpack_from("<4I", data)
    heads = [struct.unpack_from("<4I", data, 16 + entry_bytes * i) for i in range(count)]
    head = (16 + entry_bytes * count + 7) // 8 * 8
    images, image_bytes, first_image, kernels, kernel_bytes, first_kernel = struct.unpack_from("<IIQIIQ", data, head)
    ptx = ""
    for i in range(images):
        kind, _, offset, size = struct.unpack_from("<IIQQ", data, first_image + image_bytes * i)
        if kind == IMAGE_PTX:
            ptx = data[offset : offset + size].rstrip(b"\0").decode()
    table = []
    for i in range(kernels):
        name, threads, shared, arguments = struct.unpack_from("<4I", data, first_kernel + kernel_bytes * i)
        table.append(Kernel(read_text(data, name), threads, shared, arguments))
    entries = {}
    for role, binding, segment, offset in heads:
        launches, row_bytes, first, _, argument_bytes, first_argument = struct.unpack_from("<IIQIIQ", data, offset)
        rows = [struct.unpack_from("<6I", data, first + row_bytes * i) for i in range(launches)]

        def read_launch(row: tuple[int, ...], base: int = first_argument, size: int = argument_bytes) -> Launch:
            kernel = table[row[1]]
            found = [struct.unpack_from("<IIQQ", data, base + size * (row[4] + k)) for k in range(kernel.arguments)]
            return Launch(kernel.name, row[2], tuple(0 if kind == ARGUMENT_STATUS else touched for kind, _, _, touched in found))

        if binding == 0 and segment == 0:
            entries[ROLES[role]] = expand(rows, read_launch)
    return Code(target, ptx, {kernel.name: kernel for kernel in table}, entries, manifest)


def read_artifact(path: pathlib.Path, target: str | None) -> Code:
    """The code for `target`; without one that for sm_90, or else for the newest there is."""
    path = path / "model.ortc" if path.is_dir() else path
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from None
    if data[:8] != b"ORTC\r\n\x1a\n":
        raise Unusable(f"{path} is no artifact")
    table = struct.unpack_from("<I", data, 12)[0]
    count, size = struct.unpack_from("<II", data, 24)
    sections = [struct.unpack_from("<IIQQIIQI", data, table + size * i) for i in range(count)]
    find = lambda kind: next(data[row[2] : row[2] + row[3]] for row in sections if row[0] == kind)
    manifest, strings = json.loads(find(SECTION_MANIFEST)), find(SECTION_STRINGS)
    codes = {}
    for kind, _, offset, length, _, architecture, _, name in sections:
        if kind == SECTION_CODE and architecture == ARCHITECTURE_PTX:
            codes[read_text(strings, name)] = data[offset : offset + length]
    if not codes:
        raise Unusable(f"{path} has no code for NVIDIA's GPUs")
    target = target or ("sm_90" if "sm_90" in codes else list(codes)[-1])
    if target not in codes:
        raise Unusable(f"{path} has no code for {target}, only for {', '.join(codes)}")
    return parse_code(target, codes[target], manifest)
