"""Writes ONNX files with only Python's own library: what models need that are made, not exported.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Messages of Protocol Buffers are fields one after the other: a number and a kind, then the value. onnx.proto has the numbers.
"""
import struct

FLOAT, INT64 = 1, 7  # TensorProto.DataType
VARINT, BYTES, FIXED32 = 0, 2, 5


def varint(value):
    value &= (1 << 64) - 1
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes(digits + bytes([value]))


def field(number, value):
    """A field by the type of its value: an integer, a float, text or bytes."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | FIXED32) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | BYTES) + varint(len(data)) + data


def fields(number, values):
    return b"".join(field(number, value) for value in values)


def tensor(name, dtype, shape, data):
    return fields(1, shape) + field(2, dtype) + field(8, name) + field(9, data)


def value_info(name, dtype, shape):
    dims = b"".join(field(1, field(1, dim)) for dim in shape)
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, dims)))


def attribute(name, value):
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)
    return field(1, name) + fields(8, value) + field(20, 7)


class Graph:
    """A model that grows node by node; values go by their names."""

    def __init__(self, opset):
        self.opset, self.body, self.count = opset, [], 0

    def node(self, kind, inputs, outputs=1, **attributes):
        """Adds a node; its result, or a list of them where there are several, or the names that are given."""
        self.count += 1
        names = [f"{kind}_{self.count}_{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
        text = fields(1, inputs) + fields(2, names) + field(3, f"{kind}_{self.count}") + field(4, kind)
        self.body.append(field(1, text + b"".join(field(5, attribute(*item)) for item in attributes.items())))
        return names[0] if len(names) == 1 else names

    def initializer(self, name, dtype, shape, data):
        self.body.append(field(5, tensor(name, dtype, shape, data)))
        return name

    def integers(self, *values):
        self.count += 1
        return self.initializer(f"integers_{self.count}", INT64, [len(values)], struct.pack(f"<{len(values)}q", *values))

    def input(self, name, dtype, shape):
        self.body.append(field(11, value_info(name, dtype, shape)))
        return name

    def output(self, name, dtype, shape):
        self.body.append(field(12, value_info(name, dtype, shape)))

    def serialize(self):
        graph = field(2, "graph") + b"".join(self.body)
        return field(1, 10) + field(2, "ortc") + field(7, graph) + field(8, field(1, "") + field(2, self.opset))
