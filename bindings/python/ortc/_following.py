"""Following evaluations: which was the best, whether the training ends early, and whether the learning rate falls.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

As engine/training/follower.h and engine/training/plateau.h have them, with the same state in checkpoints.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ortc._errors import ArgumentError, FormatError
from ortc._names import describe_names, format_exact, join_words, parse_number, suggest

_MOST = 1 << 53
_LARGEST = sys.float_info.max


def _parse_spec(text: str, what: str) -> tuple[str, dict[str, str]]:
    """NAME[:key=value,...]."""
    name, colon, rest = text.partition(":")
    values: dict[str, str] = {}
    for item in rest.split(",") if colon else ():
        key, equals, value = item.partition("=")
        if not key or not equals:
            raise ArgumentError(f"{what}: '{item}' is no key=value")
        if key in values:
            raise ArgumentError(f"{what}: {key} is given twice")
        values[key] = value
    return name, values


def _read(values: Mapping[str, str], what: str, key: str, least: float, most: float) -> Any:
    """A whole number where the limits are whole."""
    is_whole = isinstance(least, int)
    value = parse_number(values[key], is_whole)
    if value is None or not least <= value <= most:
        limits = f"{least} to {most}" if is_whole else f"{format_exact(least)} to {format_exact(most)}"
        raise ArgumentError(f"{what}: {key} is '{values[key]}', but it must be a {'whole ' * is_whole}number from {limits}")
    return value


class Goal(NamedTuple):
    """What is followed, and where to. "loss" is the mean loss of an evaluation, "loss.NAME" and "accuracy.NAME" are of one of
    several losses."""

    metric: str = "loss"
    is_maximum: bool = False

    @classmethod
    def parse(cls, text: str) -> Goal:
        metric, _, mode = text.rpartition(":")
        if not metric or mode not in ("max", "min"):
            raise ArgumentError(f"best '{text}' must be METRIC:max or METRIC:min, such as accuracy:max or loss:min")
        return cls(metric, mode == "max")

    @property
    def is_of_loss(self) -> bool:
        """Whether the name is that of a figure of losses, which an artifact has or not; others are names of metrics."""
        return self.metric == "loss" or self.metric.startswith(("loss.", "accuracy."))

    def __str__(self) -> str:
        return f"{self.metric}:{'max' if self.is_maximum else 'min'}"


_LIMITS: dict[str, tuple[float, float]] = {
    "factor": (0.0, 1.0),
    "patience": (0, _MOST),
    "threshold": (0.0, _LARGEST),
    "cooldown": (0, _MOST),
    "min": (0.0, _LARGEST),
    "epsilon": (0.0, _LARGEST),
}


@dataclass
class Plateau:
    """torch.optim.lr_scheduler.ReduceLROnPlateau, with its defaults."""

    factor: float = 0.1
    patience: int = 10
    threshold: float = 1e-4
    threshold_mode: str = "rel"
    cooldown: int = 0
    min: float = 0.0
    epsilon: float = 1e-8
    best: float | None = None
    bad: int = 0
    cooling: int = 0

    @classmethod
    def parse(cls, text: str) -> Plateau:
        what = f"learning-rate schedule '{text}'"
        name, values = _parse_spec(text, what)
        known = ["factor", "patience", "threshold", "threshold_mode", "cooldown", "min", "epsilon"]
        if name != "plateau":
            raise ArgumentError(f"{what} is no plateau")
        if unknown := sorted(set(values) - set(known)):
            raise ArgumentError(f"{what}: it has no option '{unknown[0]}'; it takes {join_words(known)}{suggest(unknown[0], known)}")
        numbers = {key: _read(values, what, key, *limits) for key, limits in _LIMITS.items() if key in values}
        if numbers.get("factor") == 1:
            raise ArgumentError(f"{what}: factor is 1, but it must be below 1 for the rate to fall")
        mode = values.get("threshold_mode", "rel")
        if mode not in ("rel", "abs"):
            raise ArgumentError(f"{what}: threshold_mode is '{mode}'; {describe_names(mode, ['rel', 'abs'])}")
        return cls(**numbers, threshold_mode=mode)

    def __str__(self) -> str:
        numbers = {
            "factor": format_exact(self.factor),
            "patience": self.patience,
            "threshold": format_exact(self.threshold),
            "threshold_mode": self.threshold_mode,
            "cooldown": self.cooldown,
            "min": format_exact(self.min),
            "epsilon": format_exact(self.epsilon),
        }
        return "plateau:" + ",".join(f"{key}={value}" for key, value in numbers.items())

    def _is_better(self, value: float, is_maximum: bool) -> bool:
        best, threshold = self.best, self.threshold
        if best is None or not math.isfinite(value):
            return math.isfinite(value)
        if self.threshold_mode == "rel":
            return value > best * (threshold + 1) if is_maximum else value < best * (1 - threshold)
        return value > best + threshold if is_maximum else value < best - threshold

    def follow(self, value: float, is_maximum: bool, rate: float) -> float:
        """What the rate is after one evaluation more."""
        if self._is_better(value, is_maximum):
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        if self.cooling > 0:
            self.cooling, self.bad = self.cooling - 1, 0
        if self.bad <= self.patience:
            return rate
        self.cooling, self.bad = self.cooldown, 0
        lower = max(rate * self.factor, self.min)
        return lower if rate - lower > self.epsilon else rate

    def format_state(self) -> str:
        best = f",best={format_exact(self.best)}" if self.best is not None else ""
        return f"state:bad={self.bad}{best},cooling={self.cooling}"

    def parse_state(self, text: str) -> None:
        name, values = _parse_spec(text, text)
        if name != "state" or not {"bad", "cooling"} <= set(values) <= {"bad", "best", "cooling"}:
            raise ArgumentError(f"{text} is no state of a plateau")
        self.bad, self.cooling = (_read(values, text, key, 0, _MOST) for key in ("bad", "cooling"))
        self.best = _read(values, text, "best", -_LARGEST, _LARGEST) if "best" in values else None


class Follower:
    """The best evaluation, and how many have come since."""

    def __init__(self, goal: Goal | None, patience: int, plateau: Plateau | None, saves_best: bool) -> None:
        self._wanted = goal, str(plateau) if plateau else None
        self.patience = patience
        self.saves_best = saves_best
        self._begin()

    def _begin(self) -> None:
        self._goal, plateau = self._wanted
        self.plateau = Plateau.parse(plateau) if plateau else None
        self.best = 0.0
        self.best_step = -1
        """-1: there is none."""
        self.evaluated_step = -1
        self._bad = 0

    @property
    def goal(self) -> Goal:
        return self._goal or Goal()

    @property
    def is_active(self) -> bool:
        return self._goal is not None or self.patience > 0 or self.saves_best or self.plateau is not None

    @property
    def is_exhausted(self) -> bool:
        """Whether so many evaluations had nothing better that the training ends."""
        return self.patience > 0 and self._bad >= self.patience

    def add(self, value: float, step: int, rate: float) -> tuple[bool, float]:
        """An evaluation that was due after a step: whether it is the best one, and the rate from there on."""
        is_maximum = self.goal.is_maximum
        is_better = math.isfinite(value) and (
            self.best_step < 0 or (value > self.best if is_maximum else value < self.best)
        )
        if is_better:
            self.best, self.best_step = value, step
        self._bad = 0 if is_better else self._bad + 1
        self.evaluated_step = step
        return is_better, self.plateau.follow(value, is_maximum, rate) if self.plateau else rate

    def describe(self) -> dict[str, str]:
        """For the metadata of a checkpoint."""
        if not self.is_active:
            return {}
        state = f"bad={self._bad},evaluated={self.evaluated_step},step={self.best_step},value={format_exact(self.best)}"
        found = {"run.best": str(self.goal), "run.best.state": f"state:{state}"}
        if self.plateau:
            found |= {"run.plateau": str(self.plateau), "run.plateau.state": self.plateau.format_state()}
        return found

    def resume(self, metadata: Mapping[str, str], path: str, replaces_rate: bool) -> str:
        """Goes on from a checkpoint; gives what starts anew. `replaces_rate`: a rate was asked for, which takes the place of
        a plateau that only the checkpoint has."""
        self._begin()
        key = "run.plateau"
        try:
            if key in metadata and self.plateau is None and not replaces_rate:
                self.plateau = Plateau.parse(metadata[key])
            key = "run.best"
            if key not in metadata:
                return ""
            stored = Goal.parse(metadata[key])
            if self._goal is not None and self._goal != stored:
                return f"best {self._goal} replaces the checkpoint's {stored}; what was the best so far counts no more"
            key = "run.best.state"
            _, state = _parse_spec(metadata.get(key, ""), "")
            bad, evaluated, step = (_read(state, "", name, -1, _MOST) for name in ("bad", "evaluated", "step"))
            best = _read(state, "", "value", -_LARGEST, _LARGEST)
            key = "run.plateau.state"
            if self.plateau and metadata.get("run.plateau") == str(self.plateau):
                self.plateau.parse_state(metadata.get(key, ""))
        except (ArgumentError, KeyError) as error:
            text = metadata.get(key, "")
            raise FormatError(f"{path}: its metadata has '{key}' = '{text}', which no training has saved") from error
        self._goal, self._bad, self.evaluated_step, self.best_step, self.best = stored, bad, evaluated, step, best
        return ""
