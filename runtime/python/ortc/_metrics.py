"""What an evaluation measures beside the loss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ortc._errors import ArgumentError
from ortc._losses import Loss

Metric = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[float, float]]
"""From outputs and inputs of a batch: a sum, and how many it is over. Means are made of both over all batches."""


def accuracy(loss: Loss) -> Metric:
    """The share of right classes, for a loss that has classes. Ties go to the lower class, ignored labels do not count,
    predictions with a NaN are wrong."""
    if loss.axis is None:
        raise ArgumentError(f"a loss of kind '{loss.kind}' has no classes, and so no accuracy")
    axis, ignored = loss.axis, loss.ignored

    def measure(outputs: Mapping[str, Any], inputs: Mapping[str, Any]) -> tuple[float, float]:
        logits, label = np.asarray(outputs[loss.output]), np.asarray(inputs[loss.label])
        rows = len(label)
        logits = logits[:rows] if axis else logits
        predicted = np.where(np.isnan(logits).any(axis), -1, logits.argmax(axis))
        if label.dtype.kind == "f":
            label, counted = label.argmax(axis), np.ones(predicted.shape, bool)
        else:
            counted = label != ignored if ignored is not None else np.ones(label.shape, bool)
        return float(((predicted == label) & counted).sum()), float(counted.sum())

    return measure


def find_metrics(wanted: tuple[str | tuple[str, Metric], ...], losses: list[Loss]) -> dict[str, Metric]:
    """By name: "accuracy", which is that of every loss with classes, or a pair of a name and a function."""
    found: dict[str, Metric] = {}
    known = {loss.key("accuracy"): loss for loss in losses if loss.axis is not None}
    for each in wanted:
        if isinstance(each, tuple):
            found[each[0]] = each[1]
        elif each in known:
            found[each] = accuracy(known[each])
        elif each == "accuracy":
            found |= {name: accuracy(loss) for name, loss in known.items()} or {each: accuracy(losses[0])}
        elif each != "loss":
            names = ", ".join(known) or "none of its own"
            raise ArgumentError(f"there is no metric '{each}'; there is {names}, or give a pair of a name and a function")
    return found
