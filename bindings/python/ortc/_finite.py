"""Whether what a session trains is made of finite numbers, and why it is not.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

As engine/session/finite_check.h and engine/session/not_finite.h have them, with the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ortc._arrays import widen
from ortc._losses import Loss
from ortc._session import Session

_GROWTH_OF_LOSS, _GROWTH_OF_WEIGHTS, _SMALL_WEIGHTS = 10, 100, 0.01
_FLOATS = ("float16", "float32", "float64", "bfloat16")


class Bad(NamedTuple):
    """A tensor that is not finite."""

    name: str
    nans: int
    infinities: int
    elements: int

    def __str__(self) -> str:
        what = [f"{count} {kind}" for count, kind in ((self.nans, "nan"), (self.infinities, "inf")) if count]
        return f"'{self.name}' has {' and '.join(what)} among its {self.elements} value{'s' * (self.elements != 1)}"


class LossTrend:
    """The finite losses of a fit."""

    def __init__(self) -> None:
        self.first = self.last = 0.0
        self.last_step = -1
        """-1: there was none."""

    def add(self, loss: float, step: int) -> None:
        self.first = loss if self.last_step < 0 else self.first
        self.last, self.last_step = loss, step


def _short(value: float) -> str:
    return f"{value:.4g}"


class FiniteCheck:
    """The tensors of a session that a checkpoint has, over a training. A tensor that is not finite before the first step is the
    model's affair; what becomes so is a training that has gone astray."""

    def __init__(self, session: Session) -> None:
        self._session = session
        model = {each["name"] for each in session.artifact.manifest.get("frozen", [])}
        tensors = [each for each in session.artifact.tensors.values() if each.dtype in _FLOATS]
        self._parameters = [each.name for each in tensors if each.role == "parameter"]
        self._state = [each.name for each in tensors if each.role == "state"]
        self._constants = [each.name for each in tensors if each.role == "constant"]
        self._of_model = {*self._parameters, *(name for name in self._state if name in model)}
        self.bad_at_first: Bad | None = None
        self._counts: dict[str, int] = {}
        for name in (*self._parameters, *self._state):
            bad = self._find(name)
            self._counts[name] = self._count(bad)
            if self._counts[name]:
                self.bad_at_first = self.bad_at_first or bad
        self._largest_at_first = self.find_largest()

    def _read(self, name: str) -> NDArray[Any]:
        session = self._session
        values = session.view(name) if session.device == "cpu" and name not in self._constants else session.read(name)
        return widen(values) if session.artifact.tensors[name].dtype == "bfloat16" else values

    def _find(self, name: str) -> Bad:
        values = self._read(name)
        finite = np.isfinite(values)
        if finite.all():
            return Bad(name, 0, 0, values.size)
        nans = int(np.isnan(values).sum())
        return Bad(name, nans, int((~finite).sum()) - nans, values.size)

    def _count(self, bad: Bad) -> int:
        """Those that must be finite: an optimizer may have sums of squares that no number holds, and step on."""
        return bad.nans + (bad.infinities if bad.name in self._of_model else 0)

    def _check(self, names: Iterable[str]) -> Bad | None:
        for name in names:
            bad = self._find(name)
            if self._count(bad) > self._counts[name]:
                return bad
        return None

    def check_model(self) -> Bad | None:
        """The first parameter or running statistic that is not finite any more."""
        return self._check(name for name in (*self._parameters, *self._state) if name in self._of_model)

    def check_saved(self) -> Bad | None:
        """The same of parameters and state."""
        return self._check((*self._parameters, *self._state))

    def find_largest(self) -> float:
        """The largest magnitude of a finite parameter."""
        largest = 0.0
        for name in self._parameters:
            values = np.abs(self._read(name))
            largest = max(largest, float(np.max(values, initial=0.0, where=np.isfinite(values))))
        return largest

    def find_bad_constant(self) -> Bad | None:
        """A constant that is NaN; where there is none, one that is infinite."""
        found = [bad for bad in map(self._find, self._constants) if bad.nans or bad.infinities]
        return next((bad for bad in found if bad.nans), found[0] if found else None)

    def describe_growth(self, losses: LossTrend) -> str:
        """ "; the numbers grew: ..." where they did; else ""."""
        first, now = self._largest_at_first, self.find_largest()
        if losses.last_step >= 0 and abs(losses.last) > _GROWTH_OF_LOSS * abs(losses.first):
            what = f"the loss was {_short(losses.first)} at first and {_short(losses.last)} in step {losses.last_step}"
        elif now > _GROWTH_OF_WEIGHTS * max(first, _SMALL_WEIGHTS):
            what = f"the largest weight was {_short(first)} at first and is {_short(now)}"
        else:
            return ""
        return f"; the numbers grew: {what}: try a smaller lr"

    def explain(self, batch: Mapping[str, Any], of_losses: list[Loss], losses: LossTrend, update: Bad | None) -> str:
        """The reason, in the order in which one hides the others. `update`: what it has made of a parameter, which otherwise
        all are as the step has read them."""
        constant = self.find_bad_constant()
        reason = _describe_data(batch, is_nan=True) or _describe_labels(batch, of_losses)
        if not reason and constant and constant.nans:
            reason = f"; the constant {constant}: the model's file has them"
        if not reason and self.bad_at_first:
            reason = f"; {self.bad_at_first} since before the first step"
        reason = reason or self.describe_growth(losses)
        sizes = f"the data (up to {_short(_find_largest(batch))}) and the weights (up to {_short(self.find_largest())})"
        if not reason and update and update.name in self._parameters and not update.nans:
            reason = "; the update is larger than its type holds: try a smaller lr"
        reason = reason or _describe_data(batch, is_nan=False)
        if not reason and constant:
            reason = f"; the constant {constant}: the model's file has them"
        if reason:
            return reason
        if update and update.name not in self._parameters:
            return (
                f"; it is a statistic of the step's, and {sizes} are finite: sums of squares beyond what its type holds; "
                "smaller numbers keep away from there"
            )
        if update:
            return (
                "; the loss, the data and the weights before it were finite and had not grown: a gradient has no value where the "
                "model is, as that of sqrt, log or a norm at 0; an epsilon keeps away from there"
            )
        return (
            f"; {sizes} are finite and have not grown: the model has no finite value there, as log or a division at 0, or exp "
            "and products that are larger than their type holds (float16: 65504); an epsilon, a bound or a smaller scale keeps "
            "away from there"
        )


def _floats(batch: Mapping[str, Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, given in batch.items():
        try:
            values = np.asarray(given)
        except (TypeError, ValueError, RuntimeError):  # it is on a device
            continue
        if values.dtype.kind == "f":
            yield name, values


def _find_largest(batch: Mapping[str, Any]) -> float:
    largest = 0.0
    for _, values in _floats(batch):
        largest = max(largest, float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values))))
    return largest


def _describe_data(batch: Mapping[str, Any], is_nan: bool) -> str:
    for name, values in _floats(batch):
        bad = np.isnan(values) if is_nan else np.isinf(values)
        if bad.any():
            place = [int(i) for i in np.unravel_index(int(bad.argmax()), values.shape)]
            what = "nan" if is_nan else "infinite"
            return f"; the input '{name}' is {what} in the data: element {place} of the batch: leave such samples out, or repair them"
    return ""


def _describe_labels(batch: Mapping[str, Any], of_losses: list[Loss]) -> str:
    """Where the mean of a loss is one of nothing."""
    for loss in of_losses:
        if loss.is_sum or loss.label not in batch or not loss.ignores(batch[loss.label]):
            continue
        label = np.atleast_1d(np.asarray(batch[loss.label]))
        weights = batch.get(loss.sample_weight) if loss.sample_weight is not None else None
        if loss.count(label, weights, len(label)) != 0:
            continue
        ignored = f"ignored (ignore_index {loss.ignored})"
        if loss.class_weight or weights is not None:
            what = f"; no label in '{loss.label}' counts: each is {ignored} or has the factor 0"
        else:
            what = f"; every label in '{loss.label}' is {ignored}"
        return f"{what}, and the mean of none is nan: leave such samples out, or compile with {loss.kind}:reduction=sum"
    return ""

