"""Losses.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch

from ortc._errors import CompileError
from ortc.torch._symbolics.build import Number, constant, is_none, like, number, rank, with_gradient


def _reduce(g: Any, x: Any, reduction: Any) -> Any:
    from torch.onnx import symbolic_helper as helper

    kind = helper._get_const(reduction, "i", "reduction")
    return x if kind == 0 else g.op("ReduceMean" if kind == 1 else "ReduceSum", x, keepdims_i=0)


def _smooth(g: Any, x: Any, y: Any, reduction: Any, width: Any, by: Any) -> Any:
    """A square up to `width`, from there on a line; `by`: what both are divided by."""
    far = g.op("Abs", g.op("Sub", x, y))
    square = g.op("Mul", g.op("Mul", far, far), constant(g, 0.5 / by))
    line = g.op("Mul", g.op("Sub", far, constant(g, width / 2)), constant(g, width / by))
    return _reduce(g, g.op("Where", g.op("Less", far, constant(g, width)), square, line), reduction)


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


def _cross_entropy(g: Any, x: Any, target: Any, weight: Any, reduction: Any, ignored: Any, smoothing: Any) -> Any:
    """torch.nn.functional.cross_entropy, with targets that are probabilities, and smoothed ones."""
    from torch.onnx import symbolic_helper as helper

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
        logs = g.op("Mul", logs, g.op("Reshape", weight, constant(g, [-1, *[1] * (len(sizes) - axis - 1)])))
    spread = g.op("Mul", g.op("ReduceSum", logs, constant(g, [axis]), keepdims_i=0), constant(g, -share / sizes[axis]))
    if soft:
        loss = g.op("Neg", g.op("ReduceSum", g.op("Mul", logs, target), constant(g, [axis]), keepdims_i=0))
        count = constant(g, float(sizes[0] * torch.Size(sizes[2:]).numel() if axis else 1))
        loss = g.op("Add", g.op("Mul", loss, constant(g, 1.0 - share)), spread)
    else:
        counts = g.op("Not", g.op("Equal", target, constant(g, skip)))
        place = g.op("Where", counts, target, constant(g, 0))
        hit = g.op("GatherElements", logs, g.op("Unsqueeze", place, constant(g, [axis])), axis_i=axis)
        loss = g.op("Neg", g.op("Squeeze", hit, constant(g, [axis])))
        loss = g.op("Add", g.op("Mul", loss, constant(g, 1.0 - share)), spread)
        loss = g.op("Where", counts, loss, constant(g, 0.0))
        each = g.op("Gather", weight, place) if weights else constant(g, 1.0)
        count = g.op("ReduceSum", g.op("Where", counts, each, constant(g, 0.0)), keepdims_i=0)
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

    one = like(g, x, 1.0)
    loss = g.op("Softplus", g.op("Neg", x))
    if not helper._is_none(positive):
        loss = g.op("Mul", g.op("Add", one, g.op("Mul", g.op("Sub", positive, one), y)), loss)
    loss = g.op("Add", g.op("Mul", g.op("Sub", one, y), x), loss)
    return _reduce(g, loss if helper._is_none(weight) else g.op("Mul", loss, weight), reduction)


def _bce(g: Any, x: Any, y: Any, weight: Any, reduction: Any) -> Any:
    """torch.nn.functional.binary_cross_entropy: logarithms are -100 at least, and the divisor of the gradient 1e-12."""
    one, label = Number(g, x), Number(g, y)
    least = like(g, x, -100.0)
    yes, no = (each.op("Log").op("Max", least) for each in (one, 1.0 - one))
    loss = -(label * yes + (1.0 - label) * no)
    divisor = ((1.0 - one) * one).op("Max", like(g, x, 1e-12))
    slope = (1.0 - one).op("Log") - one.op("Log")
    result = with_gradient(loss, (one, (one - label) / divisor), (label, slope))
    return _reduce(g, result if is_none(weight) else g.op("Mul", result, weight), reduction)


def _multi_margin(g: Any, x: Any, target: Any, p: Any, margin: Any, weight: Any, reduction: Any) -> Any:
    """torch.nn.functional.multi_margin_loss."""
    from torch.onnx import symbolic_helper as helper

    power, width = number(p, "f", "p"), float(number(margin, "f", "margin"))
    if power not in (1, 2):
        raise CompileError(f"multi_margin_loss has p={power}; 1 and 2 are what there is")
    classes, is_single = helper._get_tensor_sizes(x)[-1], rank(x) == 1
    if is_single:
        x, target = g.op("Unsqueeze", x, constant(g, [0])), g.op("Reshape", target, constant(g, [-1]))
    places = g.op("Unsqueeze", target, constant(g, [1]))
    one, own = Number(g, x), Number(g, g.op("GatherElements", x, places, axis_i=1))
    far = one - own + width
    other = Number(g, g.op("Equal", places, constant(g, torch.arange(classes))))
    costs = (other | (far <= 0.0)).then(0.0, far if power == 1 else far * far)
    if not is_none(weight):
        costs = costs * Number(g, g.op("Unsqueeze", g.op("Gather", weight, target), constant(g, [1])))
    loss = g.op("Mul", g.op("ReduceSum", costs.value, constant(g, [1]), keepdims_i=0), like(g, x, 1 / classes))
    return _reduce(g, g.op("Squeeze", loss, constant(g, [0])) if is_single else loss, reduction)


def _soft_margin(g: Any, x: Any, y: Any, reduction: Any) -> Any:
    """torch.nn.functional.soft_margin_loss."""
    return _reduce(g, (-(Number(g, x) * Number(g, y))).op("Softplus").value, reduction)


RULES: dict[str, Any] = {
    "cross_entropy_loss": _cross_entropy,
    "smooth_l1_loss": _smooth_l1,
    "huber_loss": _huber,
    "log_sigmoid": _log_sigmoid,
    "binary_cross_entropy_with_logits": _bce_with_logits,
    "binary_cross_entropy": _bce,
    "multi_margin_loss": _multi_margin,
    "soft_margin_loss": _soft_margin,
}
