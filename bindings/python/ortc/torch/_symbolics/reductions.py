"""Reductions, orders, and sums along an axis.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ortc._errors import CompileError
from ortc.torch._symbolics.build import Number, axis_of, constant, detach, find_rule, is_none, like, number, numbers, promote, rank, straight_through

_MOST_OF_AXIS = 1024
"""Elements along an axis of which every prefix is computed by itself."""


def _cumsum(g: Any, x: Any, dim: Any, dtype: Any = None) -> Any:
    """torch.cumsum: integers and truth values are summed as int64, which ONNX does not do by itself."""
    from torch.onnx import JitScalarType
    from torch.onnx import symbolic_helper as helper

    axis = constant(g, helper._get_const(dim, "i", "dim"))
    wanted = None if dtype is None or helper._is_none(dtype) else helper._get_const(dtype, "i", "dtype")
    if wanted is not None:
        x = g.op("Cast", x, to_i=JitScalarType(wanted).onnx_type())
    elif not helper._is_fp(x):
        x = g.op("Cast", x, to_i=JitScalarType.INT64.onnx_type())
    return g.op("CumSum", x, axis)


def _deviation(g: Any, variance: Any) -> Any:
    """Its root, which has no gradient at zero, as PyTorch has it of a standard deviation."""
    zero = g.op("Equal", variance, like(g, variance, 0))
    root = g.op("Sqrt", g.op("Where", zero, like(g, variance, 1), variance))
    return g.op("Where", zero, like(g, variance, 0), root)


def _std(g: Any, x: Any, *rest: Any) -> Any:
    """torch.std."""
    from torch.onnx import symbolic_opset9

    return _deviation(g, symbolic_opset9.var_mean(g, x, *rest)[0])


def _std_mean(g: Any, x: Any, *rest: Any) -> Any:
    """torch.std_mean."""
    from torch.onnx import symbolic_opset9

    variance, mean = symbolic_opset9.var_mean(g, x, *rest)
    return _deviation(g, variance), mean


def _pick(g: Any, x: Any, places: Any, axis: int, keep: bool) -> tuple[Any, Any]:
    """Elements at places that have their axis, and those places."""
    values = g.op("GatherElements", x, places, axis_i=axis)
    if keep:
        return values, places
    return tuple(g.op("Squeeze", each, constant(g, [axis])) for each in (values, places))  # type: ignore[return-value]


def _best(name: str) -> Callable[..., Any]:
    """torch.max or torch.min: of all, of two tensors, or along an axis, where the first of equal elements has the gradient."""

    def symbolic(g: Any, x: Any, dim: Any = None, keep: Any = None) -> Any:
        from torch.onnx import symbolic_opset9

        if is_none(dim):
            return g.op(f"Reduce{name}", x, keepdims_i=0)
        if is_none(keep):
            from ortc.torch._symbolics.elementwise import RULES as of_elements

            return of_elements["maximum" if name == "Max" else "minimum"](g, x, dim)
        if rank(x) == 0:
            return x, symbolic_opset9.zeros_like(g, x, 4)
        axis = axis_of(x, dim)
        return _pick(g, x, g.op(f"Arg{name}", x, axis_i=axis, keepdims_i=1), axis, bool(number(keep, "i", "keepdim")))

    return symbolic


def _size(x: Any, axis: int, name: str) -> int:
    from torch.onnx import symbolic_helper as helper

    sizes = helper._get_tensor_sizes(x)
    if sizes is None or sizes[axis] is None:
        raise CompileError(f"{name} is exported for fixed sizes alone, and the batch is symbolic")
    return int(sizes[axis])


def _order(g: Any, x: Any, axis: int, count: Any, is_descending: bool) -> tuple[Any, Any]:
    values, places = g.op("TopK", x, count, axis_i=axis, largest_i=int(is_descending), outputs=2)
    return values, places


def _sort(g: Any, x: Any, *rest: Any) -> tuple[Any, Any]:
    """torch.sort. Equal elements stay in their order, which PyTorch says of stable=True and does on processors."""
    dim, descending = rest[-2:]  # after `stable`, if that is given
    if rank(x) == 0:
        return x, constant(g, 0)
    axis = axis_of(x, dim)
    size = g.op("Gather", g.op("Shape", x), constant(g, [axis]))
    return _order(g, x, axis, size, bool(number(descending, "i", "descending")))


def _argsort(g: Any, x: Any, *rest: Any) -> Any:
    return _sort(g, x, *rest)[1]


def _kth(g: Any, x: Any, k: Any, dim: Any, keep: Any) -> Any:
    """torch.kthvalue. Among equal elements PyTorch picks any, and the one of a stable order is picked here."""
    axis, which = axis_of(x, dim), number(k, "i", "k")
    _, places = _order(g, x, axis, constant(g, [which]), False)
    place = g.op("Slice", places, constant(g, [which - 1]), constant(g, [which]), constant(g, [axis]))
    return _pick(g, x, place, axis, bool(number(keep, "i", "keepdim")))


def _median(g: Any, x: Any, dim: Any = None, keep: Any = None) -> Any:
    """torch.median: the lower one of two. NaN wins."""
    is_whole = is_none(dim)
    if is_whole:
        x, axis = g.op("Reshape", x, constant(g, [-1])), 0
    else:
        axis = axis_of(x, dim)
    which = (_size(x, axis, "median") - 1) // 2
    _, places = _order(g, x, axis, constant(g, [which + 1]), False)
    place = g.op("Slice", places, constant(g, [which]), constant(g, [which + 1]), constant(g, [axis]))
    found = _pick(g, x, place, axis, not is_whole and bool(number(keep, "i", "keepdim")))
    if not is_whole:
        return found
    one = Number(g, x)  # all that are equal share the gradient
    hits = one.equals(Number(g, found[0])).count(one)
    share = hits / hits.op("ReduceSum", keepdims_i=0)
    return straight_through(g, found[0], (one * Number(g, detach(g, share.value))).op("ReduceSum", keepdims_i=0).value)


def _prefixes(g: Any, x: Any, axis: int, rest: float, name: str) -> tuple[Any, int]:
    """A tensor with one more dimension, after `axis`: what comes up to each place, and `rest` beyond it; and its axis."""
    count = _size(x, axis, name)
    if count > _MOST_OF_AXIS:
        raise CompileError(f"{name} of {count} elements is not compiled; at most {_MOST_OF_AXIS} are")
    seen = torch.ones(count, count).tril().bool().reshape([count, count, *[1] * (rank(x) - axis - 1)])
    wide = g.op("Unsqueeze", x, constant(g, [axis]))
    return g.op("Where", constant(g, seen), wide, like(g, x, rest)), axis + 1


def _cumulative(name: str, reduction: str, rest: float) -> Callable[..., Any]:
    """Sums and products of prefixes that ONNX has no operator for."""

    def symbolic(g: Any, x: Any, dim: Any, dtype: Any = None) -> Any:
        from torch.onnx import JitScalarType

        if not is_none(dtype):
            x = g.op("Cast", x, to_i=JitScalarType(number(dtype, "i", "dtype")).onnx_type())
        if rank(x) == 0:
            return x
        wide, axis = _prefixes(g, x, axis_of(x, dim), rest, name)
        return g.op(reduction, wide, constant(g, [axis]), keepdims_i=0)

    return symbolic


def _running(name: str, reduction: str, rest: float) -> Callable[..., Any]:
    """torch.cummax or torch.cummin, where the last one of equal elements has the gradient."""

    def symbolic(g: Any, x: Any, dim: Any) -> Any:
        axis = axis_of(x, dim)
        wide, inner = _prefixes(g, x, axis, rest, name)
        places = g.op(reduction, wide, axis_i=inner, keepdims_i=0, select_last_index_i=1)
        return _pick(g, x, places, axis, True)

    return symbolic


def _nansum(g: Any, x: Any, dim: Any, keep: Any, dtype: Any = None) -> Any:
    from torch.onnx import JitScalarType

    if not is_none(dtype):
        x = g.op("Cast", x, to_i=JitScalarType(number(dtype, "i", "dtype")).onnx_type())
    one = Number(g, x)
    there = one.op("IsNaN").then(0.0, one).value
    if is_none(dim) or not numbers(dim):
        return g.op("ReduceSum", there, keepdims_i=int(number(keep, "i", "keepdim")))
    return g.op("ReduceSum", there, constant(g, numbers(dim)), keepdims_i=int(number(keep, "i", "keepdim")))


def _count_nonzero(g: Any, x: Any, dim: Any = None) -> Any:
    one = Number(g, x)
    hits = g.op("Cast", (~one.equals(0)).value, to_i=7)
    return g.op("ReduceSum", hits, *([] if is_none(dim) else [constant(g, numbers(dim))]), keepdims_i=0)


def _length(g: Any, x: Any, axis: int, power: float, keep: bool) -> Any:
    rule = find_rule("aten::linalg_vector_norm")
    return rule(g, x, constant(g, torch.tensor(power, dtype=torch.float64)), constant(g, [axis]), constant(g, keep), None)


def _pairwise_distance(g: Any, x: Any, y: Any, p: Any, eps: Any, keep: Any) -> Any:
    """torch.nn.functional.pairwise_distance: norms of differences that have `eps` added."""
    gap = Number(g, x) - Number(g, y) + float(number(eps, "f", "eps"))
    return _length(g, gap.value, -1, float(number(p, "f", "p")), bool(number(keep, "i", "keepdim")))


def _cosine_similarity(g: Any, x: Any, y: Any, dim: Any, eps: Any) -> Any:
    """torch.nn.functional.cosine_similarity: products of vectors whose lengths are `eps` at least, which their gradient does not see."""
    axis, least = int(number(dim, "i", "dim")), float(number(eps, "f", "eps"))
    x, y = promote(g, x, y)
    shared = []
    for each in (x, y):
        length = _length(g, each, axis, 2.0, True)
        bounded = g.op("Max", detach(g, length), like(g, x, least))
        shared.append(Number(g, each) / Number(g, straight_through(g, bounded, length)))
    return (shared[0] * shared[1]).op("ReduceSum", constant(g, [axis]), keepdims_i=0).value


def _dist(g: Any, x: Any, y: Any, p: Any) -> Any:
    gap = g.op("Reshape", g.op("Sub", x, y), constant(g, [-1]))
    return _length(g, gap, 0, float(number(p, "f", "p")), False)


def _cdist(g: Any, x: Any, y: Any, p: Any, *_: Any) -> Any:
    """torch.cdist: norms of all differences, whose gradient at zero is zero."""
    power = _finite(number(p, "f", "p"), "cdist")
    gap = g.op("Sub", g.op("Unsqueeze", x, constant(g, [-2])), g.op("Unsqueeze", y, constant(g, [-3])))
    return _length(g, gap, -1, power, False)


def _pdist(g: Any, x: Any, p: Any) -> Any:
    power, count = _finite(number(p, "f", "p"), "pdist"), _size(x, 0, "pdist")
    first, second = torch.triu_indices(count, count, 1)
    gap = g.op("Sub", g.op("Gather", x, constant(g, first)), g.op("Gather", x, constant(g, second)))
    return _length(g, gap, -1, power, False)


def _finite(power: float, name: str) -> float:
    if not 0 < power < torch.inf:
        raise CompileError(f"{name} with p={power:g} is not compiled; finite ones above 0 are")
    return float(power)


RULES: dict[str, Any] = {
    "cumsum": _cumsum,
    "cumprod": _cumulative("cumprod", "ReduceProd", 1.0),
    "logcumsumexp": _cumulative("logcumsumexp", "ReduceLogSumExp", -torch.inf),
    "cummax": _running("cummax", "ArgMax", -torch.inf),
    "cummin": _running("cummin", "ArgMin", torch.inf),
    "std": _std,
    "std_mean": _std_mean,
    "max": _best("Max"),
    "min": _best("Min"),
    "sort": _sort,
    "argsort": _argsort,
    "kthvalue": _kth,
    "median": _median,
    "nansum": _nansum,
    "count_nonzero": _count_nonzero,
    "pairwise_distance": _pairwise_distance,
    "cosine_similarity": _cosine_similarity,
    "dist": _dist,
    "cdist": _cdist,
    "_pdist_forward": _pdist,
}
