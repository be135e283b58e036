"""Operators of PyTorch that its exporter to ONNX has no rule for.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch

from ortc._errors import CompileError

OPSET = 17


def _diff(g: Any, x: Any, n: Any, dim: Any, prepend: Any = None, append: Any = None) -> Any:
    """torch.diff: differences of neighbours along an axis, n times."""
    from torch.onnx import symbolic_helper as helper

    axis, times = helper._get_const(dim, "i", "dim"), helper._get_const(n, "i", "n")
    parts = [each for each in (prepend, x, append) if each is not None and not helper._is_none(each)]
    if len(parts) > 1:
        x = g.op("Concat", *parts, axis_i=axis)
    for _ in range(times):
        later = helper._slice_helper(g, x, axes=[axis], starts=[1], ends=[2**63 - 1])
        earlier = helper._slice_helper(g, x, axes=[axis], starts=[0], ends=[-1])
        x = g.op("Sub", later, earlier)
    return x


def _cumsum(g: Any, x: Any, dim: Any, dtype: Any = None) -> Any:
    """torch.cumsum: integers and truth values are summed as int64, which ONNX does not do by itself."""
    from torch.onnx import JitScalarType
    from torch.onnx import symbolic_helper as helper

    axis = g.op("Constant", value_t=torch.tensor(helper._get_const(dim, "i", "dim")))
    wanted = None if dtype is None or helper._is_none(dtype) else helper._get_const(dtype, "i", "dtype")
    if wanted is not None:
        x = g.op("Cast", x, to_i=JitScalarType(wanted).onnx_type())
    elif not helper._is_fp(x):
        x = g.op("Cast", x, to_i=JitScalarType.INT64.onnx_type())
    return g.op("CumSum", x, axis)


def _embedding(g: Any, weight: Any, indices: Any, padding: Any, by_frequency: Any, sparse: Any) -> Any:
    """torch.nn.functional.embedding, whose padding row ONNX cannot say."""
    from torch.onnx import symbolic_helper as helper

    if helper._get_const(padding, "i", "padding_idx") >= 0:
        raise CompileError("an embedding has a padding row and is no module, so that its gradient would not be left out")
    if helper._get_const(by_frequency, "i", "scale_grad_by_freq"):
        raise CompileError("an embedding has scale_grad_by_freq")
    return g.op("Gather", weight, indices)


def _wide(original: Any) -> Any:
    """Of an operator whose weights may be wider than its input: it computes as they are, and rounds to the input's type."""

    def export(g: Any, x: Any, *rest: Any) -> Any:
        from torch.onnx import JitScalarType

        given = JitScalarType.from_value(x, JitScalarType.FLOAT)
        if given not in (JitScalarType.BFLOAT16, JitScalarType.HALF):
            return original(g, x, *rest)
        result = original(g, g.op("Cast", x, to_i=JitScalarType.FLOAT.onnx_type()), *rest)
        return g.op("Cast", result, to_i=given.onnx_type())

    return export


def _rules() -> dict[str, Any]:
    from torch.onnx import symbolic_opset9, symbolic_opset17

    return {
        "embedding": _embedding,
        "diff": _diff,
        "cumsum": _cumsum,
        "layer_norm": _wide(symbolic_opset17.layer_norm),
        "group_norm": _wide(symbolic_opset9.group_norm),
    }


def register(has_padding: bool) -> None:
    """In the process that exports. `has_padding`: modules have padding rows, which are taken care of."""
    for name, rule in _rules().items():
        if name != "embedding" or not has_padding:
            torch.onnx.register_custom_op_symbolic(f"aten::{name}", rule, OPSET)


def unregister() -> None:
    """Takes back what register has done, in a process that goes on."""
    for name in _rules():
        torch.onnx.unregister_custom_op_symbolic(f"aten::{name}", OPSET)
