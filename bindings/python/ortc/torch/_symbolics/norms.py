"""Normalisations.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch

from ortc.torch._symbolics.build import constant, is_none, like, number, rank


def _rms_norm(g: Any, x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """torch.nn.functional.rms_norm."""
    from torch.onnx import symbolic_helper as helper

    axes = list(range(-len(helper._get_const(shape, "is", "normalized_shape")), 0))
    least = torch.finfo(torch.float32).eps if eps is None or helper._is_none(eps) else helper._get_const(eps, "f", "eps")
    mean = g.op("ReduceMean", g.op("Mul", x, x), constant(g, axes), keepdims_i=1)
    x = g.op("Div", x, g.op("Sqrt", g.op("Add", mean, constant(g, float(least)))))
    return x if weight is None or helper._is_none(weight) else g.op("Mul", x, weight)


def _wide(original: Any) -> Any:
    """The result of an operator whose weights may be wider than its input: it computes as they are, and rounds to the input's type."""

    def export(g: Any, x: Any, *rest: Any) -> Any:
        from torch.onnx import JitScalarType

        given = JitScalarType.from_value(x, JitScalarType.FLOAT)
        if given not in (JitScalarType.BFLOAT16, JitScalarType.HALF):
            return original(g, x, *rest)
        result = original(g, g.op("Cast", x, to_i=JitScalarType.FLOAT.onnx_type()), *rest)
        return g.op("Cast", result, to_i=given.onnx_type())

    return export


def _batch_norm(
    g: Any, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: Any, momentum: Any, eps: Any, cudnn: Any
) -> Any:
    """torch.nn.functional.batch_norm. Without running statistics it is its formula: the operator would have some to update."""
    from torch.onnx import symbolic_opset14

    if not is_none(mean) or not number(training, "i", "training"):
        return symbolic_opset14.batch_norm(g, x, weight, bias, mean, variance, training, momentum, eps, cudnn)
    axes = constant(g, [i for i in range(rank(x)) if i != 1])
    x = g.op("Sub", x, g.op("ReduceMean", x, axes, keepdims_i=1))
    least = like(g, x, float(number(eps, "f", "eps")))
    x = g.op("Div", x, g.op("Sqrt", g.op("Add", g.op("ReduceMean", g.op("Mul", x, x), axes, keepdims_i=1), least)))
    for name, each in (("Mul", weight), ("Add", bias)):
        if not is_none(each):
            x = g.op(name, x, g.op("Reshape", each, constant(g, [-1, *[1] * (rank(x) - 2)])))
    return x


def _rules() -> dict[str, Any]:
    from torch.onnx import symbolic_opset9, symbolic_opset17

    return {
        "rms_norm": _wide(_rms_norm),
        "layer_norm": _wide(symbolic_opset17.layer_norm),
        "group_norm": _wide(symbolic_opset9.group_norm),
        "batch_norm": _batch_norm,
    }


RULES = _rules()
