"""Formulas of nodes, as arithmetic on values of a graph.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import torch

OPSET = 20
DOMAIN = "ai.ortc"
"""The domain of operators that only the compiler knows."""


def constant(g: Any, number: Any) -> Any:
    return g.op("Constant", value_t=torch.as_tensor(number))


def like(g: Any, x: Any, number: Any) -> Any:
    """A constant of the type of a tensor."""
    return g.op("Constant", value_t=torch.tensor(number, dtype=dtype_of(x)))


def dtype_of(x: Any) -> torch.dtype:
    from torch.onnx import JitScalarType

    return JitScalarType.from_value(x, JitScalarType.FLOAT).dtype()


def cast(g: Any, x: Any, dtype: torch.dtype) -> Any:
    from torch.onnx import JitScalarType

    return x if dtype_of(x) == dtype else g.op("Cast", x, to_i=JitScalarType.from_dtype(dtype).onnx_type())


def is_plain(x: Any) -> bool:
    """Whether a value is a number of Python, which is a constant tensor of no dimension here. Tensors have a type that says whether
    they have a gradient."""
    return x.node().kind() in ("onnx::Constant", "prim::Constant") and "requires_grad=" not in str(x)


def is_none(x: Any) -> bool:
    from torch.onnx import symbolic_helper as helper

    return x is None or bool(helper._is_none(x))


def numbers(x: Any) -> list[int]:
    """The value of a constant: one number, or a list of them."""
    from torch.onnx import symbolic_helper as helper

    one = helper._maybe_get_const(x, "t")
    return [int(each) for each in (one.reshape(-1) if isinstance(one, torch.Tensor) else helper._maybe_get_const(x, "is"))]


def number(x: Any, kind: str = "i", name: str = "argument") -> Any:
    """The number of a constant."""
    from torch.onnx import symbolic_helper as helper

    return helper._get_const(x, kind, name)


def rank(x: Any) -> int:
    from torch.onnx import symbolic_helper as helper

    return int(helper._get_tensor_rank(x))


def sizes(g: Any, x: Any, which: int) -> list[int | None]:
    """The sizes of an operand, the `which`-th of the operator. Where the exporter has lost them: as they were traced, except the first, which may
    be a batch."""
    from torch.onnx import symbolic_helper as helper

    found = helper._get_tensor_sizes(x)
    known = found is not None and all(each is not None for each in found)
    traced = list(g.original_node.inputs())[which].type() if not known and which < len(list(g.original_node.inputs())) else None
    if known or traced is None or not hasattr(traced, "sizes") or traced.sizes() is None:
        return found
    own = found if found is not None else [None] * len(traced.sizes())
    return [each if each is not None or not i else size for i, (each, size) in enumerate(zip(own, traced.sizes(), strict=True))]


def axis_of(x: Any, dim: Any) -> int:
    """A constant axis of a tensor, counted from the front."""
    return int(number(dim, "i", "dim")) % max(rank(x), 1)


def typed(result: Any, x: Any) -> Any:
    """A value of an operator that the exporter does not know, with the type of another one."""
    result.setType(x.type())
    return result


def promote(g: Any, *values: Any) -> tuple[Any, ...]:
    """Operands in the type that PyTorch computes in. Numbers of Python are float64 or int64 tensors of no dimension here."""
    examples = [_example(each) for each in values]
    wanted = functools.reduce(lambda first, second: torch.empty(0, dtype=torch.result_type(first, second)), examples)
    return tuple(cast(g, each, torch.result_type(wanted, wanted)) for each in values)


def _example(x: Any) -> Any:
    """As torch.result_type takes it: a number, or a tensor with dimensions or without."""
    dtype = dtype_of(x)
    return torch.zeros((), dtype=dtype).item() if is_plain(x) else torch.zeros([1] * bool(rank(x)), dtype=dtype)


@functools.cache
def load_exporter() -> None:
    """The exporter registers its rules when their files are loaded."""
    for opset in range(7, 21):
        importlib.import_module(f"torch.onnx.symbolic_opset{opset}")


def find_rule(name: str) -> Any:
    """The symbolic of an operator: ours, or the exporter's; None where there is none."""
    from torch.onnx._internal.torchscript_exporter import registration

    load_exporter()
    group = registration.registry.get_function_group(name)
    return None if group is None else group.get(OPSET)


class Number:
    """A value of a graph in a formula: operators of Python make nodes, and plain numbers have the type of the other operand."""

    def __init__(self, g: Any, value: Any) -> None:
        self.g = g
        self.value = value

    def op(self, name: str, *others: Any, **attributes: Any) -> Number:
        return Number(self.g, self.g.op(name, self.value, *(self._value(each) for each in others), **attributes))

    def _value(self, other: Any) -> Any:
        if isinstance(other, Number):
            return other.value
        return like(self.g, self.value, other) if isinstance(other, (bool, int, float)) else other

    def _reversed(self, name: str, other: Any) -> Number:
        return Number(self.g, self.g.op(name, self._value(other), self.value))

    def __add__(self, other: Any) -> Number:
        return self.op("Add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Number:
        return self.op("Sub", other)

    def __rsub__(self, other: Any) -> Number:
        return self._reversed("Sub", other)

    def __mul__(self, other: Any) -> Number:
        return self.op("Mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Number:
        return self.op("Div", other)

    def __rtruediv__(self, other: Any) -> Number:
        return self._reversed("Div", other)

    def __neg__(self) -> Number:
        return self.op("Neg")

    def __invert__(self) -> Number:
        return self.op("Not")

    def __and__(self, other: Any) -> Number:
        return self.op("And", other)

    def __or__(self, other: Any) -> Number:
        return self.op("Or", other)

    def __lt__(self, other: Any) -> Number:
        return self.op("Less", other)

    def __le__(self, other: Any) -> Number:
        return self.op("LessOrEqual", other)

    def __gt__(self, other: Any) -> Number:
        return self.op("Greater", other)

    def __ge__(self, other: Any) -> Number:
        return self.op("GreaterOrEqual", other)

    def equals(self, other: Any) -> Number:
        return self.op("Equal", other)

    def then(self, first: Any, second: Any) -> Number:
        """Where this condition holds `first`, elsewhere `second`, one of which is no plain number."""
        typed_one = first if isinstance(first, Number) else second
        assert isinstance(typed_one, Number)
        return Number(self.g, self.g.op("Where", self.value, typed_one._value(first), typed_one._value(second)))

    def count(self, like: Number) -> Number:
        """1 where this condition holds, elsewhere 0, in the type of a number."""
        return Number(self.g, cast(self.g, self.value, dtype_of(like.value)))

    def is_below_zero(self) -> Number:
        """True for the negative zero, too."""
        return self.equals(0.0).then(1.0 / self, self) < 0.0


def detach(g: Any, x: Any) -> Any:
    """A value through which no gradient goes."""
    return typed(g.op(f"{DOMAIN}::Detach", x), x)


def straight_through(g: Any, value: Any, x: Any) -> Any:
    """`value`, whose gradient goes to `x` as it is."""
    return typed(g.op(f"{DOMAIN}::StraightThrough", value, x), value)


def with_gradient(value: Number, *slopes: tuple[Number, Any]) -> Any:
    """A value of a function whose derivatives are given: pairs of an operand and the derivative for it. So a formula of the value
    may be any that is right, and the gradient is PyTorch's formula."""
    g, total = value.g, None
    for x, slope in slopes:
        factor = Number(g, detach(g, slope.value)) if isinstance(slope, Number) else slope
        part = x * factor
        total = part if total is None else total + part
    assert total is not None
    return straight_through(g, value.value, total.value)
