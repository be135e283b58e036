"""Data of a training: arrays cut into batches as `ortc run` cuts them, or batches that come ready.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ortc import _runtime
from ortc._errors import ArgumentError, NotFoundError, ShapeError

Batch = dict[str, Any]
Data = (
    Mapping[str, Any] | str | os.PathLike[str] | Iterable[Mapping[str, Any] | tuple[Any, ...]] | Callable[[int], Any]
)


@dataclass(frozen=True)
class Input:
    """An input of a step."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_batch: bool | None
    """Whether the leading dimension is the batch, by the model; None where it does not say."""
    is_label: bool = False
    """A loss reads it, and not the graph."""


def convert(name: str, values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The values in a tensor's type: floats from any numbers, integers from integers that fit."""
    wanted = np.dtype(dtype)
    if values.dtype == wanted:
        return values
    if wanted.kind in "iu" and values.dtype.kind in "iub":
        limits = np.iinfo(wanted)
        if values.size and (int(values.min()) < limits.min or int(values.max()) > limits.max):
            raise ShapeError(f"'{name}' has integers that {dtype} does not hold")
    elif not (wanted.kind == "f" and values.dtype.kind in "fiub"):
        advice = "; number the classes, as np.unique(labels, return_inverse=True) does" if values.dtype.kind in "OSU" else ""
        raise ShapeError(f"'{name}' is {values.dtype}, but must be {dtype}{advice}")
    return values.astype(wanted)


def _advise(each: Input, values: NDArray[Any]) -> str:
    """The advice for labels that are a list where a column is wanted, or a table of one column where a list is."""
    if values.ndim == 1 and each.shape[1:] == (1,):
        return f"; give {each.name}[:, None]"
    if values.ndim == len(each.shape) + 1 and values.shape[-1] == 1:
        return f"; give {each.name}[..., 0]"
    return ""


class Arrays:
    """Whole arrays. Where all inputs have the batch in front, rows are samples that are shuffled; otherwise whole slices
    change places. Training drops samples that fill no slice; evaluation repeats some of them to fill the last."""

    def __init__(self, source: Mapping[str, Any], inputs: list[Input], is_training: bool) -> None:
        self.inputs = inputs
        self.arrays: dict[str, NDArray[Any]] = {}
        for each in inputs:
            values = np.asarray(source[self._find(source, each)])
            values = values.reshape(1) if values.ndim == 0 else values
            if values.shape[1:] != each.shape[1:]:
                raise ShapeError(
                    f"'{each.name}' is {list(values.shape)}, but a step takes {list(each.shape)}: all dimensions "
                    f"after the first must be equal{_advise(each, values)}"
                )
            self.arrays[each.name] = values
        leading = [each.shape[0] if each.shape else 1 for each in inputs]
        rows = [len(self.arrays[each.name]) for each in inputs]
        self.is_batch = len(set(leading)) == 1 and all(each.is_batch is not False for each in inputs)
        counts = rows if self.is_batch else [count // size for count, size in zip(rows, leading)]
        if len(set(counts)) > 1:
            what = ", ".join(f"'{each.name}' {count}" for each, count in zip(inputs, counts))
            raise ShapeError(f"the arrays have different numbers of samples: {what}")
        self.batch = leading[0] if self.is_batch and leading else 1
        self.items = counts[0] if counts else 1
        self.slices = self.items // self.batch if is_training else -(-self.items // self.batch)
        if self.slices == 0:
            raise ShapeError(f"there are {self.items} samples, but a batch takes {self.batch}; compile a smaller one")

    def _find(self, source: Mapping[str, Any], each: Input) -> str:
        if each.name in source:
            return each.name
        known = {other.name for other in self.inputs if other.is_label} | {"label"}
        others = [name for name in source if name not in known]
        if not each.is_label and len(others) == 1 and sum(not other.is_label for other in self.inputs) == 1:
            return others[0]
        raise NotFoundError(f"the data have no array '{each.name}'; they have {', '.join(source) or 'none'}")

    def count_real(self, index: int) -> int:
        """Samples of a slice that repeat no others; 1 where rows are none."""
        return min(self.batch, self.items - index * self.batch) if self.is_batch else 1

    def cut(self, index: int, order: NDArray[Any] | None = None) -> Batch:
        """A slice. `order` permutes samples, or slices where rows are none."""
        batch: Batch = {}
        for each in self.inputs:
            values = self.arrays[each.name]
            if not self.is_batch:
                size = each.shape[0] if each.shape else 1
                start = (int(order[index]) if order is not None else index) * size
                part = values[start : start + size]
            else:
                first, real = index * self.batch, self.count_real(index)
                if order is not None:
                    part = values[order[first : first + real]]
                else:
                    part = values[first : first + real]
                if real < self.batch:
                    part = np.resize(part, each.shape)
            batch[each.name] = np.ascontiguousarray(convert(each.name, part, each.dtype)).reshape(each.shape)
        return batch


def flatten(source: Mapping[str, Any]) -> Batch:
    """{"label": {"boxes": x}} is {"label.boxes": x}: the inputs of several losses."""
    flat: Batch = {}
    for name, values in source.items():
        if isinstance(values, Mapping):
            flat |= {f"{name}.{key}": each for key, each in values.items()}
        else:
            flat[name] = values
    return flat


def open_data(data: Data, inputs: list[Input], is_training: bool) -> Arrays | Callable[[int], Iterator[Batch]]:
    """Arrays, or a function that gives the batches of an epoch."""
    if isinstance(data, (str, os.PathLike)):
        with np.load(data) as file:
            return Arrays({name: file[name] for name in file.files}, inputs, is_training)
    if isinstance(data, Mapping):
        return Arrays(flatten(data), inputs, is_training)
    if not callable(data) and not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        raise ArgumentError(
            f"the data are of type {type(data).__name__}, but must be arrays by name, the path of an npz file, an iterable of "
            "batches, or a function that gives one"
        )
    names = [each.name for each in inputs]

    def begin(epoch: int) -> Iterator[Batch]:
        batches = data(epoch) if callable(data) else data
        for batch in batches:
            yield flatten(batch) if isinstance(batch, Mapping) else dict(zip(names, batch, strict=True))

    return begin


def order_of(seed: int, epoch: int, items: int) -> NDArray[Any]:
    """The order that `ortc run` shuffles an epoch to."""
    return _runtime.shuffle(seed, epoch, items)
