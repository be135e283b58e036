"""Functions of single elements.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ortc.torch._symbolics.build import Number, detach, is_none, is_plain, like, number, promote, with_gradient


def _node(name: str) -> Callable[..., Any]:
    """An operator of ONNX as it is."""
    return lambda g, x: g.op(name, x)


def _of_two(formula: Callable[[Number, Number], Any]) -> Callable[..., Any]:
    """A function of two tensors, in the type that both have together."""

    def symbolic(g: Any, x: Any, y: Any) -> Any:
        first, second = (Number(g, each) for each in promote(g, x, y))
        result = formula(first, second)
        return result.value if isinstance(result, Number) else result

    return symbolic


def _atan2(y: Number, x: Number) -> Any:
    """Angles in a quarter, by the smaller of both through the larger, turned to the others by the signs, those of zeros too."""
    far, near = y.op("Abs"), x.op("Abs")
    is_steep = far > near
    share = is_steep.then(near, far) / is_steep.then(far, near)
    share = far.equals(near).then(1.0, share)
    share = (far.equals(0.0) & near.equals(0.0)).then(0.0, share)
    angle = share.op("Atan")
    angle = is_steep.then(math.pi / 2 - angle, angle)
    angle = x.is_below_zero().then(math.pi - angle, angle)
    angle = y.is_below_zero().then(-angle, angle)
    square = x * x + y * y
    is_origin = square.equals(0.0)
    return with_gradient(angle, (y, is_origin.then(0.0, x / square)), (x, is_origin.then(0.0, -y / square)))


def _hypot(x: Number, y: Number) -> Any:
    far, near = x.op("Abs").op("Max", y.op("Abs")), x.op("Abs").op("Min", y.op("Abs"))
    is_special = far.equals(0.0) | far.equals(math.inf)
    share = near / is_special.then(1.0, far)
    length = is_special.then(far, far * (share * share + 1.0).op("Sqrt"))
    return with_gradient(length, (x, x / length), (y, y / length))


def _logaddexp(x: Number, y: Number, base: float = 1.0) -> Any:
    """`base`: the logarithm of the base."""
    gap = (x - y) * base
    rest = (-gap.op("Abs")).op("Softplus")
    rest = x.equals(y).then(math.log(2.0), rest)  # where both are infinite, too
    return with_gradient(x.op("Max", y) + rest * (1 / base), (x, gap.op("Sigmoid")), (y, (-gap).op("Sigmoid")))


def _skip_nan(name: str) -> Callable[..., Any]:
    """torch.fmax or torch.fmin: of a number and NaN, the number."""

    def formula(x: Number, y: Number) -> Any:
        is_first = x > y if name == "Max" else x < y
        is_tie, no_x, no_y = x.equals(y), x.op("IsNaN"), y.op("IsNaN")
        value = no_x.then(y, no_y.then(x, is_first.then(x, y)))
        half = is_tie.count(x) * 0.5
        return with_gradient(
            value,
            (x, (is_first | no_y & ~no_x).count(x) + half),
            (y, (~(is_first | is_tie) & ~(no_y & ~no_x)).count(x) + half),
        )

    return _of_two(formula)


def _xlogy(x: Number, y: Number) -> Any:
    """x log y, where 0 wins."""
    nothing = x.equals(0.0)
    value = y.op("IsNaN").then(y, nothing.then(0.0, x * y.op("Log")))
    return with_gradient(value, (x, (nothing & (y <= 0.0)).then(0.0, y.op("Log"))), (y, x / y))


def _xlog1py(x: Number, y: Number) -> Any:
    nothing, log = x.equals(0.0), _log1p(y)
    value = y.op("IsNaN").then(y, nothing.then(0.0, x * log))
    return with_gradient(value, (x, (nothing & (y <= -1.0)).then(0.0, log)), (y, x / (y + 1.0)))


def _log1p(x: Number) -> Number:
    """log1p of a small number as it is: log(u) x / (u - 1) with u the rounded 1 + x (Goldberg)."""
    one = x + 1.0
    rest = one - 1.0
    return (rest.equals(0.0) | one.equals(math.inf)).then(x, one.op("Log") * (x / rest))


def _copysign(x: Number, y: Number) -> Any:
    sign = 1.0 - y.is_below_zero().count(x) * 2.0
    value = x.op("Abs") * sign
    return with_gradient(value, (x, x.equals(0.0).then(0.0, value / x)))


def _modulo(is_floor: bool) -> Callable[..., Any]:
    """torch.remainder or torch.fmod."""

    def symbolic(g: Any, x: Any, y: Any) -> Any:
        first, second = (Number(g, each) for each in promote(g, x, y))
        if not _is_float(first):
            return g.op("Mod", first.value, second.value, fmod_i=int(not is_floor))
        rest = first.op("Mod", second, fmod_i=1)
        share = first / second
        if not is_floor:
            return with_gradient(rest, (first, 1.0), (second, -_whole(share)))
        is_other = ~rest.equals(0.0) & (rest < 0.0).op("Xor", second < 0.0)
        return with_gradient(is_other.then(rest + second, rest), (first, 1.0), (second, -_floor_share(first, second)))

    return symbolic


def _floor_share(x: Number, y: Number) -> Number:
    """How often y is in x, rounded down, as PyTorch finds it: by the rest, so that a share that is whole except for rounding is whole."""
    rest = x.op("Mod", y, fmod_i=1)
    is_other = ~rest.equals(0.0) & (rest < 0.0).op("Xor", y < 0.0)
    share = (x - rest) / y
    share = is_other.then(share - 1.0, share)
    whole = share.op("Floor")
    whole = (share - whole > 0.5).then(whole + 1.0, whole)
    plain = x / y
    nothing = plain.is_below_zero().then(-0.0, plain * 0.0)
    return y.equals(0.0).then(plain, share.equals(0.0).then(nothing, whole))


def _is_float(x: Number) -> bool:
    from torch.onnx import symbolic_helper as helper

    return bool(helper._is_fp(x.value))


def _whole(x: Number) -> Number:
    """Rounded towards zero."""
    return (x < 0.0).then(x.op("Ceil"), x.op("Floor"))


def _trunc(g: Any, x: Any) -> Any:
    one = Number(g, x)
    return _whole(one).value if _is_float(one) else x


def _frac(g: Any, x: Any) -> Any:
    one = Number(g, x)
    return with_gradient(one - _whole(one), (one, 1.0))


def _expm1(g: Any, x: Any) -> Any:
    """exp(x) - 1, small numbers too."""
    one = Number(g, x)
    power = one.op("Exp")
    small = (one * 0.5).op("Tanh") * (power + 1.0)
    value = (one.op("Abs") < 1.0).then(small, power - 1.0)
    return with_gradient(value, (one, power))


def _exp2(g: Any, x: Any) -> Any:
    return g.op("Pow", like(g, x, 2.0), x)


def _sinc(g: Any, x: Any) -> Any:
    one = Number(g, x)
    angle, square = one * math.pi, one * one * math.pi
    value = one.equals(0.0).then(1.0, angle.op("Sin") / angle)
    slope = square.equals(0.0).then(0.0, (angle * angle.op("Cos") - angle.op("Sin")) / square)
    return with_gradient(value, (one, slope))


def _logit(g: Any, x: Any, eps: Any = None) -> Any:
    one = Number(g, x)
    slope = 1.0 / (one * (1.0 - one))
    if is_none(eps):
        return with_gradient((one / (1.0 - one)).op("Log"), (one, slope))
    least = float(number(eps, "f", "eps"))
    inner = one.op("Clip", like(g, x, least), like(g, x, 1.0 - least))
    is_outside = (one < least) | (one > 1.0 - least)
    return with_gradient((inner / (1.0 - inner)).op("Log"), (one, is_outside.then(0.0, slope)))


def _entr(g: Any, x: Any) -> Any:
    """torch.special.entr: -x log x."""
    one = Number(g, x)
    log = one.op("Log")
    value = (one > 0.0).then(-(one * log), (one < 0.0).then(-math.inf, one * 0.0))
    return with_gradient(value, (one, -log - 1.0))


def _heaviside(g: Any, x: Any, values: Any) -> Any:
    one, other = (Number(g, each) for each in promote(g, x, values))
    return one.equals(0.0).then(other, (one > 0.0).count(one)).value


def _signbit(g: Any, x: Any) -> Any:
    one = Number(g, x)
    return (one.is_below_zero() if _is_float(one) else one < 0).value


def _threshold(g: Any, x: Any, bound: Any, value: Any) -> Any:
    least, other = float(number(bound, "f", "threshold")), float(number(value, "f", "value"))
    one = Number(g, x)
    return (one <= least).then(other, one).value


def _softplus(g: Any, x: Any, beta: Any, threshold: Any) -> Any:
    """torch.nn.functional.softplus: the input itself where it is beyond the threshold, which the float32 after 17 is anyway."""
    factor, most = number(beta, "f", "beta"), number(threshold, "f", "threshold")
    one = Number(g, x)
    scaled = one * factor
    smooth = scaled.op("Softplus") * (1 / factor)
    return (smooth if most >= 17 else (scaled > most).then(one, smooth)).value


def _divide(g: Any, x: Any, y: Any, *mode: Any) -> Any:
    """torch.div, with its modes."""
    from torch.onnx import symbolic_opset10

    kind = None if not mode or is_none(mode[0]) else mode[0] if isinstance(mode[0], str) else number(mode[0], "s", "rounding_mode")
    first, second = (Number(g, each) for each in promote(g, x, y)) if kind else (Number(g, x), Number(g, y))
    if kind == "floor" and _is_float(first):
        return detach(g, _floor_share(first, second).value)
    if kind == "trunc" and _is_float(first):
        return _whole(first / second).value
    return symbolic_opset10.div(g, x, y, *([] if kind is None else [kind]))


def _floor_divide(g: Any, x: Any, y: Any) -> Any:
    """torch.floor_divide, which the exporter takes for a division towards zero."""
    return _divide(g, x, y, "floor")


def _clamp(g: Any, x: Any, low: Any = None, high: Any = None) -> Any:
    """torch.clamp, by numbers, whose bounds have the whole gradient, or by tensors, which share it there."""
    from torch.onnx import symbolic_opset11

    bounds = [each for each in (low, high) if not is_none(each)]
    if all(is_plain(each) for each in bounds):
        return symbolic_opset11.clamp(g, x, low, high)
    one, *others = (Number(g, each) for each in promote(g, x, *bounds))
    if len(others) == 1:
        return _extreme("Max" if is_none(high) else "Min")(g, one.value, others[0].value)
    least, most = others
    value = one.op("Max", least).op("Min", most)
    is_order, is_one = least < most, least.equals(most)
    half_low, half_high = ((one.equals(each) & is_order).count(one) * 0.5 for each in others)
    inside = ((one > least) & (one < most)) | (is_one & one.equals(least))
    return with_gradient(
        value,
        (one, inside.count(one) + half_low + half_high),
        (least, ((is_order | is_one) & (one < least)).count(one) + half_low),
        (most, ((least > most) | (one > most)).count(one) + half_high),
    )


def _extreme(name: str) -> Callable[..., Any]:
    """torch.maximum or torch.minimum, which share the gradient where both are equal, also of a constant. A Max node with a constant is
    how other exporters write a clamp, whose bound has no share."""

    def symbolic(g: Any, x: Any, y: Any) -> Any:
        one, other = (Number(g, each) for each in promote(g, x, y))
        value = one.op(name, other)
        if not _is_float(one):
            return value.value
        tie = one.equals(other).count(one) * 0.5
        is_first = one > other if name == "Max" else one < other
        is_second = one < other if name == "Max" else one > other
        return with_gradient(value, (one, is_first.count(one) + tie), (other, is_second.count(one) + tie))

    return symbolic


RULES: dict[str, Any] = {
    **{name: _node(name.capitalize()) for name in ("acosh", "asinh", "atanh", "cosh", "sinh")},
    "sgn": _node("Sign"),
    "atan2": _of_two(_atan2),
    "hypot": _of_two(_hypot),
    "logaddexp": _of_two(_logaddexp),
    "logaddexp2": _of_two(lambda x, y: _logaddexp(x, y, math.log(2.0))),
    "fmax": _skip_nan("Max"),
    "fmin": _skip_nan("Min"),
    "maximum": _extreme("Max"),
    "minimum": _extreme("Min"),
    "xlogy": _of_two(_xlogy),
    "special_xlog1py": _of_two(_xlog1py),
    "special_entr": _entr,
    "copysign": _of_two(_copysign),
    "remainder": _modulo(True),
    "fmod": _modulo(False),
    "trunc": _trunc,
    "fix": _trunc,
    "frac": _frac,
    "expm1": _expm1,
    "exp2": _exp2,
    "sinc": _sinc,
    "logit": _logit,
    "heaviside": _heaviside,
    "signbit": _signbit,
    "threshold": _threshold,
    "softplus": _softplus,
    "div": _divide,
    "floor_divide": _floor_divide,
    "clamp": _clamp,
    "clamp_min": lambda g, x, low: _clamp(g, x, low),
    "clamp_max": lambda g, x, high: _clamp(g, x, None, high),
}
