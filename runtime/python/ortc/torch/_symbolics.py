"""Operators of PyTorch that its exporter to ONNX has no rule for.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from ortc._errors import CompileError

OPSET = 20


def _constant(g: Any, number: Any) -> Any:
    return g.op("Constant", value_t=torch.tensor(number))


def _like(g: Any, x: Any, number: Any) -> Any:
    """Of the type of a tensor."""
    from torch.onnx import JitScalarType

    return g.op("Constant", value_t=torch.tensor(number, dtype=JitScalarType.from_value(x, JitScalarType.FLOAT).dtype()))


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

    axis = _constant(g, helper._get_const(dim, "i", "dim"))
    wanted = None if dtype is None or helper._is_none(dtype) else helper._get_const(dtype, "i", "dtype")
    if wanted is not None:
        x = g.op("Cast", x, to_i=JitScalarType(wanted).onnx_type())
    elif not helper._is_fp(x):
        x = g.op("Cast", x, to_i=JitScalarType.INT64.onnx_type())
    return g.op("CumSum", x, axis)


def _detach(g: Any, x: Any) -> Any:
    """torch.detach: numbers without their gradient, of operators that have none.

    From where on numbers are whole, Floor gives them as they are; of others it leaves out what is below a scale.
    """
    from torch.onnx import JitScalarType
    from torch.onnx import symbolic_helper as helper

    if not helper._is_fp(x):
        return x
    kind = JitScalarType.from_value(x, JitScalarType.FLOAT)
    if kind == JitScalarType.HALF:  # whose largest number is small
        return g.op("Cast", _detach(g, g.op("Cast", x, to_i=JitScalarType.FLOAT.onnx_type())), to_i=kind.onnx_type())
    whole, scale = (2.0**53, 2.0**900) if kind == JitScalarType.DOUBLE else (2.0**24, 2.0**100)
    fine = g.op("Mul", g.op("Floor", g.op("Mul", x, _like(g, x, scale))), _like(g, x, 1 / scale))
    return g.op("Where", g.op("GreaterOrEqual", g.op("Abs", x), _like(g, x, whole)), g.op("Floor", x), fine)


def _embedding(g: Any, weight: Any, indices: Any, padding: Any, by_frequency: Any, sparse: Any) -> Any:
    """torch.nn.functional.embedding: the padding row gives its numbers, and gets no gradient."""
    from torch.onnx import symbolic_helper as helper

    if helper._get_const(by_frequency, "i", "scale_grad_by_freq"):
        raise CompileError("an embedding has scale_grad_by_freq")
    rows = g.op("Gather", weight, indices)
    row = helper._get_const(padding, "i", "padding_idx")
    if row < 0:
        return rows
    is_padding = g.op("Equal", g.op("Unsqueeze", indices, _constant(g, [-1])), _constant(g, row))
    return g.op("Where", is_padding, _detach(g, rows), rows)


def _attention(
    g: Any, query: Any, key: Any, value: Any, mask: Any, dropout: Any, causal: Any, scale: Any, grouped: Any
) -> Any:
    """torch.nn.functional.scaled_dot_product_attention, with groups of heads that share keys. A row whose keys are all
    hidden, by truth values or minus infinity, gives zeros, and so do its gradients."""
    from torch.onnx import symbolic_helper as helper

    constant = functools.partial(_constant, g)
    sizes, shared = helper._get_tensor_sizes(query), helper._get_tensor_sizes(key)
    if helper._get_const(grouped, "b", "enable_gqa") and sizes[-3] != shared[-3]:
        lead = shared[:-2]
        for_each = [*lead, sizes[-3] // shared[-3]]

        def repeat(x: Any) -> Any:
            own = helper._get_tensor_sizes(x)[-2:]
            wide = g.op("Expand", g.op("Unsqueeze", x, constant([len(lead)])), constant([*for_each, *own]))
            return g.op("Reshape", wide, constant([*lead[:-1], sizes[-3], *own]))

        key, value = repeat(key), repeat(value)
    factor = sizes[-1] ** -0.5 if helper._is_none(scale) else helper._get_const(scale, "f", "scale")
    order = list(range(len(shared)))
    order[-2:] = reversed(order[-2:])
    scores = g.op("MatMul", g.op("Mul", query, _like(g, query, float(factor))), g.op("Transpose", key, perm_i=order))
    visible = None
    if helper._get_const(causal, "b", "is_causal"):
        ones = g.op("Expand", constant(1.0), constant([sizes[-2], shared[-2]]))
        seen = g.op("Cast", g.op("Trilu", ones, upper_i=0), to_i=9)
        scores = g.op("Add", scores, g.op("Where", seen, _like(g, query, 0.0), _like(g, query, -torch.inf)))
    elif not helper._is_none(mask) and helper._is_bool(mask):
        scores = g.op("Add", scores, g.op("Where", mask, _like(g, query, 0.0), _like(g, query, -1e38)))
        most = g.op("ReduceMax", g.op("Cast", mask, to_i=1), constant([-1]), keepdims_i=1)
        visible = g.op("Cast", most, to_i=9)
    elif not helper._is_none(mask):
        hidden = g.op("Cast", g.op("Equal", mask, _like(g, mask, -torch.inf)), to_i=1)
        visible = g.op("Less", g.op("ReduceMin", hidden, constant([-1]), keepdims_i=1), constant(0.5))
        scores = g.op("Where", visible, g.op("Add", scores, mask), _like(g, query, 0.0))
    weights = g.op("Softmax", scores, axis_i=-1)
    if visible is not None:
        weights = g.op("Where", visible, weights, _like(g, query, 0.0))
    rate = float(helper._get_const(dropout, "f", "dropout_p"))
    if rate > 0:
        weights = g.op("Dropout", weights, constant(rate), constant(True))
    return g.op("MatMul", weights, value)


def _index_add(g: Any, x: Any, dim: Any, index: Any, source: Any, alpha: Any = None) -> Any:
    """torch.index_add, where numbers of rows may be there several times."""
    from torch.onnx import symbolic_helper as helper

    axis, sizes = helper._get_const(dim, "i", "dim"), helper._get_tensor_sizes(source)
    places = [1] * len(sizes)
    places[axis] = -1
    constant = functools.partial(_constant, g)
    index = g.op("Expand", g.op("Reshape", index, constant(places)), constant(sizes))
    factor = 1 if alpha is None or helper._is_none(alpha) else helper._get_const(alpha, "f", "alpha")
    if factor != 1:
        source = g.op("Mul", source, constant(float(factor)))
    return g.op("ScatterElements", x, index, source, axis_i=axis, reduction_s="add")


def _reduce(g: Any, x: Any, reduction: Any) -> Any:
    from torch.onnx import symbolic_helper as helper

    kind = helper._get_const(reduction, "i", "reduction")
    return x if kind == 0 else g.op("ReduceMean" if kind == 1 else "ReduceSum", x, keepdims_i=0)


def _smooth(g: Any, x: Any, y: Any, reduction: Any, width: Any, by: Any) -> Any:
    """A square up to `width`, from there on a line; `by`: what both are divided by."""
    constant = functools.partial(_constant, g)
    far = g.op("Abs", g.op("Sub", x, y))
    square = g.op("Mul", g.op("Mul", far, far), constant(0.5 / by))
    line = g.op("Mul", g.op("Sub", far, constant(width / 2)), constant(width / by))
    return _reduce(g, g.op("Where", g.op("Less", far, constant(width)), square, line), reduction)


def _smooth_l1(g: Any, x: Any, y: Any, reduction: Any, beta: Any) -> Any:
    """torch.nn.functional.smooth_l1_loss."""
    from torch.onnx import symbolic_helper as helper

    width = helper._get_const(beta, "f", "beta")
    if width == 0:
        return _reduce(g, g.op("Abs", g.op("Sub", x, y)), reduction)
    return _smooth(g, x, y, reduction, width, width)


def _huber(g: Any, x: Any, y: Any, reduction: Any, delta: Any) -> Any:
    """torch.nn.functional.huber_loss."""
    from torch.onnx import symbolic_helper as helper

    return _smooth(g, x, y, reduction, helper._get_const(delta, "f", "delta"), 1.0)


def _softplus(g: Any, x: Any, beta: Any, threshold: Any) -> Any:
    """torch.nn.functional.softplus: the input itself where it is beyond the threshold, which the float32 after 17 is anyway."""
    from torch.onnx import symbolic_helper as helper

    factor, most = helper._get_const(beta, "f", "beta"), helper._get_const(threshold, "f", "threshold")
    scaled = g.op("Mul", x, _like(g, x, factor))
    smooth = g.op("Mul", g.op("Softplus", scaled), _like(g, x, 1 / factor))
    return smooth if most >= 17 else g.op("Where", g.op("Greater", scaled, _like(g, x, most)), x, smooth)


def _deviation(g: Any, variance: Any) -> Any:
    """Its root, which has no gradient at zero, as PyTorch has it of a standard deviation."""
    zero = g.op("Equal", variance, _like(g, variance, 0))
    root = g.op("Sqrt", g.op("Where", zero, _like(g, variance, 1), variance))
    return g.op("Where", zero, _like(g, variance, 0), root)


def _std(g: Any, x: Any, *rest: Any) -> Any:
    """torch.std."""
    from torch.onnx import symbolic_opset9

    return _deviation(g, symbolic_opset9.var_mean(g, x, *rest)[0])


def _std_mean(g: Any, x: Any, *rest: Any) -> Any:
    """torch.std_mean."""
    from torch.onnx import symbolic_opset9

    variance, mean = symbolic_opset9.var_mean(g, x, *rest)
    return _deviation(g, variance), mean


def _cosine_similarity(g: Any, x: Any, y: Any, dim: Any, eps: Any) -> Any:
    """torch.nn.functional.cosine_similarity: products of vectors whose lengths are `eps` at least."""
    from torch.onnx import symbolic_helper as helper

    axis, least = _constant(g, [helper._get_const(dim, "i", "dim")]), helper._get_const(eps, "f", "eps")
    x, y = (
        g.op("Div", each, g.op("Max", g.op("ReduceL2", each, axis, keepdims_i=1), _like(g, each, least))) for each in (x, y)
    )
    return g.op("ReduceSum", g.op("Mul", x, y), axis, keepdims_i=0)


def _rms_norm(g: Any, x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """torch.nn.functional.rms_norm."""
    from torch.onnx import symbolic_helper as helper

    axes = list(range(-len(helper._get_const(shape, "is", "normalized_shape")), 0))
    least = torch.finfo(torch.float32).eps if eps is None or helper._is_none(eps) else helper._get_const(eps, "f", "eps")
    mean = g.op("ReduceMean", g.op("Mul", x, x), _constant(g, axes), keepdims_i=1)
    x = g.op("Div", x, g.op("Sqrt", g.op("Add", mean, _constant(g, float(least)))))
    return x if weight is None or helper._is_none(weight) else g.op("Mul", x, weight)


def _take_along_dim(g: Any, x: Any, index: Any, dim: Any = None) -> Any:
    """torch.take_along_dim."""
    from torch.onnx import symbolic_helper as helper

    if dim is None or helper._is_none(dim):
        return g.op("GatherElements", g.op("Reshape", x, _constant(g, [-1])), g.op("Reshape", index, _constant(g, [-1])), axis_i=0)
    axis, sizes, places = helper._get_const(dim, "i", "dim"), helper._get_tensor_sizes(x), helper._get_tensor_sizes(index)
    wide = [max(a, b) for a, b in zip(sizes, places, strict=True)]

    def expand(value: Any, own: list[int]) -> Any:
        wanted = list(wide)
        wanted[axis] = own[axis]
        return value if wanted == own else g.op("Expand", value, _constant(g, wanted))

    return g.op("GatherElements", expand(x, sizes), expand(index, places), axis_i=axis)


def _cross_entropy(g: Any, x: Any, target: Any, weight: Any, reduction: Any, ignored: Any, smoothing: Any) -> Any:
    """torch.nn.functional.cross_entropy, with targets that are probabilities, and smoothed ones."""
    from torch.onnx import symbolic_helper as helper

    constant = functools.partial(_constant, g)
    sizes, share = helper._get_tensor_sizes(x), float(helper._get_const(smoothing, "f", "label_smoothing"))
    kind, skip = helper._get_const(reduction, "i", "reduction"), helper._get_const(ignored, "i", "ignore_index")
    axis = 1 if len(sizes) > 1 else 0
    weights = [] if helper._is_none(weight) else [weight]
    soft = helper._is_fp(target)
    if not soft and not share:
        name = ("none", "mean", "sum")[kind]
        return g.op("SoftmaxCrossEntropyLoss", x, target, *weights, reduction_s=name, ignore_index_i=skip)
    logs = g.op("LogSoftmax", x, axis_i=axis)
    if weights:
        logs = g.op("Mul", logs, g.op("Reshape", weight, constant([-1, *[1] * (len(sizes) - axis - 1)])))
    spread = g.op("Mul", g.op("ReduceSum", logs, constant([axis]), keepdims_i=0), constant(-share / sizes[axis]))
    if soft:
        loss = g.op("Neg", g.op("ReduceSum", g.op("Mul", logs, target), constant([axis]), keepdims_i=0))
        count = constant(float(sizes[0] * torch.Size(sizes[2:]).numel() if axis else 1))
        loss = g.op("Add", g.op("Mul", loss, constant(1.0 - share)), spread)
    else:
        counts = g.op("Not", g.op("Equal", target, constant(skip)))
        place = g.op("Where", counts, target, constant(0))
        hit = g.op("GatherElements", logs, g.op("Unsqueeze", place, constant([axis])), axis_i=axis)
        loss = g.op("Neg", g.op("Squeeze", hit, constant([axis])))
        loss = g.op("Add", g.op("Mul", loss, constant(1.0 - share)), spread)
        loss = g.op("Where", counts, loss, constant(0.0))
        each = g.op("Gather", weight, place) if weights else constant(1.0)
        count = g.op("ReduceSum", g.op("Where", counts, each, constant(0.0)), keepdims_i=0)
    if kind == 0:
        return loss
    total = g.op("ReduceSum", loss, keepdims_i=0)
    return g.op("Div", total, count) if kind == 1 else total


def _log_sigmoid(g: Any, x: Any) -> Any:
    """torch.nn.functional.logsigmoid, whose numbers do not end where those of the sigmoid do."""
    return g.op("Neg", g.op("Softplus", g.op("Neg", x)))


def _bce_with_logits(g: Any, x: Any, y: Any, weight: Any, positive: Any, reduction: Any) -> Any:
    """torch.nn.functional.binary_cross_entropy_with_logits, in the same way."""
    from torch.onnx import symbolic_helper as helper

    one = _like(g, x, 1.0)
    loss = g.op("Softplus", g.op("Neg", x))
    if not helper._is_none(positive):
        loss = g.op("Mul", g.op("Add", one, g.op("Mul", g.op("Sub", positive, one), y)), loss)
    loss = g.op("Add", g.op("Mul", g.op("Sub", one, y), x), loss)
    return _reduce(g, loss if helper._is_none(weight) else g.op("Mul", loss, weight), reduction)


def _index_put(g: Any, x: Any, indices: Any, values: Any, accumulate: Any = None) -> Any:
    from torch.onnx import symbolic_helper as helper
    from torch.onnx import symbolic_opset11

    if accumulate is not None and helper._get_const(accumulate, "b", "accumulate"):
        raise CompileError("index_put with accumulate=True is not compiled; index_add and scatter_add are")
    return symbolic_opset11.index_put(g, x, indices, values, accumulate)


def _floor_divide(g: Any, x: Any, y: Any) -> Any:
    """torch.floor_divide, which the exporter takes for a division towards zero."""
    from torch.onnx import symbolic_opset9

    return symbolic_opset9.div(g, x, y, "floor")


def _movedim(g: Any, x: Any, source: Any, destination: Any) -> Any:
    """torch.movedim."""
    from torch.onnx import symbolic_helper as helper

    rank = helper._get_tensor_rank(x)
    moved, places = ([each % rank for each in _whole_numbers(helper, values)] for values in (source, destination))
    rest = iter(axis for axis in range(rank) if axis not in moved)
    return g.op("Transpose", x, perm_i=[moved[places.index(i)] if i in places else next(rest) for i in range(rank)])


def _whole_numbers(helper: Any, values: Any) -> list[int]:
    one = helper._maybe_get_const(values, "t")
    return [int(each) for each in (one.reshape(-1) if isinstance(one, torch.Tensor) else helper._maybe_get_const(values, "is"))]


def _triangle(make: Any) -> Any:
    """torch.tril_indices or torch.triu_indices: numbers of a graph of fixed shapes."""

    def symbolic(g: Any, row: Any, col: Any, offset: Any, *_: Any) -> Any:
        from torch.onnx import symbolic_helper as helper

        numbers = [helper._get_const(each, "i", "size") for each in (row, col, offset)]
        return g.op("Constant", value_t=make(*numbers))

    return symbolic


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
        "detach": _detach,
        "embedding": _embedding,
        "diff": _diff,
        "cumsum": _cumsum,
        "scaled_dot_product_attention": _attention,
        "index_add": _index_add,
        "rms_norm": _wide(_rms_norm),
        "take_along_dim": _take_along_dim,
        "cross_entropy_loss": _cross_entropy,
        "smooth_l1_loss": _smooth_l1,
        "huber_loss": _huber,
        "softplus": _softplus,
        "std": _std,
        "std_mean": _std_mean,
        "cosine_similarity": _cosine_similarity,
        "log_sigmoid": _log_sigmoid,
        "binary_cross_entropy_with_logits": _bce_with_logits,
        "index_put": _index_put,
        "floor_divide": _floor_divide,
        "movedim": _movedim,
        "tril_indices": _triangle(torch.tril_indices),
        "triu_indices": _triangle(torch.triu_indices),
        "layer_norm": _wide(symbolic_opset17.layer_norm),
        "group_norm": _wide(symbolic_opset9.group_norm),
    }


def register() -> None:
    """In the process that exports."""
    for name, symbolic in _rules().items():
        torch.onnx.register_custom_op_symbolic(f"aten::{name}", symbolic, OPSET)


def unregister() -> None:
    """Takes back what register has done, in a process that goes on."""
    for name in _rules():
        torch.onnx.unregister_custom_op_symbolic(f"aten::{name}", OPSET)
