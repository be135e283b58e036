"""Data of a training, as the engine takes them: arrays, files of arrays, or batches that come ready.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ortc._checks import check_text
from ortc._errors import ArgumentError, ShapeError

Batch = dict[str, Any]
Data = (
    Mapping[str, Any] | str | os.PathLike[str] | Iterable[Mapping[str, Any] | tuple[Any, ...]] | Callable[[int], Any]
)
Source = str | dict[str, NDArray[Any]] | Callable[[int], Iterator[Batch]]


def _flatten(source: Mapping[str, Any]) -> Batch:
    """{"label": {"boxes": x}} is {"label.boxes": x}: the inputs of several losses."""
    flat: Batch = {}
    for name, values in source.items():
        if isinstance(values, Mapping):
            flat |= {f"{name}.{key}": each for key, each in values.items()}
        else:
            flat[name] = values
    return flat


def _list_arrays(source: Mapping[str, Any], inputs: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Dense ones in the byte order of the machine; without those of texts, times and objects, which no input has."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, given in source.items():
        check_text("the name of an array", name)
        values = np.asarray(given)
        if values.dtype.kind not in "OSUMm":
            arrays[name] = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        elif name in inputs:
            advice = "number the classes, as np.unique(labels, return_inverse=True) does"
            raise ShapeError(f"'{name}' is {values.dtype}, but must be of numbers; {advice}")
    return arrays


def _name_arrays(batch: Any, inputs: Sequence[str]) -> Batch:
    if isinstance(batch, Mapping):
        return _flatten(batch)
    if isinstance(batch, (tuple, list)) and len(batch) == len(inputs):
        return dict(zip(inputs, batch, strict=True))
    what = f"{len(batch)} arrays" if isinstance(batch, (tuple, list)) else f"of type {type(batch).__name__}"
    raise ArgumentError(f"a batch is {what}, but must be a dict of arrays by name, or a tuple of {', '.join(inputs)}")


def open_source(data: Data, inputs: Sequence[str]) -> Source:
    """The path of a file, arrays by name, or a function that gives the batches of an epoch. `inputs`: of the step, in the order
    of tuples."""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data)
    if isinstance(data, Mapping):
        return _list_arrays(_flatten(data), inputs)
    if not callable(data) and not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        raise ArgumentError(
            f"the data are of type {type(data).__name__}, but must be arrays by name, the path of an npz file, an iterable of "
            "batches, or a function that gives one"
        )

    def begin(epoch: int) -> Iterator[Batch]:
        for batch in data(epoch) if callable(data) else data:
            yield _name_arrays(batch, inputs)

    return begin
