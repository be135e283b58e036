"""Arrays in files, and how far they are apart, with only Python's own library.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import ast
import collections
import json
import math
import operator
import struct
import zipfile
from array import array

# dtype: the name in safetensors; data: little-endian bytes in row-major order.
Array = collections.namedtuple("Array", "dtype shape data")

NPY_TYPES = {"<f4": "F32", "<f8": "F64", "<i8": "I64", "<i4": "I32", "|i1": "I8", "|u1": "U8", "|b1": "BOOL"}
CODES = {"F32": "f", "F64": "d", "I64": "q", "I32": "i", "I8": "b", "U8": "B", "BOOL": "B"}


def read_npz(path):
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            begin, size = (10, "<H") if data[6] == 1 else (12, "<I")
            begin += struct.unpack_from(size, data, 8)[0]
            header = ast.literal_eval(data[10 if data[6] == 1 else 12 : begin].decode("latin-1"))
            dtype, shape, data = NPY_TYPES[header["descr"]], header["shape"], data[begin:]
            if header["fortran_order"]:
                data = order_rows(array(CODES[dtype], data), shape).tobytes()
            arrays[name.removesuffix(".npy")] = Array(dtype, shape, data)
    return arrays


def order_rows(values, shape):
    """The elements of an array in column-major order, in row-major order."""
    if len(shape) < 2:
        return values
    ordered = array(values.typecode)
    for i in range(shape[0]):
        ordered.extend(order_rows(values[i :: shape[0]], shape[1:]))
    return ordered


def parse_safetensors(data):
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    view = memoryview(data)[8 + size :]
    return {name: Array(row["dtype"], tuple(row["shape"]), bytes(view[slice(*row["data_offsets"])])) for name, row in header.items()}


def write_safetensors(path, parts):
    """`parts`: (name, dtype, shape, how many bytes, the bytes in chunks) of every tensor."""
    header, offset = {}, 0
    for name, dtype, shape, size, _ in parts:
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for *_, chunks in parts:
            file.writelines(chunks)


def numbers(item):
    return array(CODES[item.dtype], item.data)


def largest(values):
    return max(map(abs, values), default=0.0)


def distance(wanted, got, floor):
    """The largest difference over the largest magnitude that is wanted, which counts as `floor` at least."""
    if len(wanted) != len(got) or not all(map(math.isfinite, got)):
        return math.inf
    return largest(map(operator.sub, wanted, got)) / max(largest(wanted), floor)


def describe_difference(wanted, got):
    """How two arrays differ in their bits; None where they do not."""
    if wanted == got:
        return None
    if (wanted.dtype, wanted.shape) != (got.dtype, got.shape):
        return f"{got.dtype}{list(got.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    # Floats in their order are integers in theirs, except the sign.
    code = {"F32": "i", "F64": "q"}.get(wanted.dtype, CODES[wanted.dtype])
    magnitude = (1 << (8 * array(code).itemsize - 1)) - 1
    place = lambda bits: bits if bits >= 0 else -(bits & magnitude)
    steps = [abs(place(a) - place(b)) for a, b in zip(array(code, wanted.data), array(code, got.data)) if a != b]
    return f"{len(steps)} of {len(wanted.data) // array(code).itemsize} numbers, by at most {max(steps)} steps of the type"
