"""The model that blocks add nodes to.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ortc._errors import ArgumentError, StateError

if TYPE_CHECKING:
    import onnx


class ModelAccessor:
    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self._count = 0

    def make_name(self, of: str) -> str:
        """One that no value has."""
        taken = {name for node in self.model.graph.node for name in node.output} | {
            each.name for each in (*self.model.graph.input, *self.model.graph.initializer)
        }
        while True:
            self._count += 1
            if (name := f"onnxblock.{of}.{self._count}") not in taken:
                return name


_current: ContextVar[ModelAccessor | None] = ContextVar("onnxblock_base", default=None)


@contextlib.contextmanager
def _use(model: onnx.ModelProto) -> Iterator[ModelAccessor]:
    if _current.get() is not None:
        raise StateError("blocks add to another model: leave the block of `with onnxblock.base(...)` first")
    accessor = ModelAccessor(model)
    token = _current.set(accessor)
    try:
        yield accessor
    finally:
        _current.reset(token)


@contextlib.contextmanager
def base(model: onnx.ModelProto) -> Iterator[ModelAccessor]:
    """Blocks add to a copy of this model within."""
    with _use(copy.deepcopy(model)) as accessor:
        yield accessor


@contextlib.contextmanager
def empty_base(opset_version: int | None = None) -> Iterator[ModelAccessor]:
    """Blocks add to an empty model within."""
    import onnx

    graph = onnx.helper.make_graph([], "graph", [], [])
    opset = onnx.helper.make_opsetid("", opset_version or onnx.defs.onnx_opset_version())
    with _use(onnx.helper.make_model(graph, opset_imports=[opset])) as accessor:
        yield accessor


def current() -> ModelAccessor:
    accessor = _current.get()
    if accessor is None:
        raise StateError("a block has no model to add to: call it within `with onnxblock.base(model):`, or give it to generate_artifacts")
    return accessor


class Block(ABC):
    """Adds nodes to the current model. `build` takes names of values, and gives the name of one."""

    base: Any
    """The model, from the call on."""

    @abstractmethod
    def build(self, *args: Any, **kwargs: Any) -> Any: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.base = current().model
        return self.build(*args, **kwargs)


def add_node(kind: str, inputs: list[str], **attributes: Any) -> str:
    """The name of its first output."""
    import onnx

    accessor = current()
    name = accessor.make_name(kind)
    accessor.model.graph.node.append(onnx.helper.make_node(kind, inputs, [name], name=name, **attributes))
    return name


def add_constant(values: Any) -> str:
    import numpy as np
    import onnx

    return add_node("Constant", [], value=onnx.numpy_helper.from_array(np.asarray(values)))


def has_value(name: str) -> bool:
    """Whether a node can read it."""
    graph = current().model.graph
    values = (*graph.input, *graph.initializer)
    return any(each.name == name for each in values) or any(name in node.output for node in graph.node)


def find_value(name: str) -> onnx.ValueInfoProto:
    """Type and shape of a value."""
    import onnx

    graph = onnx.shape_inference.infer_shapes(current().model).graph
    for each in (*graph.input, *graph.output, *graph.value_info):
        if each.name == name and each.type.WhichOneof("value") is not None:
            return each
    raise ArgumentError(f"onnxblock: the model has no value '{name}' of a known shape; its outputs are {', '.join(each.name for each in graph.output)}")


def add_input(name: str, like: str) -> onnx.ValueInfoProto:
    """An input of the model with the type and shape of a value, both of which may be changed."""
    found = find_value(like)
    given = current().model.graph.input.add()
    given.CopyFrom(found)
    given.name = name
    return given
