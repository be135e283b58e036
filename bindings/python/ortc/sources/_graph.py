"""The work that exporters leave to be done to an ONNX graph: names of tensors, which are trained, and where gradients go otherwise than operators
say.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

_DOMAIN = "ai.ortc"
"""The domain of operators that only the compiler knows."""


def lift(model: Any, values: Mapping[str, NDArray[Any]]) -> None:
    """Makes inputs initializers, with these values."""
    from onnx import helper, numpy_helper

    graph = model.graph
    for each in [each for each in graph.input if each.name in values]:
        dtype = helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type)
        graph.initializer.append(numpy_helper.from_array(values[each.name].astype(dtype), each.name))
        graph.input.remove(each)


def set_trained(model: Any, names: Iterable[str]) -> None:
    """Says in the model which of its initializers are trained; flags of a compilation go first."""
    model.metadata_props.add(key="ortc.trainable", value="\n".join(names))


def rename(graph: Any, names: Mapping[str, str]) -> None:
    """Gives values other names, in subgraphs too."""
    for each in (*graph.initializer, *graph.input, *graph.output, *graph.value_info):
        each.name = names.get(each.name, each.name)
    for node in graph.node:
        for values in (node.input, node.output):
            values[:] = [names.get(value, value) for value in values]
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                rename(inner, names)


def settle_marks(model: Any) -> None:
    """Writes operators that only the compiler knows as those of the standard, and what they say of gradients into the metadata, which
    `ortc train` obeys: any runtime runs the file."""
    marks: dict[str, list[str]] = {"ortc.detached": [], "ortc.straight_through": [], "ortc.padding": []}
    _settle(model.graph, marks)
    for key, lines in marks.items():
        if lines:
            model.metadata_props.add(key=key, value="\n".join(lines))
    kept = [each for each in model.opset_import if each.domain != _DOMAIN]
    del model.opset_import[:]
    model.opset_import.extend(kept)


def _settle(graph: Any, marks: dict[str, list[str]]) -> None:
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _settle(inner, marks)
        if node.domain != _DOMAIN:
            continue
        name, kind = node.output[0], node.op_type
        if kind == "Embedding":
            marks["ortc.padding"].append(f"{name}={node.attribute[0].i}")
        elif kind == "StraightThrough":
            marks["ortc.straight_through"].append(f"{name}={node.input.pop()}")
        else:
            marks["ortc.detached"].append(name)
        node.op_type, node.domain = "Gather" if kind == "Embedding" else "Identity", ""
        del node.attribute[:]
