"""Dropout of channels and alpha dropout, which PyTorch's exporter refuses in training mode: formulas of a mask, and the mask is what
Dropout makes of ones. So whatever Dropout does not drop, as in evaluation, is the operand as it is.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ortc.torch._symbolics.build import Number, constant, like, number, rank

_SATURATION = 1.7580993408473766
"""Of SELU at minus infinity, with the sign turned: alpha dropout lets elements be that."""


def _mask(g: Any, x: Any, rate: float, has_channels: bool) -> Number:
    """0 or 1 / (1 - rate), or 1 where nothing drops: for each element, or for each channel of each sample."""
    shape = g.op("Shape", x)
    if has_channels and rank(x) > 2:
        first = g.op("Slice", shape, constant(g, [0]), constant(g, [2]))
        shape = g.op("Concat", first, constant(g, [1] * (rank(x) - 2)), axis_i=0)
    ones = g.op("Expand", like(g, x, 1.0), shape)
    return Number(g, g.op("Dropout", ones, constant(g, rate), constant(g, True)))


def _scaled(x: Number, mask: Number, rate: float) -> Number:
    return x * mask


def _alpha(x: Number, mask: Number, rate: float) -> Number:
    """The mean and the variance of standard normal numbers stay."""
    factor = float((_SATURATION**2 * rate + 1) * (1 - rate)) ** -0.5
    kept = x * factor + _SATURATION * factor * rate
    return (mask > 1.0).then(kept, mask.equals(0.0).then(_SATURATION * factor * (rate - 1), x))


def _dropout(formula: Callable[[Number, Number, float], Number], has_channels: bool) -> Callable[..., Any]:
    def symbolic(g: Any, x: Any, p: Any, train: Any) -> Any:
        rate = float(number(p, "f", "p"))
        if not number(train, "i", "train") or rate == 0:
            return x
        if rate == 1:
            return (Number(g, x) * 0.0).value
        return formula(Number(g, x), _mask(g, x, rate, has_channels), rate).value

    return symbolic


RULES: dict[str, Any] = {
    "feature_dropout": _dropout(_scaled, True),
    "alpha_dropout": _dropout(_alpha, False),
    "feature_alpha_dropout": _dropout(_alpha, True),
}
