"""What exporters leave to be done to an ONNX graph: names of tensors, and which are trained.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray


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
