"""Learning rates over time, as `ortc run --lr-schedule` has them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ortc._errors import ArgumentError

_KINDS = ("constant", "linear", "cosine")


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


@dataclass(frozen=True)
class Schedule:
    """A rise over `warmup` steps, then a fall towards `minimum`, which the step after the last of `total` would have."""

    kind: str = "constant"
    warmup: int = 0
    minimum: float = 0.0
    total: int = 0
    """0: it ends where the fit ends."""

    @property
    def is_falling(self) -> bool:
        return self.kind != "constant"

    @property
    def is_plain(self) -> bool:
        return not self.is_falling and not self.warmup

    def rate(self, base: float, step: int, end: int) -> float:
        """At a step, counted from 0, of a fit that ends at step `end`."""
        # Operation by operation as in host/rate.h, for the same bits.
        top = self.warmup - 1 if self.warmup else 0
        if step < top:
            return base * ((step + 1) * (1 / self.warmup))
        if not self.is_falling:
            return base
        # The fall begins at the step that has the whole base.
        span = max((self.total or end) - top, 1)
        if step - top >= span:
            return self.minimum
        progress = (step - top) * (1 / span)
        sine = _sine_of_quarter(progress)
        left = 1 - progress if self.kind == "linear" else 1 - sine * sine
        return base * left + self.minimum * (1 - left)

    def __str__(self) -> str:
        total = f",total={self.total}" if self.total else ""
        return f"{self.kind}:warmup={self.warmup},min={self.minimum!r}{total}"


def parse_schedule(text: str) -> Schedule:
    """Of "cosine:warmup=10,min=0,total=440". Raises ArgumentError."""
    kind, _, rest = text.partition(":")
    values: dict[str, float] = {}
    try:
        for item in rest.split(",") if rest else ():
            key, _, value = item.partition("=")
            if key not in ("warmup", "min", "total") or key in values:
                raise ValueError(f"'{key}' is none of warmup, min and total, or there twice")
            values[key] = float(value) if key == "min" else int(value)
        if kind not in _KINDS:
            raise ValueError(f"there are {', '.join(_KINDS)}")
        if not all(0 <= value < math.inf for value in values.values()):
            raise ValueError("its numbers must be at least 0")
        found = Schedule(kind, int(values.get("warmup", 0)), values.get("min", 0.0), int(values.get("total", 0)))
        if not found.is_falling and (found.total or found.minimum):
            raise ValueError("a constant rate has no total and no min")
        if found.total and found.total <= found.warmup:
            raise ValueError("total must be more than the steps of warmup")
    except ValueError as error:
        raise ArgumentError(f"learning-rate schedule '{text}': {error}") from error
    return found
