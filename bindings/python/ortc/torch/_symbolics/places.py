"""Elements and rows by their places.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ortc._errors import CompileError
from ortc.torch._symbolics.build import DOMAIN, Number, axis_of, constant, detach, is_none, like, number, numbers, rank, straight_through, typed


def _embedding(g: Any, weight: Any, indices: Any, padding: Any, by_frequency: Any, sparse: Any) -> Any:
    """torch.nn.functional.embedding: the padding row gives its numbers, and gets no gradient."""
    if number(by_frequency, "i", "scale_grad_by_freq"):
        raise CompileError("an embedding has scale_grad_by_freq")
    rows = g.op("Gather", weight, indices)
    row = number(padding, "i", "padding_idx")
    return rows if row < 0 else typed(g.op(f"{DOMAIN}::Embedding", weight, indices, padding_i=row), rows)


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


def _index_add(g: Any, x: Any, dim: Any, index: Any, source: Any, alpha: Any = None) -> Any:
    """torch.index_add, where numbers of rows may be there several times."""
    from torch.onnx import symbolic_helper as helper

    axis, sizes = helper._get_const(dim, "i", "dim"), helper._get_tensor_sizes(source)
    places = [1] * len(sizes)
    places[axis] = -1
    index = g.op("Expand", g.op("Reshape", index, constant(g, places)), constant(g, sizes))
    factor = 1 if alpha is None or helper._is_none(alpha) else helper._get_const(alpha, "f", "alpha")
    if factor != 1:
        source = g.op("Mul", source, constant(g, float(factor)))
    return g.op("ScatterElements", x, index, source, axis_i=axis, reduction_s="add")


def _take_along_dim(g: Any, x: Any, index: Any, dim: Any = None) -> Any:
    """torch.take_along_dim."""
    from torch.onnx import symbolic_helper as helper

    if dim is None or helper._is_none(dim):
        return g.op("GatherElements", g.op("Reshape", x, constant(g, [-1])), g.op("Reshape", index, constant(g, [-1])), axis_i=0)
    axis, sizes, places = helper._get_const(dim, "i", "dim"), helper._get_tensor_sizes(x), helper._get_tensor_sizes(index)
    wide = [max(a, b) for a, b in zip(sizes, places, strict=True)]

    def expand(value: Any, own: list[int]) -> Any:
        wanted = list(wide)
        wanted[axis] = own[axis]
        return value if wanted == own else g.op("Expand", value, constant(g, wanted))

    return g.op("GatherElements", expand(x, sizes), expand(index, places), axis_i=axis)


def _index_put(g: Any, x: Any, indices: Any, values: Any, accumulate: Any = None) -> Any:
    from torch.onnx import symbolic_helper as helper
    from torch.onnx import symbolic_opset11

    if accumulate is not None and helper._get_const(accumulate, "b", "accumulate"):
        raise CompileError("index_put with accumulate=True is not compiled; index_add and scatter_add are")
    return symbolic_opset11.index_put(g, x, indices, values, accumulate)


def _movedim(g: Any, x: Any, source: Any, destination: Any) -> Any:
    """torch.movedim."""
    from torch.onnx import symbolic_helper as helper

    rank = helper._get_tensor_rank(x)
    moved, places = ([each % rank for each in numbers(values)] for values in (source, destination))
    rest = iter(axis for axis in range(rank) if axis not in moved)
    return g.op("Transpose", x, perm_i=[moved[places.index(i)] if i in places else next(rest) for i in range(rank)])


def _triangle(make: Any) -> Any:
    """torch.tril_indices or torch.triu_indices: numbers of a graph of fixed shapes."""

    def symbolic(g: Any, row: Any, col: Any, offset: Any, *_: Any) -> Any:
        from torch.onnx import symbolic_helper as helper

        numbers = [helper._get_const(each, "i", "size") for each in (row, col, offset)]
        return g.op("Constant", value_t=make(*numbers))

    return symbolic


def _put(view: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """A tensor with other elements in the places of a view of it: the view of their numbers says where they are."""

    def symbolic(g: Any, x: Any, source: Any, *rest: Any) -> Any:
        from torch.onnx import symbolic_helper as helper

        sizes = helper._get_tensor_sizes(x)
        if any(each is None for each in sizes):
            raise CompileError("elements of a view are replaced for fixed sizes alone, and the batch is symbolic")
        plain = [None if is_none(each) else number(each, "i") for each in rest]
        where = view(torch.arange(math.prod(sizes)).reshape(sizes), *plain).reshape(-1)
        flat = constant(g, [-1])
        filled = g.op("ScatterElements", g.op("Reshape", x, flat), constant(g, where), g.op("Reshape", source, flat), axis_i=0)
        return g.op("Reshape", filled, constant(g, sizes))

    return symbolic


def _slice(x: torch.Tensor, dim: int, start: int | None, end: int | None, step: int) -> torch.Tensor:
    return torch.ops.aten.slice.Tensor(x, dim, start, end, step)  # type: ignore[no-any-return]


def _search(g: Any, edges: Any, x: Any, narrow: Any, right: Any, side: Any = None, *_: Any) -> Any:
    """torch.searchsorted: how many edges come before a number."""
    is_right = bool(number(right, "i", "right")) or not is_none(side) and number(side, "s", "side") == "right"
    edge, one = Number(g, edges), Number(g, x)
    if rank(edges) > 1:
        edge = edge.op("Unsqueeze", constant(g, [-2]))
    before = edge <= one.op("Unsqueeze", constant(g, [-1])) if is_right else edge < one.op("Unsqueeze", constant(g, [-1]))
    kind = 6 if number(narrow, "i", "out_int32") else 7
    return g.op("ReduceSum", g.op("Cast", before.value, to_i=kind), constant(g, [-1]), keepdims_i=0)


_NEUTRAL = {"sum": 0.0, "prod": 1.0, "mean": 0.0, "amax": -math.inf, "amin": math.inf}
_NAMES = {"sum": "add", "prod": "mul", "mean": "add", "amax": "max", "amin": "min"}


def _scatter_reduce(g: Any, x: Any, dim: Any, index: Any, source: Any, reduce: Any, include: Any) -> Any:
    """torch.scatter_reduce, means and those without the elements that were there, too."""
    from torch.onnx import symbolic_helper as helper

    kind, is_whole = number(reduce, "s", "reduce"), bool(number(include, "i", "include_self"))
    if kind not in _NAMES:
        raise CompileError(f"a scatter with reduce='{kind}' is not compiled")
    if rank(x) == 0:
        x, index, source = (g.op("Reshape", each, constant(g, [1])) for each in (x, index, source))
        return g.op("Reshape", _scatter_reduce(g, x, dim, index, source, reduce, include), constant(g, torch.zeros(0, dtype=torch.int64)))
    axis, sizes = axis_of(x, dim), helper._get_tensor_sizes(index)
    if helper._get_tensor_sizes(source) != sizes:  # what is beyond takes no part
        size = g.op("Shape", index)
        source = g.op("Slice", source, constant(g, [0] * rank(x)), size, constant(g, list(range(rank(x)))))

    def fill(like_one: Any, value: float) -> Any:
        return g.op("Expand", like(g, x, value), g.op("Shape", like_one))

    base = x if is_whole else g.op("ScatterElements", x, index, fill(index, _NEUTRAL[kind]), axis_i=axis)
    result = g.op("ScatterElements", base, index, source, axis_i=axis, reduction_s=_NAMES[kind])
    if kind in ("amax", "amin"):
        return _share_extreme(g, x, source, result, index, axis, is_whole)
    if kind != "mean":
        return result
    count = Number(g, g.op("ScatterElements", fill(x, float(is_whole)), index, fill(index, 1.0), axis_i=axis, reduction_s="add"))
    return (Number(g, result) / (count.equals(0.0)).then(1.0, count)).value


def _share_extreme(g: Any, x: Any, source: Any, result: Any, index: Any, axis: int, is_whole: bool) -> Any:
    """Largest or smallest elements, whose gradient all that are equal share: also with what was there, where that takes no part."""
    one, part, whole = Number(g, x), Number(g, source), Number(g, result)
    is_own = one.equals(whole).count(one)
    there = Number(g, g.op("GatherElements", result, index, axis_i=axis))
    is_hit = part.equals(there).count(part)
    count = g.op("ScatterElements", is_own.value, index, is_hit.value, axis_i=axis, reduction_s="add")
    share = is_hit / Number(g, g.op("GatherElements", count, index, axis_i=axis))
    own = is_own / Number(g, count).op("Max", like(g, x, 1.0))
    if not is_whole:
        nothing = g.op("Expand", like(g, x, 0.0), g.op("Shape", index))
        own = Number(g, g.op("ScatterElements", own.value, index, nothing, axis_i=axis))
    moved = part * Number(g, detach(g, share.value))
    total = g.op("ScatterElements", (one * Number(g, detach(g, own.value))).value, index, moved.value, axis_i=axis, reduction_s="add")
    return straight_through(g, result, total)


def _permute(g: Any, x: Any, dims: Any) -> Any:
    """torch.permute, whose axes may count from the end."""
    order = [each % rank(x) for each in numbers(dims)] if numbers(dims) else []
    return g.op("Transpose", x, perm_i=order) if order != sorted(order) else x


def _index_reduce(g: Any, x: Any, dim: Any, index: Any, source: Any, reduce: Any, include: Any) -> Any:
    """torch.index_reduce: the same by whole rows."""
    axis = axis_of(x, dim)
    places = [1] * rank(source)
    places[axis] = -1
    wide = g.op("Expand", g.op("Reshape", index, constant(g, places)), g.op("Shape", source))
    return _scatter_reduce(g, x, dim, wide, source, reduce, include)


def _unpool(dimensions: int) -> Callable[..., Any]:
    """torch.nn.functional.max_unpool2d or max_unpool3d: places are those of an image whose dimensions are one."""

    def symbolic(g: Any, x: Any, index: Any, size: Any, *_: Any) -> Any:
        from torch.onnx import symbolic_helper as helper

        lead, image = helper._get_tensor_sizes(x)[:-dimensions], numbers(size)
        flat = constant(g, [*lead, -1])
        zeros = g.op("Expand", like(g, x, 0.0), constant(g, [*lead, math.prod(image)]))
        filled = g.op("ScatterElements", zeros, g.op("Reshape", index, flat), g.op("Reshape", x, flat), axis_i=len(lead))
        return g.op("Reshape", filled, constant(g, [*lead, *image]))

    return symbolic


def _nearest_exact(dimensions: int) -> Callable[..., Any]:
    """torch.nn.functional.interpolate with mode nearest-exact: centres of pixels, halves upwards."""

    def symbolic(g: Any, x: Any, size: Any, *_: Any) -> Any:
        from torch.onnx import symbolic_helper as helper

        whole = constant(g, [*helper._get_tensor_sizes(x)[:-dimensions], *numbers(size)])
        nothing = g.op("Constant", value_t=torch.zeros(0))
        kinds = {"coordinate_transformation_mode_s": "half_pixel", "mode_s": "nearest", "nearest_mode_s": "round_prefer_ceil"}
        return g.op("Resize", x, nothing, nothing, whole, **kinds)

    return symbolic


RULES: dict[str, Any] = {
    "embedding": _embedding,
    "diff": _diff,
    "index_add": _index_add,
    "take_along_dim": _take_along_dim,
    "index_put": _index_put,
    "movedim": _movedim,
    "permute": _permute,
    "tril_indices": _triangle(torch.tril_indices),
    "triu_indices": _triangle(torch.triu_indices),
    "scatter_reduce": _scatter_reduce,
    "index_reduce": _index_reduce,
    "select_scatter": _put(torch.select),
    "slice_scatter": _put(_slice),
    "diagonal_scatter": _put(torch.diagonal),
    "searchsorted": _search,
    "max_unpool2d": _unpool(2),
    "max_unpool3d": _unpool(3),
    "_upsample_nearest_exact1d": _nearest_exact(1),
    "_upsample_nearest_exact2d": _nearest_exact(2),
    "_upsample_nearest_exact3d": _nearest_exact(3),
}
