"""The losses of an artifact, as its manifest describes them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Loss:
    """One loss: the only one, or one of those whose sum is trained."""

    kind: str
    name: str
    """Of several losses; else empty."""
    value: str
    """Of several losses: the output of a step that is its value."""
    weight: str
    """The hyper-parameter that multiplies it; empty where none does."""
    label: str
    """The input that it compares with; empty where the graph computes the loss."""
    output: str
    """What feeds it."""
    axis: int | None
    """Of classes in that output, where labels are classes."""
    ignored: int | None
    """Labels of this class take no part."""
    is_sum: bool
    """Over samples, instead of a mean."""
    compares: str
    """What outputs and labels are where they are no classes: "values", or "decisions" beside logits; else empty."""
    compares_samples: bool
    """The term of one depends on others."""
    class_weight: tuple[float, ...]
    inputs: tuple[str, ...]
    """What it reads beside the label."""
    blank: int | None = None
    """Of ctc: the class between labels."""

    def find_input(self, name: str) -> str | None:
        """What it reads under that name, which is `name.LOSS` of several losses."""
        return next((each for each in self.inputs if each.partition(".")[0] == name), None)

    @property
    def sample_weight(self) -> str | None:
        """The input with a factor for every sample."""
        return self.find_input("sample_weight")

    def key(self, what: str) -> str:
        """The name of a number of this loss in events."""
        return f"{what}.{self.name}" if self.name else what

    def ignores(self, label: Any) -> bool:
        """Whether labels are class indices, one of which takes no part."""
        return self.axis is not None and self.ignored is not None and np.asarray(label).dtype.kind in "iu"

    def count(self, label: Any, weights: Any, rows: int) -> float:
        """What the mean over the first `rows` rows weighs: labels that are not ignored, by the factors of their classes, or
        rows; times the factors of samples."""
        counts: NDArray[Any] = np.ones(rows)
        if label is not None and self.ignores(label):
            values = np.asarray(label)[:rows].reshape(rows, -1)
            factors = np.ones(values.shape)
            if self.class_weight:
                known = (values >= 0) & (values < len(self.class_weight))
                factors = np.where(known, np.take(self.class_weight, np.where(known, values, 0)), 0.0)
            counts = np.where(values != self.ignored, factors, 0.0).sum(1)
        if weights is not None:
            counts = counts * np.asarray(weights, np.float64)[:rows]
        return float(counts.sum())


def _read_loss(row: Mapping[str, Any]) -> Loss:
    kind = str(row.get("kind", "none"))
    factors = row.get("class_weight")
    return Loss(
        kind=kind,
        name=row.get("name", ""),
        value=row.get("value", ""),
        weight=row.get("weight", ""),
        label="" if kind in ("output", "none") else row.get("input", "label"),
        output=row.get("output", ""),
        axis=row.get("axis"),
        ignored=row.get("ignore_index"),
        is_sum=row.get("reduction") == "sum",
        compares=row.get("compares", ""),
        compares_samples=bool(row.get("compares_samples")),
        class_weight=tuple(factors) if isinstance(factors, list) else (),
        inputs=tuple(row.get("inputs", ())),
        blank=row.get("blank"),
    )


def read_losses(manifest: Mapping[str, Any]) -> list[Loss]:
    """The losses of an artifact (docs/manifest.md)."""
    loss = manifest.get("loss", {})
    return [_read_loss(row) for row in loss.get("parts", [loss])]
