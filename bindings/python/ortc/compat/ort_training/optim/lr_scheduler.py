"""Learning rates of ORTTrainer: a rise from 0 over a share of the training, then a constant, a cosine, a line or a power.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A rate follows from the number of updates done: the first one of a training with a rise has the rate 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ortc._errors import ArgumentError

if TYPE_CHECKING:
    from ortc.compat.ort_training.orttrainer import TrainStepInfo


class _LRScheduler:
    """What ORTTrainer asks before every step; other schedules are classes below this one with a get_lr of their own."""

    def __init__(self) -> None:
        self._last_lr: list[float] = []

    def _step(self, train_step_info: TrainStepInfo) -> list[float]:
        self._last_lr = self.get_lr(train_step_info)
        return self._last_lr

    def get_lr(self, train_step_info: TrainStepInfo) -> list[float]:
        """The rate, in a list of one."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        return self._last_lr


class _Warmup(_LRScheduler):
    def __init__(self, total_steps: int, warmup: float) -> None:
        super().__init__()
        if total_steps <= 0:
            raise ArgumentError(f"{type(self).__name__}: 'total_steps' is {total_steps}, but must be above 0")
        if not 0 <= warmup < 1:
            raise ArgumentError(f"{type(self).__name__}: 'warmup' is {warmup}, but is a share of all steps: at least 0 and below 1")
        self.total_steps = total_steps
        self.warmup = warmup
        self._num_warmup_steps = warmup * total_steps

    def _progress(self, step: int) -> float:
        """The share of the part after the rise: 0 where it begins, 1 at its end."""
        return (step - self._num_warmup_steps) / max(1.0, self.total_steps - self._num_warmup_steps)

    def _share(self, step: int, base: float) -> float:
        """The share of the base after the rise."""
        raise NotImplementedError

    def get_lr(self, train_step_info: TrainStepInfo) -> list[float]:
        step, base = train_step_info.optimization_step, train_step_info.optimizer_config.lr
        if step < self._num_warmup_steps:
            return [base * (step / max(1.0, self._num_warmup_steps))]
        return [base * self._share(step, base)]


class ConstantWarmupLRScheduler(_Warmup):
    def __init__(self, total_steps: int, warmup: float = 0.002) -> None:
        super().__init__(total_steps, warmup)

    def _share(self, step: int, base: float) -> float:
        return 1.0


class CosineWarmupLRScheduler(_Warmup):
    """`cycles` waves: a half is the fall to 0."""

    def __init__(self, total_steps: int, cycles: float = 0.5, warmup: float = 0.002) -> None:
        super().__init__(total_steps, warmup)
        if not cycles > 0:
            raise ArgumentError(f"CosineWarmupLRScheduler: 'cycles' is {cycles}, but must be above 0")
        self.cycles = cycles

    def _share(self, step: int, base: float) -> float:
        return max(0.0, (1 + math.cos(2 * math.pi * self.cycles * self._progress(step))) / 2)


class LinearWarmupLRScheduler(_Warmup):
    def __init__(self, total_steps: int, warmup: float = 0.002) -> None:
        super().__init__(total_steps, warmup)

    def _share(self, step: int, base: float) -> float:
        return max(0.0, (self.total_steps - step) / max(1.0, self.total_steps - self._num_warmup_steps))


class PolyWarmupLRScheduler(_Warmup):
    """A fall to the rate `lr_end` by a power of what is left."""

    def __init__(self, total_steps: int, lr_end: float = 1e-7, power: float = 1.0, warmup: float = 0.002) -> None:
        super().__init__(total_steps, warmup)
        if not (lr_end >= 0 and power >= 0):
            raise ArgumentError(f"PolyWarmupLRScheduler: 'lr_end' and 'power' are {lr_end} and {power}, but must be at least 0")
        self.lr_end = lr_end
        self.power = power

    def get_lr(self, train_step_info: TrainStepInfo) -> list[float]:
        base = train_step_info.optimizer_config.lr
        if base <= self.lr_end:
            raise ArgumentError(f"PolyWarmupLRScheduler: 'lr_end' is {self.lr_end}, but must be below the learning rate, {base}")
        return super().get_lr(train_step_info)

    def _share(self, step: int, base: float) -> float:
        if step > self.total_steps:
            return self.lr_end / base
        left = (1 - self._progress(step)) ** self.power
        return ((base - self.lr_end) * left + self.lr_end) / base
