"""LinearLRScheduler: a rise from 0 over the warm-up, then a fall to 0.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from ortc.compat.ort_training.api.optimizer import Optimizer


class LinearLRScheduler:
    """Sets the rate that follows from the number of updates done, at once and with every step."""

    def __init__(self, optimizer: Optimizer, warmup_step_count: int, total_step_count: int, initial_lr: float) -> None:
        self._optimizer = optimizer
        self._warmup = warmup_step_count
        self._total = total_step_count
        self._initial = initial_lr
        self.step()

    def step(self) -> None:
        done = self._optimizer._steps
        if done < self._warmup:
            share = done / max(1, self._warmup)
        else:
            share = max(0.0, (self._total - done) / max(1, self._total - self._warmup))
        self._optimizer.set_learning_rate(self._initial * share)
