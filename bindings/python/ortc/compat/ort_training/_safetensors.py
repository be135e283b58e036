"""Safetensors files as arrays of numpy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ortc._checks import check_output
from ortc._errors import ArgumentError, FormatError

_TYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": np.uint16,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}
_NAMES = {np.dtype(dtype): name for name, dtype in _TYPES.items() if name != "BF16"}


def parse(file: bytes, name: str) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Tensors and metadata of a file's bytes; `name` is for messages."""
    try:
        (size,) = struct.unpack_from("<Q", file)
        header = json.loads(file[8 : 8 + size])
        metadata = header.pop("__metadata__", {})
        tensors = {}
        for key, row in header.items():
            begin, end = row["data_offsets"]
            data = file[8 + size + begin : 8 + size + end]
            tensors[key] = np.frombuffer(bytearray(data), _TYPES[row["dtype"]]).reshape(row["shape"])
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{name}: is no safetensors file that can be read ({type(error).__name__}: {error})") from error
    return tensors, metadata


def serialize(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """The bytes of a file. Raises ArgumentError for a type that it has no name for."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    parts: list[bytes] = []
    offset = 0
    for key, values in tensors.items():
        if values.dtype not in _NAMES:
            raise ArgumentError(f"'{key}' is {values.dtype}, which checkpoints do not hold; they hold {', '.join(map(str, _NAMES))}")
        data = np.ascontiguousarray(values).tobytes()
        header[key] = {"dtype": _NAMES[values.dtype], "shape": list(values.shape), "data_offsets": [offset, offset + len(data)]}
        parts.append(data)
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *parts])


def read(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    return parse(Path(path).read_bytes(), os.fspath(path))


def write(path: str | os.PathLike[str], tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """The path has the old file or the new one; where it is a link, what that leads to. Raises ArgumentError for what is no
    regular file."""
    check_output("save", path)
    data, place = serialize(tensors, metadata), Path(os.path.realpath(path))
    beside = place.with_name(f"{place.name}.tmp")
    try:
        beside.write_bytes(data)
        beside.replace(place)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
