"""The mean losses and the metrics over data, as `ortc eval` computes them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ortc._data import Batch
from ortc._losses import Loss
from ortc._metrics import MakeMeasure
from ortc._session import Session


class _Part:
    """A loss, and its mean in the making."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.total, self.weight = 0.0, 0.0

    def add(self, mean: float, count: float) -> None:
        if self.loss.is_sum:  # of all slices, as if they were one
            self.total, self.weight = self.total + mean, 1.0
        elif count > 0:  # a NaN of an empty mean stays out
            self.total, self.weight = self.total + mean * count, self.weight + count

    @property
    def mean(self) -> float:
        return self.total / self.weight if self.weight else float("nan")

    def leaves_out(self, batch: Batch) -> bool:
        """Whether rows can count nothing: labels are ignored, or samples have weights."""
        label = batch.get(self.loss.label)
        return self.loss.sample_weight is not None or (label is not None and self.loss.ignores(label))


class Evaluation:
    """Evaluates a session batch by batch."""

    def __init__(self, session: Session, losses: list[Loss], metrics: Mapping[str, MakeMeasure]) -> None:
        self.session = session
        self.parts = [_Part(loss) for loss in losses]
        self.metrics = {name: make() for name, make in metrics.items()}
        self._batch_axes = session.artifact.batch_axes(session.binding)
        self._without_rows = {loss.output for loss in losses if loss.axis == 0 or loss.blank is not None}

    def run(self, batches: Iterable[tuple[Batch, int | None]]) -> dict[str, float]:
        """Of batches, and how many of their first rows count (None: rows are no samples): `loss`, `loss.NAME` of several
        losses, and metrics."""
        for batch, real in batches:
            self._add(batch, real)
        parts = self.parts
        result = {"loss": parts[0].mean}
        if len(parts) > 1:
            weights = [self.session.get_scalar(part.loss.weight) if part.loss.weight else 1.0 for part in parts]
            result["loss"] = sum(weight * part.mean for weight, part in zip(weights, parts))
            result |= {part.loss.key("loss"): part.mean for part in parts}
        return result | {name: metric.compute() for name, metric in self.metrics.items()}

    def _step(self, batch: Batch) -> list[float]:
        """What a step gives for every loss."""
        loss = self.session.eval_step(**batch)
        if len(self.parts) == 1:
            return [loss]
        outputs = self.session.outputs
        return [float(outputs[part.loss.value]) for part in self.parts]

    def _add(self, batch: Batch, real: int | None) -> None:
        size = len(next(iter(batch.values()))) if batch else 1
        is_short = real is not None and real < size
        given = self._leave_out(batch, real) if is_short and real is not None else batch
        means = self._step(given)
        counts = [self._count(part, given, real) for part in self.parts]
        self._measure(batch, size, real)
        if is_short and real is not None:
            means = self._correct(given, size, real, means)
        for part, mean, count in zip(self.parts, means, counts):
            part.add(mean, count)

    def _leave_out(self, batch: Batch, real: int) -> Batch:
        """What repeats samples counts nothing where that can be."""
        changed = dict(batch)
        for part in self.parts:
            label, weights = batch.get(part.loss.label), part.loss.sample_weight
            if label is not None and part.loss.ignores(label):
                changed[part.loss.label] = np.array(label)
                changed[part.loss.label][real:] = part.loss.ignored
            if weights is not None:
                changed[weights] = np.array(batch[weights])
                changed[weights][real:] = 0
        return changed

    def _count(self, part: _Part, batch: Batch, real: int | None) -> float:
        if not part.leaves_out(batch):
            return 1.0 if real is None else float(real)
        label = batch.get(part.loss.label)
        weights = batch[part.loss.sample_weight] if part.loss.sample_weight else None
        counted = np.asarray(label if label is not None else weights)
        return part.loss.count(label, weights, len(counted) if real is None or not counted.ndim else real)

    def _measure(self, batch: Batch, size: int, real: int | None) -> None:
        if not self.metrics:
            return
        inputs, outputs = batch, dict(self.session.outputs)
        if real is not None and real < size:
            inputs = {name: values[:real] for name, values in inputs.items()}
            outputs = {name: self._cut(name, values, size, real) for name, values in outputs.items()}
        for metric in self.metrics.values():
            metric.add(outputs, inputs)

    def _cut(self, name: str, values: NDArray[Any], size: int, real: int) -> NDArray[Any]:
        """What an output has of the first samples. Whole where the batch is not in front, and it is not known where it is."""
        axis = self._batch_axes.get(name, 0)
        if axis:
            return values[(slice(None),) * axis + (slice(real),)]
        # [batch * tokens, classes], say, has rows of all samples.
        has_rows = name not in self._without_rows and values.ndim and len(values) % size == 0
        return values[: len(values) // size * real] if has_rows else values

    def _correct(self, batch: Batch, size: int, real: int, means: list[float]) -> list[float]:
        """Takes what repeats samples out of the means, but of losses where it counts nothing."""
        if all(part.leaves_out(batch) for part in self.parts):
            return means
        corrected = self._take_out_repeats(batch, size, real, self._scale(means, 1 / size))
        corrected = self._scale(corrected, real)
        return [
            mean if part.leaves_out(batch) or not self._averages_over_rows(part, batch, size) else other
            for part, mean, other in zip(self.parts, means, corrected)
        ]

    def _averages_over_rows(self, part: _Part, batch: Batch, size: int) -> bool:
        """By what a loss is; what a graph computes may be anything."""
        loss = part.loss
        if loss.kind == "output" or loss.compares_samples or loss.axis == 0:
            return False
        rows = np.asarray(batch[loss.label] if loss.label in batch else self.session.outputs[loss.output])
        return bool(rows.ndim) and len(rows) == size

    def _scale(self, means: list[float], factor: float) -> list[float]:
        return [mean * factor if part.loss.is_sum else mean for part, mean in zip(self.parts, means)]

    def _take_out_repeats(self, batch: Batch, size: int, real: int, means: list[float]) -> list[float]:
        """From the means over `size` rows that repeat the first `real` ones to the means over these: all are there equally
        often, and the first size % real once more, whose mean a step of their own gives."""
        rest, times = size % real, size // real
        if rest == 0:
            return means
        repeated = {name: np.resize(values[:rest], values.shape) for name, values in batch.items()}
        more = self._take_out_repeats(repeated, size, rest, self._scale(self._step(repeated), 1 / size))
        return [(mean * size - other * rest) / (times * real) for mean, other in zip(means, more)]
