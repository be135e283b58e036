"""Products, copies in another type, and random numbers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

from ortc.torch._symbolics.build import Number, constant, is_none, number, numbers


def _addmv(g: Any, x: Any, matrix: Any, vector: Any, beta: Any, alpha: Any) -> Any:
    product = Number(g, g.op("MatMul", matrix, vector)) * float(number(alpha, "f", "alpha"))
    return (Number(g, x) * float(number(beta, "f", "beta")) + product).value


def _trilinear(g: Any, x: Any, y: Any, z: Any, *rest: Any) -> Any:
    """torch.nn.functional.bilinear: a product of three tensors with dimensions put in, summed over some."""
    factors = [
        Number(g, each if not numbers(axes) else g.op("Unsqueeze", each, constant(g, numbers(axes))))
        for each, axes in zip((x, y, z), rest, strict=False)
    ]
    product = factors[0] * factors[1] * factors[2]
    return g.op("ReduceSum", product.value, constant(g, numbers(rest[3])), keepdims_i=0)


def _to_copy(g: Any, x: Any, dtype: Any = None, *_: Any) -> Any:
    from torch.onnx import JitScalarType

    return x if is_none(dtype) else g.op("Cast", x, to_i=JitScalarType(number(dtype, "i", "dtype")).onnx_type())


def _copy(g: Any, x: Any, source: Any, *_: Any) -> Any:
    """What `x` is when others have been copied into it."""
    return g.op("Expand", g.op("CastLike", source, x), g.op("Shape", x))


def _ldexp(g: Any, x: Any, y: Any) -> Any:
    one = Number(g, x)
    return (one * Number(g, g.op("Pow", one._value(2.0), g.op("CastLike", y, x)))).value


def _exponential(g: Any, x: Any, rate: Any = None, generator: Any = None) -> Any:
    """torch.Tensor.exponential_: random numbers."""
    share = Number(g, g.op("RandomUniformLike", x))
    return ((1.0 - share).op("Log") * (-1.0 / (1.0 if is_none(rate) else float(number(rate, "f", "lambd"))))).value


RULES: dict[str, Any] = {"addmv": _addmv, "_trilinear": _trilinear, "_to_copy": _to_copy, "copy": _copy, "ldexp": _ldexp, "exponential": _exponential}
