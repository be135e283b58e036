"""Learning rates over time, as `ortc run --lr-schedule` and `ortc train --schedule` have them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ortc._errors import ArgumentError
from ortc._names import describe_names, join_words, parse_number

_KINDS: dict[str, tuple[str, ...]] = {
    "constant": ("warmup",),
    "linear": ("warmup", "min", "total"),
    "step": ("warmup", "step_size", "gamma"),
    "multistep": ("warmup", "milestones", "gamma"),
    "exponential": ("warmup", "gamma"),
    "polynomial": ("warmup", "power", "min", "total"),
    "cosine": ("warmup", "min", "total"),
    "cosine_restarts": ("warmup", "period", "mult", "min"),
    "one_cycle": ("pct_start", "div_factor", "final_div_factor", "anneal", "total"),
    "inverse_sqrt": ("warmup", "timescale"),
    "wsd": ("warmup", "decay", "anneal", "min", "total"),
}
"""With their keys, in the order of checkpoints."""
_NEEDED = {
    "step": "step_size",
    "multistep": "milestones",
    "exponential": "gamma",
    "cosine_restarts": "period",
    "wsd": "decay",
}
_ANNEALS = {"one_cycle": ("cosine", "linear"), "wsd": ("linear", "cosine", "sqrt")}
_MOST = 1 << 50
_RANGES: dict[str, tuple[float, float]] = {
    "warmup": (0, _MOST),
    "total": (1, _MOST),
    "step_size": (1, _MOST),
    "period": (1, _MOST),
    "mult": (1, 1000),
    "timescale": (1, _MOST),
    "decay": (1, _MOST),
    "min": (0.0, 3.4e38),
    "gamma": (1e-12, 1.0),
    "power": (0.01, 100.0),
    "pct_start": (0.0, 1.0),
    "div_factor": (1.0, 1e12),
    "final_div_factor": (1e-12, 1e12),
}
"""Of a key: what it may be. Whole numbers have whole limits."""


# Functions operation by operation as in support/Rate.h, for the same bits.


def _sine_of_quarter(x: float) -> float:
    """sin(pi / 2 x) for x in [0, 1], by its series."""
    half = math.pi / 2
    factors = [half]
    for i in range(1, 12):
        factors.append(-factors[-1] * (half * half) / (2 * i * (2 * i + 1)))
    square, total = x * x, factors.pop()
    for factor in reversed(factors):
        total = total * square + factor
    return total * x


def _halved(y: float) -> float:
    """2^-y for y of at least 0: powers of two by the binary digits of y, and a series for what is left."""
    rest, factor = min(y, 1000.0), 1.0
    for bit in range(9, -1, -1):
        if rest >= 2.0**bit:
            rest, factor = rest - 2.0**bit, factor * 2.0 ** -(1 << bit)
    factors = [1.0]
    for i in range(1, 18):
        factors.append(-factors[-1] * 0.6931471805599453 / i)
    total = rest * factors[17] + factors[16]
    for each in factors[15::-1]:
        total = total * rest + each
    return total * factor


def _halvings(x: float) -> float:
    """-log2(x) for x from 2^-63 to 1: doubled until it is near 1, then by a series."""
    two_by_log, root, count = 2.8853900817779268, 0.7071067811865476, 0.0
    for bit in range(5, -1, -1):
        if x < root * 2.0 ** (1 - (1 << bit)):
            count, x = count + float(1 << bit), x * 2.0 ** (1 << bit)
    share = (x - 1.0) / (x + 1.0)
    square = share * share
    total = square * (two_by_log / 25) + two_by_log / 23
    for i in range(10, -1, -1):
        total = total * square + two_by_log / (2 * i + 1)
    return count - total * share


def _power(x: float, power: float) -> float:
    if power == 1:
        return x
    return 0.0 if x < 2.0**-63 else _halved(_halvings(x) * power)


def _fall(how: str, share: float) -> float:
    """How much of the rate is left when `share` of a fall is behind."""
    if how == "linear":
        return 1.0 - share
    if how == "sqrt":
        return 1.0 - math.sqrt(share)
    sine = _sine_of_quarter(share)
    return 1.0 - sine * sine


def _between(first: float, last: float, left: float) -> float:
    return first * left + last * (1.0 - left)


def _periods(count: float, period: int) -> float:
    return math.floor((count + 0.5) * (1.0 / period))


@dataclass(frozen=True)
class Schedule:
    """A rise over `warmup` steps, then what the kind does."""

    kind: str = "constant"
    warmup: int = 0
    minimum: float = 0.0
    """What a falling rate ends at, in step `total`."""
    total: int = 0
    """Steps of the whole training; 0: it ends where the fit ends."""
    step_size: int = 0
    gamma: float = 0.1
    milestones: tuple[int, ...] = ()
    power: float = 1.0
    period: int = 0
    mult: int = 1
    timescale: int = 0
    decay: int = 0
    anneal: str = ""
    pct_start: float = 0.3
    div_factor: float = 25.0
    final_div_factor: float = 1e4

    @property
    def is_falling(self) -> bool:
        """Whether it falls towards what it has at `total`."""
        return "total" in _KINDS[self.kind]

    @property
    def is_plain(self) -> bool:
        return self.kind == "constant" and not self.warmup

    @property
    def _top(self) -> float:
        """The step that first has the whole base."""
        return float(self.warmup - 1) if self.warmup else 0.0

    @property
    def _how(self) -> str:
        if self.anneal:
            return self.anneal
        return "cosine" if self.kind in ("cosine", "cosine_restarts", "one_cycle") else "linear"

    def rate(self, base: float, step: int, end: int) -> float:
        """At a step, counted from 0, of a fit that ends at step `end`."""
        top = self._top
        if step < top:
            return base * ((step + 1.0) * (1.0 / self.warmup))
        return self._rate_behind(base, float(step), step - top, self.total or end)

    def _rate_behind(self, base: float, step: float, count: float, total: int) -> float:
        """`count` steps after the one that first had the whole base."""
        kind = self.kind
        if kind in ("linear", "cosine"):
            return self._falling(base, step, self._top, total, lambda share: _fall(self._how, share))
        if kind == "polynomial":
            return self._falling(base, step, self._top, total, lambda share: _power(1.0 - share, self.power))
        if kind == "wsd":
            begin = float(total - self.decay)
            return base if step < begin else self._falling(base, step, begin, total, lambda share: _fall(self._how, share))
        if kind == "step":
            return base * _halved(_periods(count, self.step_size) * _halvings(self.gamma))
        if kind == "exponential":
            return base * _halved(count * _halvings(self.gamma))
        if kind == "multistep":
            for milestone in self.milestones:
                base = base if step < milestone else base * self.gamma
            return base
        if kind == "cosine_restarts":
            return _between(base, self.minimum, _fall(self._how, self._share_of_period(count)))
        if kind == "inverse_sqrt":
            scale = float(self.timescale or self.warmup or 10000)
            return base / math.sqrt((count + scale) * (1.0 / scale))
        return self._one_cycle(base, step, total) if kind == "one_cycle" else base

    def _falling(self, base: float, step: float, begin: float, end: float, left: Callable[[float], float]) -> float:
        past, length = step - begin, max(end - begin, 1.0)
        return _between(base, self.minimum, left(past * (1.0 / length))) if past < length else self.minimum

    def _share_of_period(self, count: float) -> float:
        if self.mult == 1:
            return (count - _periods(count, self.period) * float(self.period)) * (1.0 / self.period)
        share, begin, length = 0.0, 0.0, float(self.period)
        while begin <= count and begin < 2.0**53:
            share = (count - begin) * (1.0 / length)
            begin, length = begin + length, length * self.mult
        return share

    def _one_cycle(self, base: float, step: float, total: int) -> float:
        top, last = self.pct_start * float(total) - 1, float(total) - 1
        first = base * (1.0 / self.div_factor)
        end = first * (1.0 / self.final_div_factor)
        if top > 0 and step < math.floor(top) + 1:
            return _between(first, base, _fall(self._how, step * (1.0 / top)))
        if step >= last:
            return end
        return _between(base, end, _fall(self._how, (step - top) * (1.0 / max(last - top, 1.0))))

    def __str__(self) -> str:
        items = []
        for key in _KINDS[self.kind]:
            value: Any = getattr(self, "minimum" if key == "min" else key)
            if key == "milestones":
                value = "/".join(map(str, value))
            elif key == "anneal":
                value = self._how
            elif isinstance(value, float):
                value = repr(value).removesuffix(".0")
            elif not value and key != "warmup":
                continue
            items.append(f"{key}={value}")
        return f"{self.kind}:{','.join(items)}"


def _read(kind: str, key: str, text: str) -> Any:
    if key == "anneal":
        if text not in _ANNEALS[kind]:
            raise ValueError(f"anneal is '{text}' but must be one of {join_words(_ANNEALS[kind])}")
        return text
    if key == "milestones":
        steps = tuple(int(parse_number(each, True) or 0) for each in text.split("/"))
        if steps[0] < 1 or any(b <= a for a, b in zip(steps, steps[1:])):
            raise ValueError("milestones must be rising numbers of steps with slashes between, such as 3000/6000")
        return steps
    least, most = _RANGES[key]
    value = parse_number(text, isinstance(least, int))
    if value is None or not least <= value <= most:
        whole = "whole " * isinstance(least, int)
        raise ValueError(f"{key} is '{text}' but must be a {whole}number from {least:g} to {most:g}")
    return value


def parse_schedule(text: str) -> Schedule:
    """Of "cosine:warmup=10,min=0,total=440". Raises ArgumentError."""
    kind, _, rest = text.partition(":")
    values: dict[str, Any] = {}
    try:
        if kind not in _KINDS:
            raise ValueError(describe_names(kind, tuple(_KINDS)))
        for item in rest.split(",") if rest else ():
            key, _, value = item.partition("=")
            # Of a constant rate, which checkpoints have had all of them with.
            is_old = kind == "constant" and item in ("min=0", "min=0.0")
            if (key not in _KINDS[kind] and not is_old) or key in values:
                raise ValueError(f"it has no option '{key}', or has it twice; it takes {join_words(_KINDS[kind])}")
            values[key] = _read(kind, key, value)
        if kind in _NEEDED and _NEEDED[kind] not in values:
            raise ValueError(f"it needs {_NEEDED[kind]}; it takes {join_words(_KINDS[kind])}")
        warmup, total = values.get("warmup", 0), values.get("total", 0)
        if total and total <= warmup:
            raise ValueError(f"total {total} must be more than the {warmup} steps of warmup, after which the rate falls")
        if total and values.get("decay", 0) > total - warmup:
            raise ValueError(f"decay must be at most the {total - warmup} steps behind the warm-up")
    except ValueError as error:
        raise ArgumentError(f"learning-rate schedule '{text}': {error}") from error
    values["minimum"] = values.pop("min", 0.0)
    return Schedule(kind, **values)
