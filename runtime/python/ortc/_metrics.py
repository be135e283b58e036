"""What an evaluation measures beside the loss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ortc._errors import ArgumentError

Metric = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[float, float]]
"""From outputs and inputs of a batch: a sum, and how many it is over. Means are made of both over all batches."""


def accuracy(loss: Mapping[str, Any]) -> Metric:
    """The share of right classes, for a loss of a manifest that has classes. Ties go to the lower class, ignored labels
    do not count, predictions with a NaN are wrong."""
    if "axis" not in loss:
        raise ArgumentError(f"a loss of kind '{loss.get('kind')}' has no classes, and so no accuracy")
    axis, ignored = int(loss["axis"]), loss.get("ignore_index")

    def measure(outputs: Mapping[str, Any], inputs: Mapping[str, Any]) -> tuple[float, float]:
        logits, label = np.asarray(outputs[loss["output"]]), np.asarray(inputs["label"])
        rows = len(label)
        logits = logits[:rows] if axis else logits
        predicted = np.where(np.isnan(logits).any(axis), -1, logits.argmax(axis))
        if label.dtype.kind == "f":
            label, counted = label.argmax(axis), np.ones(predicted.shape, bool)
        else:
            counted = label != ignored if ignored is not None else np.ones(label.shape, bool)
        return float(((predicted == label) & counted).sum()), float(counted.sum())

    return measure


def find_metrics(wanted: tuple[str | tuple[str, Metric], ...], loss: Mapping[str, Any]) -> dict[str, Metric]:
    """By name: "accuracy", or a pair of a name and a function."""
    found: dict[str, Metric] = {}
    for each in wanted:
        if isinstance(each, tuple):
            found[each[0]] = each[1]
        elif each == "accuracy":
            found[each] = accuracy(loss)
        elif each != "loss":
            raise ArgumentError(f"there is no metric '{each}'; give accuracy, or a pair of a name and a function")
    return found
