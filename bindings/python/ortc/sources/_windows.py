"""Windows of jax2onnx: reduce_window of JAX has a size for every dimension, and is written as a pooling, or a convolution with ones, of
two dimensions more than the array has. ONNX means one or two: here they become poolings of the dimensions in which windows move.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import numpy as np


def rewrite(model: Any) -> None:
    """Replaces Unsqueeze, Unsqueeze, MaxPool or Conv with ones, Squeeze by Transpose, pooling, Transpose, where windows leave two
    dimensions alone: the batch and the channels."""
    from onnx import helper, numpy_helper

    graph = model.graph
    makers = {name: node for node in graph.node for name in node.output}
    readers: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    constants = {each.name: each for each in graph.initializer}
    written = []
    for node in graph.node:
        written.append(node)
        first = makers.get(node.input[0]) if node.op_type in ("MaxPool", "Conv") else None
        source = makers.get(first.input[0]) if first is not None and first.op_type == "Unsqueeze" else None
        last = readers.get(node.output[0], [])
        if source is None or source.op_type != "Unsqueeze" or [each.op_type for each in last] != ["Squeeze"]:
            continue
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        if node.op_type == "Conv":
            kernel = constants.get(node.input[1])
            if kernel is None or not (numpy_helper.to_array(kernel) == 1).all():
                continue
            attributes["kernel_shape"] = list(kernel.dims)[2:]
        pool = _describe(attributes)
        if pool is None:
            continue
        order, settings = pool
        value, name = source.input[0], node.output[0]
        written[-1] = helper.make_node("Transpose", [value], [name + ".in"], name=node.name + ".in", perm=order)
        if node.op_type == "Conv":  # a sum is a mean times the size of the window
            size = numpy_helper.from_array(np.array(np.prod(settings["kernel_shape"]), np.float32), name + ".size")
            graph.initializer.append(size)
            settings["count_include_pad"] = 1
            written.append(helper.make_node("AveragePool", [name + ".in"], [name + ".mean"], name=node.name, **settings))
            written.append(helper.make_node("Mul", [name + ".mean", size.name], [name + ".out"], name=node.name + ".sum"))
        else:
            written.append(helper.make_node("MaxPool", [name + ".in"], [name + ".out"], name=node.name, **settings))
        inverse = [int(axis) for axis in np.argsort(order)]
        last[0].CopyFrom(helper.make_node("Transpose", [name + ".out"], list(last[0].output), name=last[0].name, perm=inverse))
    if len(written) != len(graph.node):
        del graph.node[:]
        graph.node.extend(_used(written, {each.name for each in graph.output}))
        del graph.value_info[:]


def _describe(attributes: dict[str, Any]) -> tuple[list[int], dict[str, Any]] | None:
    """The order of dimensions that has those first in which windows do not move, and attributes for the others; None where
    these are not two."""
    size = attributes["kernel_shape"]
    rank = len(size)
    strides, dilations = attributes.get("strides", [1] * rank), attributes.get("dilations", [1] * rank)
    pads = attributes.get("pads", [0] * 2 * rank)
    moving = [i for i in range(rank) if (size[i], strides[i], pads[i], pads[rank + i]) != (1, 1, 0, 0)]
    kept = [i for i in range(rank) if i not in moving]
    if len(kept) != 2 or not moving or attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        return None
    return kept + moving, {
        "kernel_shape": [size[i] for i in moving],
        "strides": [strides[i] for i in moving],
        "dilations": [dilations[i] for i in moving],
        "pads": [pads[i] for i in moving] + [pads[rank + i] for i in moving],
    }


def _list_reads(node: Any) -> set[str]:
    """Names that a node reads, or its subgraphs."""
    graphs = [graph for attribute in node.attribute for graph in (attribute.g, *attribute.graphs)]
    return set(node.input).union(*(_list_reads(each) for graph in graphs for each in graph.node))


def _used(nodes: list[Any], wanted: set[str]) -> list[Any]:
    """Without those that nothing reads any more."""
    kept = []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            wanted |= _list_reads(node)
            kept.append(node)
    return kept[::-1]
