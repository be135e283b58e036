"""Attention.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch

from ortc.torch._symbolics.build import constant, like, sizes


def _attention(
    g: Any, query: Any, key: Any, value: Any, mask: Any, dropout: Any, causal: Any, scale: Any, grouped: Any
) -> Any:
    """torch.nn.functional.scaled_dot_product_attention, with groups of heads that share keys. A row whose keys are all
    hidden, by truth values or minus infinity, gives zeros, and so do its gradients."""
    from torch.onnx import symbolic_helper as helper

    own, shared = sizes(g, query, 0), sizes(g, key, 1)
    if helper._get_const(grouped, "b", "enable_gqa") and own[-3] != shared[-3]:
        heads, groups = own[-3], shared[-3]
        assert heads is not None and groups is not None, "numbers of heads are known"
        count = len(shared) - 3
        times = constant(g, [1] * (count + 1) + [heads // groups, 1, 1])

        def repeat(x: Any) -> Any:
            wide = g.op("Expand", g.op("Unsqueeze", x, constant(g, [count + 1])), times)
            last = sizes(g, x, 1 if x is key else 2)[-1]
            return g.op("Reshape", wide, constant(g, [0] * count + [heads, -1, last]))

        key, value = repeat(key), repeat(value)
    width = own[-1]
    assert width is not None, "the size of a head is known"
    factor = width**-0.5 if helper._is_none(scale) else helper._get_const(scale, "f", "scale")
    order = list(range(len(shared)))
    order[-2:] = reversed(order[-2:])
    scores = g.op("MatMul", g.op("Mul", query, like(g, query, float(factor))), g.op("Transpose", key, perm_i=order))
    visible = None
    if helper._get_const(causal, "b", "is_causal"):
        ones = g.op("Expand", constant(g, 1.0), constant(g, [own[-2], shared[-2]]))
        seen = g.op("Cast", g.op("Trilu", ones, upper_i=0), to_i=9)
        scores = g.op("Add", scores, g.op("Where", seen, like(g, query, 0.0), like(g, query, -torch.inf)))
    elif not helper._is_none(mask) and helper._is_bool(mask):
        scores = g.op("Add", scores, g.op("Where", mask, like(g, query, 0.0), like(g, query, -1e38)))
        most = g.op("ReduceMax", g.op("Cast", mask, to_i=1), constant(g, [-1]), keepdims_i=1)
        visible = g.op("Cast", most, to_i=9)
    elif not helper._is_none(mask):
        hidden = g.op("Cast", g.op("Equal", mask, like(g, mask, -torch.inf)), to_i=1)
        visible = g.op("Less", g.op("ReduceMin", hidden, constant(g, [-1]), keepdims_i=1), constant(g, 0.5))
        scores = g.op("Where", visible, g.op("Add", scores, mask), like(g, query, 0.0))
    weights = g.op("Softmax", scores, axis_i=-1)
    if visible is not None:
        weights = g.op("Where", visible, weights, like(g, query, 0.0))
    rate = float(helper._get_const(dropout, "f", "dropout_p"))
    if rate > 0:
        weights = g.op("Dropout", weights, constant(g, rate), constant(g, True))
    return g.op("MatMul", weights, value)


RULES: dict[str, Any] = {"scaled_dot_product_attention": _attention}
