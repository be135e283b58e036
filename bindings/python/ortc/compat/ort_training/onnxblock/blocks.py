"""Blocks of one node.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ortc.compat.ort_training._missing import refuse_name
from ortc.compat.ort_training.onnxblock._base import Block, add_constant, add_input, add_node, current

__all__ = [
    "Abs",
    "Add",
    "Block",
    "Cast",
    "Clip",
    "Constant",
    "Div",
    "InputLike",
    "Linear",
    "Log",
    "Mul",
    "Neg",
    "PassThrough",
    "Pow",
    "ReduceMean",
    "ReduceSum",
    "Sigmoid",
    "Sub",
]


class _Unary(Block):
    """The node of the class's name."""

    def build(self, input_name: str) -> str:
        return add_node(type(self).__name__, [input_name])


class _Binary(Block):
    """The node of the class's name."""

    def build(self, input_name1: str, input_name2: str) -> str:
        return add_node(type(self).__name__, [input_name1, input_name2])


class Add(_Binary):
    pass


class Sub(_Binary):
    pass


class Mul(_Binary):
    pass


class Div(_Binary):
    pass


class Sigmoid(_Unary):
    pass


class Log(_Unary):
    pass


class Neg(_Unary):
    pass


class Abs(_Unary):
    pass


class ReduceMean(_Unary):
    """Over all axes, which stay, of one element."""


class ReduceSum(_Unary):
    """Over all axes, which stay, of one element."""


class Pow(Block):
    def __init__(self, exponent: float) -> None:
        self._exponent = exponent

    def build(self, pow_input_name: str) -> str:
        return add_node("Pow", [pow_input_name, add_constant(np.array([self._exponent], np.float32))])


class Constant(Block):
    def __init__(self, value_float: float) -> None:
        self._value = value_float

    def build(self) -> str:
        return add_constant(np.array([self._value], np.float32))


class Clip(Block):
    def __init__(self, clip_min: float | None = None, clip_max: float | None = None) -> None:
        self._limits = clip_min, clip_max

    def build(self, clip_input_name: str) -> str:
        limits = ["" if limit is None else add_constant(np.float32(limit)) for limit in self._limits]
        return add_node("Clip", [clip_input_name, *limits])


class Cast(Block):
    def __init__(self, to: int) -> None:
        self._to = to

    def build(self, cast_input_name: str) -> str:
        return add_node("Cast", [cast_input_name], to=self._to)


class PassThrough(Block):
    def build(self, *input_names: str) -> tuple[str, ...]:
        return input_names


class InputLike(Block):
    """An input of the model with the type and shape of a value."""

    def __init__(self, like: str) -> None:
        self._like = like

    def build(self, input_name: str | None = None) -> str:
        return add_input(input_name or current().make_name("input"), self._like).name


class Linear(Block):
    """With random weights and bias as initializers."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, alpha: float = 1.0, beta: float = 1.0) -> None:
        self._shape, self._bias, self._factors = (in_features, out_features), bias, {"alpha": alpha, "beta": beta}

    def build(self, linear_input_name: str) -> str:
        import onnx

        accessor, random = current(), np.random.default_rng()
        names = []
        for what, shape in (("linear.weight", self._shape), ("linear.bias", self._shape[1:]))[: 1 + self._bias]:
            names.append(accessor.make_name(what))
            values = random.standard_normal(shape).astype(np.float32)
            accessor.model.graph.initializer.append(onnx.numpy_helper.from_array(values, names[-1]))
        return add_node("Gemm", [linear_input_name, *names], **self._factors)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    refuse_name(f"onnxblock.blocks.{name}", f"there are {', '.join(__all__)}; a Block of one's own adds other nodes to self.base.graph")
